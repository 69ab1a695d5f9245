"""Which pending job a newer event makes pointless. Pure.

The engine's debouncer replaces what a waiting job is about by what came last, whatever that was; which event may
take the place of which is our own matter. It follows from what was delivered alone, so nobody has to note it.

The rule errs on the side of doing the work: an event supersedes another only where the task is certain to look at
the same thing again because of the newer one. Commands and feedback are said once and count once.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from bot.core import events
from bot.core.actions import Task
from bot.core.commands import read
from bot.core.events import Event

_Judged = events.IssueOpened | events.IssueEdited | events.IssueReopened
_Pushed = (
    events.PullRequestOpened
    | events.PullRequestSynchronized
    | events.PullRequestReopened
    | events.PullRequestReadied
)


def supersedes(task: Task, newer: Event, older: Event) -> bool:
    """Whether ``task`` need not run for ``older`` any more once ``newer`` has happened on the same subject."""
    if newer.sender.is_bot and not older.sender.is_bot:
        # Handlers may pass over what bots do; what a person did must not get lost with it.
        return False
    if task == "triage":
        return _issue_read_again(newer, older)
    if task == "verify":
        return isinstance(newer, _Pushed | events.PullRequestEdited) and isinstance(
            older, _Pushed | events.PullRequestEdited
        )
    if task == "review":
        # Another title is no reason to review again: it takes a push.
        return isinstance(newer, _Pushed) and isinstance(older, _Pushed)
    return False


def successor(task: Task, event: Event, later: Sequence[tuple[str, str]]) -> str | None:
    """The job that does the work of an event's; ``later`` are ids and events (JSON) that came after it."""
    for delivery, text in later:
        try:
            newer = events.from_json(text)
        except ValidationError:
            # Written by another version of the program: it takes nobody's place, and stops nobody.
            continue
        if supersedes(task, newer, event):
            return f"{delivery}:{task}"
    return None


def _issue_read_again(newer: Event, older: Event) -> bool:
    if isinstance(newer, _Judged):
        return isinstance(older, _Judged)
    return _answer(newer) and _answer(older)


def _answer(event: Event) -> bool:
    """A comment of the issue's author that is no command; a later one is read together with all before it."""
    return (
        isinstance(event, events.CommentCreated)
        and event.sender.id == event.issue.author.id
        and not read(event.comment.body)
    )
