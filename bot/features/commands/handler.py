"""``/bouncer ...``: acknowledge, and carry out what is about memory: accept, pause, resume, help.

Words that ask for work (recheck, review, verify, reproduce, dismiss) are carried out by the handler whose work
it is; here they are only acknowledged or refused, so that nobody waits in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bot.core import events
from bot.core.actions import Action, Decision, React, SetIssueState, SetLabels, UpsertComment
from bot.core.commands import AUTHORS, MEANINGS, Command, Word, near_miss, read
from bot.core.events import Event
from bot.core.subjects import at_least
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared import input_bouncer as bouncer
from bot.features.shared.rights import Said, explains, granted

#: Words that mean something on an issue, and on a pull request.
ON_ISSUES = frozenset({"help", "recheck", "accept", "pause", "resume", "reproduce", "why"})
ON_PULLS = frozenset({"help", "recheck", "pause", "resume", "review", "verify", "dismiss", "why"})


def concerns(event: Event) -> bool:
    """Whether an event is a comment with commands, or almost one, or the label of a bounce that may be gone."""
    if isinstance(event, events.IssueUnlabeled):
        return not event.sender.is_bot
    if not isinstance(event, Said) or event.sender.is_bot:
        return False
    return bool(read(event.comment.body) or near_miss(event.comment.body))


def handle(event: Event, services: Services) -> Decision | None:
    """Deal with the commands in a new comment; None where there are none."""
    if isinstance(event, events.IssueUnlabeled):
        return _unlabeled(event, services)
    if not isinstance(event, Said):
        return None
    commands = read(event.comment.body)
    if {command.word for command in commands} == {"why"} and not explains(event, services.config):
        return None
    fits = ON_PULLS if _on_pull(event) else ON_ISSUES
    done = tuple(command for command in granted(event, services) if command.word in fits)
    refused = [refusal(each, event, fits) for each in commands if each not in done]
    if not commands:
        refused = [meant(near_miss(event.comment.body) or "help")]
    return Decision(
        kind="commands",
        subject=event.subject,
        verdict=",".join(command.word for command in done) or None,
        actions=_actions(event, done, refused, services),
        reason=_reason(event, commands, done),
        abstained=None if done else "refused" if commands else "unclear",
        evidence={
            "done": [command.word for command in done],
            "by": event.sender.login,
            "comment": event.comment.id,
            "at": services.clock().timestamp(),
        },
    )


def _unlabeled(event: events.IssueUnlabeled, services: Services) -> Decision | None:
    """A maintainer who takes the label of a bounce off means that the issue is fine."""
    config = services.config.triage
    if config.mode in ("off", "shadow") or event.label.lower() != config.label.lower():
        return None
    past = services.history.decisions(event.subject.key, "triage", "commands")
    if not history.bounced(history.last_verdict(past)) or history.accepted(past):
        return None
    if not at_least(services.forge.permission(event.sender.login), "triage"):
        return None
    return Decision(
        kind="commands",
        subject=event.subject,
        verdict="accept",
        actions=_accept(event, services, ""),
        reason=f"{event.sender.login} removed {config.label}",
        evidence={"done": ["accept"], "by": event.sender.login, "at": services.clock().timestamp()},
    )


def meant(word: Word) -> str:
    """The answer to what is almost a command."""
    return (
        f"I don't know that command. Did you mean `/bouncer {word}`? Put it on a line of its own; "
        "you can add a reason after a comma."
    )


def refusal(command: Command, event: Said, fits: frozenset[str]) -> str:
    """Why a command was not carried out, for the person who gave it."""
    name = f"`/bouncer {command.word}`"
    if command.word not in fits:
        there, here = ("issues", "pull requests") if _on_pull(event) else ("pull requests", "issues")
        return f"{name} works on {there}, not on {here}."
    if command.word in AUTHORS and event.by_author:
        often = "every ten minutes, six times a day" if command.word == "recheck" else "three times a day"
        return f"Authors can use {name} {often}. Please try again later."
    who = "the author and people" if command.word in AUTHORS else "people"
    return f"Only {who} with triage permission in this repository can use {name}."


def _on_pull(event: Said) -> bool:
    return isinstance(event, events.ReviewCommentCreated) or event.issue.is_pull_request


def _actions(
    event: Said, done: Sequence[Command], refused: Sequence[str], services: Services
) -> tuple[Action, ...]:
    on: Literal["issue", "review"] = "review" if isinstance(event, events.ReviewCommentCreated) else "issue"
    actions: list[Action] = [
        React(comment_id=event.comment.id, on=on, content="+1" if done else "confused"),
    ]
    said = {command.word: command for command in done}
    told = help_text() if "help" in said else "\n".join(refused)
    if told:
        actions.append(UpsertComment(task="commands", number=event.number, body=told))
    if "accept" in said:
        actions += _accept(event, services, said["accept"].reason)
    return tuple(actions)


def _accept(event: Said | events.IssueUnlabeled, services: Services, why: str) -> tuple[Action, ...]:
    """The comment of a bounce shrinks to a line, and the label goes."""
    actions: list[Action] = []
    past = services.history.decisions(event.subject.key, "triage")
    body = bouncer.accepted(event.sender.login, why, history.language(past))
    if history.bounced(history.last_verdict(past)):
        actions.append(UpsertComment(task="triage", number=event.number, body=body, only_edit=True))
    warned = history.last_verdict(services.history.decisions(event.subject.key, "closing"))
    closed = not isinstance(event, events.ReviewCommentCreated) and event.issue.state == "closed"
    if warned and warned.verdict == "closed" and closed:
        actions.append(SetIssueState(number=event.number, state="open"))
    if warned and warned.verdict != "answered":
        about = str(warned.evidence["about"])
        actions.append(UpsertComment(task="closing", number=event.number, body=body, about=about, only_edit=True))
    config = services.config.triage
    accepted = (config.accepted_label,) if config.accepted_label else ()
    actions.append(SetLabels(number=event.number, add=accepted, remove=(config.label,)))
    return tuple(actions)


def _reason(event: Said, commands: tuple[Command, ...], done: tuple[Command, ...]) -> str:
    if not commands:
        return f"{event.sender.login} wrote something that is almost a command"
    refused = [command.word for command in commands if command not in done]
    if not refused:
        return f"{event.sender.login} asked for {', '.join(command.word for command in done)}"
    return f"{event.sender.login} may not, not so soon again, or cannot here: {', '.join(refused)}"


def help_text() -> str:
    """The list of commands."""
    rows = [f"- `/bouncer {word}`: {meaning}" for word, meaning in MEANINGS.items()]
    return "\n".join(["Commands, each on a line of its own:", "", *rows])
