"""Acknowledge or refuse every ``/bouncer`` command, and carry out help, accept, pause and resume.

The other commands (recheck, review, verify, reproduce, dismiss, why) are carried out by the feature that they
concern. Here they are only acknowledged or refused, so that the commenter gets an answer at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core import events
from bot.core.actions import Action, Decision, SetIssueState, SetLabels, UpsertComment
from bot.core.commands import Command, CommandSet, resembles_command
from bot.core.markdown import clean_line
from bot.core.subjects import may_triage
from bot.features.closing.record import ClosingRecord
from bot.features.commands.record import CommandsRecord
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.history import PAUSED, READ_AGAIN, skip_reason
from bot.features.shared.rights import (
    CommandEvent,
    answer,
    explains,
    granted,
    is_paused,
    no_run_reason,
    paused,
    react,
)

Trigger = CommandEvent | events.IssueUnlabeled

#: Answers to people without rights on one issue or pull request; after that they get only a reaction.
MAX_ANSWERS = 10
#: Characters of the reason after ``/bouncer accept``.
MAX_REASON = 240


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True for a comment with a command, or almost one, and for a label that a person removed."""
    if event.sender.is_bot:
        return False
    return isinstance(event, events.IssueUnlabeled) or bool(commands) or resembles_command(event.comment.body)


def handle(event: Trigger, services: Services) -> Decision | None:
    """Answer the commands in a new comment; None if there are none."""
    if isinstance(event, events.IssueUnlabeled):
        return _unlabeled(event, services)
    commands = services.commands.read(event.comment.body)
    if not commands:
        return _unclear(event, services)
    if [command.word for command in commands] == ["why"] and not explains(event, services.config):
        return None
    refusals = _refusals(event, commands, services)
    done = tuple(command for command in commands if command.word not in refusals)
    hints = (hint for command in done if (hint := _run_hint(command, event, services)))
    reason = f"{event.sender.login} asked for {', '.join(command.word for command in done)}"
    if refusals:
        reason = f"refused to {event.sender.login}: {', '.join(refusals)}"
    return _decision(event, done, (*refusals.values(), *hints), reason, services)


def _unclear(event: CommandEvent, services: Services) -> Decision | None:
    """Answer a comment with almost a command; None if it only mentions another account."""
    word = services.commands.near_miss(event.comment.body)
    if word is None:
        return None
    reason = f"{event.sender.login} wrote something that is almost a command"
    decision = _decision(event, (), (suggestion(word),), reason, services)
    return decision.model_copy(update={"abstained": "unclear"})


def _decision(
    event: CommandEvent, done: Sequence[Command], refusals: Sequence[str], reason: str, services: Services
) -> Decision:
    """Return the decision that carries out ``done`` and answers with ``refusals``."""
    words = tuple(command.word for command in done)
    decision = Decision(
        kind="commands",
        subject=event.subject,
        verdict=",".join(words) or None,
        reason=reason,
        abstained=None if done else "refused",
        record=CommandsRecord(
            done=words,
            by=event.sender.login,
            comment=event.comment.id,
            at=(event.comment.created_at or services.clock()).timestamp(),
        ),
    )
    return decision.model_copy(update={"actions": _actions(event, done, refusals, services, decision)})


def _refusals(event: CommandEvent, commands: Sequence[Command], services: Services) -> dict[str, str]:
    """Return the answers to the commands that are not carried out, by their words."""
    granted_commands, authors = granted(event, services), services.history.counts_authors
    refusals: dict[str, str] = {}
    for command in commands:
        if command in granted_commands and _works_here(command, event, services.commands):
            text = _obstacle(command, event, services)
        else:
            waits = command.word == "recheck" and paused(event, services)
            text = refusal(command, event, services.commands, authors=authors, paused=waits)
        if text:
            refusals[command.word] = text
    return refusals


def _unlabeled(event: events.IssueUnlabeled, services: Services) -> Decision | None:
    """Accept the issue if a maintainer removed the label of its bounce."""
    config = services.config.triage
    if config.mode == "off" or event.label.lower() != config.label.lower():
        return None
    past = services.history.decisions(event.subject.key, "triage", "commands")
    if not history.bounced(history.last_verdict(past)) or history.accepted(past):
        return None
    if not may_triage(services.forge.permission(event.sender.login)):
        return None
    actions, in_shadow = _accept(event, services, ""), config.mode == "shadow"
    return Decision(
        kind="commands",
        subject=event.subject,
        verdict="accept",
        actions=() if in_shadow else actions,
        withheld=actions if in_shadow else (),
        reason=f"{event.sender.login} removed {config.label}",
        record=CommandsRecord(done=("accept",), by=event.sender.login, at=services.clock().timestamp()),
    )


def _run_hint(command: Command, event: CommandEvent, services: Services) -> str:
    """Return what to copy if ``--run`` names no whole commit id of a fork's pull request; else an empty text."""
    if not command.run or len(command.run) in (40, 64):
        return ""
    reason = no_run_reason(services.forge.pull_request(event.number), command, command.word)
    return f"`--run` needs the whole id of a commit. {reason}" if reason else ""


def suggestion(word: str) -> str:
    """Return the answer to an almost correct command."""
    return (
        f"I don't know that command. Did you mean `/bouncer {word}`? Put it into a new comment, on a line of its "
        "own; you can add a reason after it."
    )


def _obstacle(command: Command, event: CommandEvent, services: Services) -> str:
    """Return why an allowed command cannot be carried out; empty if it can."""
    config, word = services.config, command.word
    if word == "recheck" and not _on_pull(event) and not isinstance(event, events.ReviewCommentCreated):
        past = services.history.decisions(event.subject.key, "triage", "commands")
        if config.triage.mode == "off":
            return off("triage")
        skip = skip_reason(event.issue, config.triage, past, despite_pause=True)
        return f"I can't read this again: {skip[1]}." if skip else ""
    needed = services.commands[word].sections if _on_pull(event) else ()
    return off(*needed) if needed and all(getattr(config, name).mode == "off" for name in needed) else ""


