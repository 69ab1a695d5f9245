"""Which commands of a comment are carried out: who may give them, how often, and on whose budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.core import events
from bot.core.actions import Decision
from bot.core.commands import Command, may, read
from bot.core.events import Event
from bot.services import Services

Said = events.CommentCreated | events.ReviewCommentCreated

#: An author's rechecks cost the operator's money: one on a subject in this time, so many in the repository a day.
PER_SUBJECT = timedelta(minutes=10)
PER_DAY = 6


def granted(event: Said, services: Services) -> tuple[Command, ...]:
    """The commands in a new comment that its author may give, now."""
    commands = read(event.comment.body)
    if not commands or event.sender.is_bot:
        return ()
    is_author = by_author(event)
    if is_author and any(command.word == "recheck" for command in commands):
        now = services.clock()
        recent = services.history.commands(event.repository.full_name, now - timedelta(days=1))
        is_author = not too_soon(recent, event, now)
    free = all(may(command.word, "none", is_author) for command in commands)
    permission = "none" if free else services.forge.permission(event.sender.login)
    return tuple(command for command in commands if may(command.word, permission, is_author))


def too_soon(recent: Sequence[Decision], event: Said, now: datetime) -> bool:
    """Whether the author has had enough rechecks for now; ``recent``: the commands of the last day. Pure."""
    mine = [
        decision
        for decision in recent
        if "recheck" in decision.evidence.get("done", ())
        and decision.evidence.get("by") == event.sender.login
        # Not this very comment, which may be on record already.
        and decision.evidence.get("comment", event.comment.id) < event.comment.id
    ]
    since = (now - PER_SUBJECT).timestamp()
    here = (decision for decision in mine if decision.subject.key == event.subject.key)
    return len({each.evidence.get("comment") for each in mine}) >= PER_DAY or any(
        decision.evidence.get("at", 0) > since for decision in here
    )


def by_maintainer(event: Event) -> bool:
    """Whether only somebody with rights in the repository can have caused what an event makes a handler do."""
    if isinstance(event, events.CheckRerequested | events.RecheckRequested):
        return True
    if not isinstance(event, Said):
        return False
    words = {command.word for command in read(event.comment.body)}
    return bool(words - {"recheck", "help"} if by_author(event) else words - {"help"})


def by_author(event: Said) -> bool:
    """Whether who comments wrote the issue or pull request."""
    subject = event.issue if isinstance(event, events.CommentCreated) else event.pull_request
    return event.sender.id == subject.author.id
