"""What jobs know of the forge: what those of one delivery have read, and their event as it stands now."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from bot.core import events
from bot.core.actions import Task
from bot.core.events import Event
from bot.forge.protocol import Forge
from bot.forge.replay import ReadOnce
from bot.jobs.job import Job

#: Tasks that judge what is there, whatever it was that happened to it.
JUDGING: frozenset[Task] = frozenset({"triage", "verify", "review"})

#: Deliveries whose readings are kept, and how long after the first of them, seconds.
KEPT = 32
KEPT_SECONDS = 300.0


@dataclass(frozen=True)
class _Reading:
    forge: ReadOnce
    since: float


class Readings:
    """What the jobs of a delivery have read, each question once; one per worker process.

    They run one after the other and are about the same head. A later try begins anew: it is made because something
    has changed, or may have.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Reading] = OrderedDict()

    def of(self, job: Job, forge: Forge) -> ReadOnce:
        """What this job asks in place of ``forge``."""
        now = self._clock()
        with self._lock:
            while self._kept and now - next(iter(self._kept.values())).since >= KEPT_SECONDS:
                self._kept.popitem(last=False)
            if job.attempt or job.delivery not in self._kept:
                self._kept.pop(job.delivery, None)
                self._kept[job.delivery] = _Reading(ReadOnce(forge), now)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[job.delivery].forge

    def drop(self, job: Job) -> None:
        """Its delivery is about something that is not there any more."""
        with self._lock:
            self._kept.pop(job.delivery, None)


def at_present(event: Event, task: Task, forge: Forge, *, moved: bool = False) -> Event:
    """The event with its issue or pull request read anew, where ``task`` judges that.

    Deliveries come late, twice, and in the wrong order. A late one takes the place of a newer one that still
    waits: it must not judge what has passed then, or nobody would judge what is there. ``moved``: what came with a
    comment is known to be stale.
    """
    if task not in JUDGING or (isinstance(event, events.RecheckRequested) and event.issue.is_pull_request):
        return event
    if isinstance(
        event, events.IssueOpened | events.IssueEdited | events.IssueReopened | events.RecheckRequested
    ) or (moved and isinstance(event, events.CommentCreated)):
        return event.model_copy(update={"issue": forge.issue(event.number)})
    if isinstance(
        event,
        events.PullRequestOpened
        | events.PullRequestSynchronized
        | events.PullRequestReopened
        | events.PullRequestReadied
        | events.PullRequestEdited,
    ):
        return event.model_copy(update={"pull_request": forge.pull_request(event.number)})
    return event