def off(*sections: str) -> str:
    """Return the answer to a command whose features are all switched off."""
    return f"This is switched off here ({', '.join(f'`{name}.mode: off`' for name in sections)})."


def refusal(
    command: Command,
    event: CommandEvent,
    commands: CommandSet,
    *,
    authors: bool = True,
    paused: bool = False,
) -> str:
    """Return why a command is refused; ``authors``: True if authors may use some commands here."""
    name = f"`/bouncer {command.word}`"
    limit = commands[command.word].author_limit if authors else None
    if not _works_here(command, event, commands):
        there, here = ("issues", "pull requests") if _on_pull(event) else ("pull requests", "issues")
        return f"{name} works on {there}, not on {here}."
    if paused and command.word == "recheck":
        return f"A maintainer paused me here. Only people with triage permission can still use {name}."
    if limit and event.by_author:
        return f"Authors can use {name} {limit.text}. Please try again later."
    people = "the author and people" if limit else "people"
    return f"Only {people} with triage permission in this repository can use {name}."


def _works_here(command: Command, event: CommandEvent, commands: CommandSet) -> bool:
    declared = commands[command.word]
    return declared.on_pull_requests if _on_pull(event) else declared.on_issues


def _on_pull(event: CommandEvent) -> bool:
    return isinstance(event, events.ReviewCommentCreated) or event.issue.is_pull_request


def _actions(
    event: CommandEvent, done: Sequence[Command], refusals: Sequence[str], services: Services, decision: Decision
) -> tuple[Action, ...]:
    actions: list[Action] = []
    words = {command.word: command for command in done}
    # The review handler, which knows the findings, answers to `dismiss`.
    if refusals or set(words) != {"dismiss"}:
        actions.append(react(event, "+1" if set(words) - {"dismiss"} else "confused"))
    help_here = help_text(services.commands, authors=services.history.counts_authors)
    answers = [*([help_here] if "help" in words else []), *dict.fromkeys(refusals)]
    if answers and not _has_enough_answers(event, services):
        actions.append(answer(event, "\n\n".join(answers)))
    if "accept" in words:
        actions += _accept(event, services, words["accept"].reason)
    elif "pause" in words or "resume" in words:
        actions += _invitation(event, services, decision)
    return tuple(actions)


def _has_enough_answers(event: CommandEvent, services: Services) -> bool:
    earlier_answers = [
        decision
        for decision in services.history.decisions(event.subject.key, "commands")
        if isinstance(decision.record, CommandsRecord)
        and decision.record.comment != event.comment.id
        and any(isinstance(action, UpsertComment) and action.task == "commands" for action in decision.actions)
    ]
    return len(earlier_answers) >= MAX_ANSWERS and not may_triage(services.forge.permission(event.sender.login))


def _invitation(event: CommandEvent, services: Services, decision: Decision) -> tuple[Action, ...]:
    """Return the edit of a bounce comment that says whether a reply will be read, which is not so while paused."""
    past = services.history.decisions(event.subject.key, "triage", "commands")
    last = history.last_verdict(past)
    if last is None or not history.bounced(last) or history.accepted(past):
        return ()
    for action in last.actions:
        if isinstance(action, UpsertComment):
            old, new = (READ_AGAIN, PAUSED) if is_paused((*past, decision)) else (PAUSED, READ_AGAIN)
            body = action.body.replace(old, new)
            return (action.model_copy(update={"body": body, "only_edit": True}),)
    return ()


def _accept(event: CommandEvent | events.IssueUnlabeled, services: Services, why: str) -> tuple[Action, ...]:
    """Return the actions that accept an issue: the bounce comment becomes one line, and the label is removed."""
    actions: list[Action] = []
    past = services.history.decisions(event.subject.key, "triage")
    body = accepted(event.sender.login, why)
    if history.bounced(history.last_verdict(past)):
        actions.append(UpsertComment(task="triage", number=event.number, body=body, only_edit=True))
    last_closing = history.last_verdict(services.history.decisions(event.subject.key, "closing"))
    is_closed = not isinstance(event, events.ReviewCommentCreated) and event.issue.state == "closed"
    if last_closing and last_closing.verdict == "closed" and is_closed:
        actions.append(SetIssueState(number=event.number, state="open"))
    if last_closing and last_closing.verdict != "answered" and isinstance(last_closing.record, ClosingRecord):
        about = last_closing.record.about
        actions.append(UpsertComment(task="closing", number=event.number, body=body, about=about, only_edit=True))
    config = services.config.triage
    new_labels = (config.accepted_label,) if config.accepted_label else ()
    remove = dict.fromkeys((config.label, *(history.standing_labels(past) or ())))
    actions.append(SetLabels(number=event.number, add=new_labels, remove=tuple(remove)))
    return tuple(actions)


def accepted(login: str, why: str) -> str:
    """Return the bounce comment after a maintainer accepted the issue."""
    reason = f": {clean_line(why, limit=MAX_REASON).rstrip('.')}" if why else ""
    return f"Accepted as is by {login}{reason}."


def help_text(commands: CommandSet, *, authors: bool = True) -> str:
    """Return the list of commands; ``authors``: True if authors may use some of them here."""
    rows = [
        f"- `/bouncer {command.word}`: {command.help}"
        f"{' (its author may ask too)' if authors and command.author_limit else ''}"
        for command in commands
    ]
    return "\n".join(["Commands, each on a line of its own:", "", *rows])
