"""An event about its subject as it stands now: deliveries come late, twice, and in the wrong order."""

from __future__ import annotations

from bot.core import events
from bot.core.actions import Task
from bot.core.events import Event
from bot.forge.protocol import Forge

#: Tasks that judge what is there, whatever it was that happened to it.
JUDGING: frozenset[Task] = frozenset({"triage", "verify", "review"})


def at_present(event: Event, task: Task, forge: Forge, *, moved: bool = False) -> Event:
    """The event with its issue or pull request read anew, where ``task`` judges that.

    A delivery that arrives late takes the place of a newer one that still waits. It must not judge what has
    passed then, or nobody would judge what is there. ``moved``: what came with a comment is known to be stale.
    """
    if task not in JUDGING:
        return event
    if isinstance(event, events.IssueOpened | events.IssueEdited | events.IssueReopened) or (
        moved and isinstance(event, events.CommentCreated)
    ):
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
