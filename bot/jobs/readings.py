"""What jobs know of the forge: what was read for one delivery, its event as it stands now, and ``bouncer.yml``.

A repository's file, over its owner's, is read once, and again when its default branch was pushed to. Recorded
deliveries tell of pushes, so every worker hears of one before it takes up what was delivered after it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from bot.core import config_file, events
from bot.core.actions import Task
from bot.core.config import PATH, RepoConfig
from bot.core.config_file import Problem
from bot.core.events import Event
from bot.core.model import Repository
from bot.errors import ForgeError, NotFound
from bot.forge.protocol import Forge
from bot.forge.replay import ReadOnce
from bot.jobs.job import Job
from bot.store import Database
from bot.store.tables import DELIVERIES

if TYPE_CHECKING:
    from bot.forge.github import GitHubForge


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


#: It is asked for again after this long in any case, seconds: an app that was registered before pushes were among
#: its events hears of none.
FRESH_SECONDS = 300.0
#: Repositories whose file is kept; the least recently used one goes.
KEPT_FILES = 1000

Configuration = tuple[RepoConfig, tuple[Problem, ...]]
#: The repository of an owner whose file holds the defaults for all the others.
SHARED = ".github"


@dataclass(frozen=True)
class _Read:
    configuration: Configuration
    at: float
    after: int


class Configurations:
    """Each repository's ``bouncer.yml`` over its owner's; one per worker process."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, str, str], _Read] = OrderedDict()

    def of(self, installation: int, repository: Repository, forge: GitHubForge) -> Configuration:
        """The file on the default branch over its owner's, and what is wrong in it; else the defaults."""
        name, branch = repository.full_name, repository.default_branch
        found = self._read((installation, name, branch), lambda: own(forge, branch))
        if repository.name == SHARED:
            return found
        everywhere = f"{repository.owner}/{SHARED}"
        return _over(self._read((installation, everywhere, ""), lambda: shared(forge)), found)

    def _read(self, key: tuple[int, str, str], load: Callable[[], Configuration]) -> Configuration:
        with self._lock:
            known = self._kept.get(key)
        now = self._clock()
        if known and now - known.at < FRESH_SECONDS and not self._pushed(key[1], known.after):
            return known.configuration
        # First the place in the line of deliveries, then the file: a push in between is noticed next time.
        after = self._newest()
        read = _Read(load(), now, after)
        with self._lock:
            self._kept[key] = read
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT_FILES:
                self._kept.popitem(last=False)
        return read.configuration

    def _newest(self) -> int:
        with self._database.read() as connection:
            return connection.scalar(select(func.max(DELIVERIES.c.seq))) or 0

    def _pushed(self, repository: str, after: int) -> bool:
        pushed = select(DELIVERIES.c.seq).where(
            DELIVERIES.c.seq > after,
            DELIVERIES.c.kind == "branch_pushed",
            DELIVERIES.c.repository == repository,
        )
        with self._database.read() as connection:
            return connection.execute(pushed.limit(1)).first() is not None


def configuration(forge: GitHubForge, repository: Repository) -> Configuration:
    """The same as ``Configurations.of``, read now."""
    found = own(forge, repository.default_branch)
    return found if repository.name == SHARED else _over(shared(forge), found)


def own(forge: GitHubForge, branch: str) -> Configuration:
    """A repository's own file."""
    try:
        return config_file.load(forge.file(PATH, branch))
    except NotFound:
        return RepoConfig(), ()


def shared(forge: GitHubForge) -> Configuration:
    """Its owner's file for all repositories. What is wrong in it is told where it stands."""
    try:
        return config_file.load(forge.shared_file(PATH))
    except ForgeError:
        # Not there, or not for us: repositories work without.
        return RepoConfig(), ()


def _over(everywhere: Configuration, here: Configuration) -> Configuration:
    return config_file.over(everywhere[0], here[0]), here[1]
