"""``/bouncer ...``: acknowledge, and carry out what is about memory: accept, pause, resume, help.

Words that ask for work (recheck, review, verify, reproduce, dismiss) are carried out by the handler whose work
it is; here they are only acknowledged or refused, so that nobody waits in vain.
"""

from __future__ import annotations

from typing import Literal

from bot.bouncers import history, input_comment
from bot.bouncers.granted import Said, granted
from bot.core import events
from bot.core.actions import Action, Decision, React, SetLabels, UpsertComment
from bot.core.commands import MEANINGS, Command, read
from bot.core.events import Event
from bot.core.model import Comment, ReviewComment
from bot.services import Services

#: Words that mean something on an issue, and on a pull request.
ON_ISSUES = frozenset({"help", "recheck", "accept", "pause", "resume", "reproduce"})
ON_PULLS = frozenset({"help", "recheck", "pause", "resume", "review", "verify", "dismiss"})


def concerns(event: Event) -> bool:
    """Whether an event is a comment with commands."""
    return isinstance(event, Said) and not event.sender.is_bot and bool(read(event.comment.body))


def handle(event: Event, services: Services) -> Decision | None:
    """Deal with the commands in a new comment; None where there are none."""
    if not isinstance(event, Said) or not concerns(event):
        return None
    commands = read(event.comment.body)
    fits = ON_PULLS if _on_pull(event) else ON_ISSUES
    done = tuple(command for command in granted(event, services) if command.word in fits)
    return Decision(
        kind="commands",
        subject=event.subject,
        verdict=",".join(command.word for command in done) or None,
        actions=(_reaction(event.comment, understood=bool(done)), *_actions(event, done, services)),
        reason=_reason(event, commands, done),
        abstained=None if done else "refused",
        evidence={
            "done": [command.word for command in done],
            "by": event.sender.login,
            "comment": event.comment.id,
            "at": services.clock().timestamp(),
        },
    )


def _on_pull(event: Said) -> bool:
    return isinstance(event, events.ReviewCommentCreated) or event.issue.is_pull_request


def _reaction(comment: Comment | ReviewComment, *, understood: bool) -> React:
    on: Literal["issue", "review"] = "review" if isinstance(comment, ReviewComment) else "issue"
    return React(comment_id=comment.id, on=on, content="+1" if understood else "confused")


def _actions(event: Said, done: tuple[Command, ...], services: Services) -> tuple[Action, ...]:
    words = {command.word for command in done}
    actions: list[Action] = []
    if "help" in words:
        actions.append(UpsertComment(task="commands", number=event.number, body=help_text()))
    if "accept" in words:
        past = services.history.decisions(event.subject.key, "triage")
        if history.bounced(history.last_verdict(past)):
            body = input_comment.accepted(event.sender.login)
            actions.append(UpsertComment(task="triage", number=event.number, body=body, only_edit=True))
        accepted = services.config.triage.accepted_label
        actions.append(
            SetLabels(
                number=event.number,
                add=(accepted,) if accepted else (),
                remove=(services.config.triage.label,),
            )
        )
    return tuple(actions)


def _reason(event: Said, commands: tuple[Command, ...], done: tuple[Command, ...]) -> str:
    refused = [command.word for command in commands if command not in done]
    if not refused:
        return f"{event.sender.login} asked for {', '.join(command.word for command in done)}"
    return f"{event.sender.login} may not, not so soon again, or cannot here: {', '.join(refused)}"


def help_text() -> str:
    """The list of commands."""
    rows = [f"- `/bouncer {word}`: {meaning}" for word, meaning in MEANINGS.items()]
    return "\n".join(["Commands, each at the start of a line:", "", *rows])
