"""Input bouncer: is this issue specified well enough to act on?

An issue is judged when it is opened, reopened or edited, when its author answers a bounce, and on
``/bouncer recheck``. A bounced one gets one sticky comment and a label; when it becomes clear, the label goes
and the comment shrinks to a line. An issue that is fine gets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.core import events
from bot.core.actions import Action, Decision, React, SetLabels, UpsertComment
from bot.core.commands import Command, parse
from bot.core.events import Event
from bot.core.subjects import Comment, Issue, at_least
from bot.features.services import Services
from bot.features.shared import history, investigation
from bot.features.shared import input_bouncer as bouncer
from bot.features.shared.input_bouncer import WARNING, InputReply, InputVerdict, TranslatedReply
from bot.features.shared.investigation import Notes
from bot.features.shared.records import TriageRecord, model_reply
from bot.features.shared.rights import asked_for
from bot.models.protocol import Prompt

Judged = events.IssueShown | events.IssueLabeled | events.RecheckRequested
Said = events.CommentCreated | events.CommentEdited


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Whether an event can give cause to judge: a text is new, its author answers, or somebody asks."""
    if not isinstance(event, Judged | Said) or event.issue.is_pull_request:
        return False
    if isinstance(event, events.IssueLabeled):
        return not event.sender.is_bot
    if isinstance(event, Judged):
        return True
    if commands:
        return isinstance(event, events.CommentCreated) and any(command.word == "recheck" for command in commands)
    return event.by_author


def supersedes(newer: Event, older: Event) -> bool:
    """Return True if judging the newer event covers the older one; answers are read with all before them."""
    if _answers_bounce(newer):
        return _answers_bounce(older)
    return isinstance(newer, events.IssueShown) and isinstance(older, events.IssueShown)


def _answers_bounce(event: Event) -> bool:
    return isinstance(event, events.CommentCreated) and event.by_author and not parse(event.comment.body)


def handle(event: Event, services: Services) -> Decision | None:
    """Judge the issue of an event; None where the event gives no cause to."""
    if services.config.triage.mode == "off" or not isinstance(event, Judged | Said):
        return None
    # What we open again was answered.
    if event.sender.id == services.forge.identity().id and not isinstance(event, events.IssueReopened):
        return None
    past = services.history.decisions(event.subject.key, "triage", "commands")
    if isinstance(event, events.IssueLabeled):
        return _marked(event, services, past)
    asked = isinstance(event, events.RecheckRequested) or asked_for("recheck", event, services) is not None
    if not asked and not _gives_cause(event, services, past):
        return None
    # Only maintainers can ask while the subject is paused.
    why_not = bouncer.skip_reason(event.issue, services.config.triage, past, despite_pause=asked) or (
        None if asked else _not_meant(event.issue, services)
    )
    if why_not:
        word, reason = why_not
        return Decision(kind="triage", subject=event.subject, abstained=word, reason=reason)
    return _judge(event, services, past)


def _marked(event: events.IssueLabeled, services: Services, past: Sequence[Decision]) -> Decision | None:
    """A maintainer who sets the label means that the issue bounces: the model only finds the questions."""
    if event.label.lower() != services.config.triage.label.lower() or event.issue.state == "closed":
        return None
    if history.paused(past) or (history.bounced(history.last_verdict(past)) and not history.accepted(past)):
        return None
    # A form sets labels in its author's name.
    if not at_least(services.forge.permission(event.sender.login), "triage"):
        return None
    return _judge(event, services, past)


def _gives_cause(event: Judged | Said, services: Services, past: Sequence[Decision]) -> bool:
    """Whether the issue has to be read again because of this event."""
    last = history.last_verdict(past)
    if isinstance(event, events.IssueEdited):
        return last is None or last.subject.revision != event.issue.revision
    if isinstance(event, Said):
        return not services.commands.read(event.comment.body) and history.bounced(last)
    return True


def _not_meant(issue: Issue, services: Services) -> tuple[str, str] | None:
    """Why nobody who did not ask for it is told about this issue."""
    config = services.config.triage
    if config.authors == "external" and issue.author_association in _INSIDERS:
        return "skipped:insider", f"{issue.author.login} belongs to the project (triage.authors: external)"
    kind = bouncer.kind(issue)
    if kind in config.ignore_kinds:
        return f"skipped:{kind}", f"triage.ignore_kinds names it: {kind}"
    return None


#: GitHub's author associations of people who work on the repository.
_INSIDERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


def _judge(event: Judged | Said, services: Services, past: Sequence[Decision]) -> Decision:
    issue, config = event.issue, services.config.triage
    last = history.last_verdict(past)
    answers = () if last is None and isinstance(event, events.IssueOpened) else _answers(issue, services)
    asked = history.questions(past)
    # A question that the author replied to is not put again, whatever the reply says. An edit answers only what
    # the model no longer asks about.
    answered = history.answered(past, [each.id for each in answers if each.author.id == issue.author.id])
    prompt = bouncer.question(services.prompts, config, issue, answers, asked)
    prompt = prompt.model_copy(update={"subject": event.subject.key})
    notes = _looked(prompt, services)
    prompt = investigation.informed(services.prompts, prompt, notes)
    schema: type[InputReply] = TranslatedReply if config.language == "auto" else InputReply
    reply = services.model.complete(prompt, schema)
    by = event.sender.login if isinstance(event, events.IssueLabeled) else ""
    verdict = bouncer.verdict(reply.value, config, answered, by)
    reason = "not specified well enough" if verdict.bounced else "specified well enough"
    reason = f"{by} asked for details" if by else reason
    return Decision(
        kind="triage",
        subject=event.subject,
        verdict=verdict.label,
        actions=(
            *_seen(event, services),
            *_actions(verdict, issue, services, reply.model, past, again=bool(answered)),
        ),
        reason=reason,
        record=TriageRecord(
            **{name: value for name, value in verdict if name != "marked_by" or value},
            **dict(model_reply(reply, prompt.hash, notes)),
            prompt=services.prompts.hash(f"triage.{config.prompt}"),
            config=services.config.hash,
            harm=config.harm,
            answers=tuple(comment.id for comment in answers),
            **_timed(event, services),
        ),
        again_days=_until_warning(verdict, services),
        usage=notes.usage + reply.usage,
        model=reply.model,
    )


def _until_warning(verdict: InputVerdict, services: Services) -> int | None:
    """Days until the author of a bounced issue is warned, where the maintainers want it closed in the end."""
    config = services.config.triage
    if not verdict.bounced or config.mode != "comment" or config.close_after_days is None:
        return None
    return config.close_after_days - WARNING


def _timed(event: Judged | Said, services: Services) -> dict[str, Any]:
    """What decides whether an issue may be closed."""
    if services.config.triage.close_after_days is None:
        return {}
    ours = (event.issue.author.id, services.forge.identity().id)
    reopened = isinstance(event, events.IssueReopened) and event.sender.id not in ours
    return {"at": services.clock().timestamp(), "reopened": reopened}


def _looked(prompt: Prompt, services: Services) -> Notes:
    """What the code says, where the maintainers want it looked at; nothing was looked at elsewhere."""
    if not services.config.triage.investigate:
        return Notes()
    ref = services.forge.head(services.repository.default_branch)
    return investigation.investigate(services.model, services.prompts, prompt, services.forge, ref)


def _answers(issue: Issue, services: Services) -> tuple[Comment, ...]:
    """What people said below the issue: no bots, no commands."""
    return tuple(
        comment
        for comment in services.forge.comments(issue.number)
        if not comment.author.is_bot and comment.body.strip() and not services.commands.read(comment.body)
    )


def _seen(event: Judged | Said, services: Services) -> tuple[Action, ...]:
    """A sign to the author that an answer was read, also where nothing else is to be seen of it."""
    if services.config.triage.mode != "comment" or not isinstance(event, events.CommentCreated):
        return ()
    return (
        () if services.commands.read(event.comment.body) else (React(comment_id=event.comment.id, content="eyes"),)
    )


def _actions(
    verdict: InputVerdict, issue: Issue, services: Services, model: str, past: Sequence[Decision], *, again: bool
) -> tuple[Action, ...]:
    config, number, was_bounced = services.config.triage, issue.number, history.label_stands(past)
    accepted = (config.accepted_label,) if config.accepted_label else ()
    if verdict.bounced:
        labels = SetLabels(number=number, add=(config.label,), remove=accepted)
        if config.mode == "label":
            return (labels,)
        app = services.forge.identity().login
        day = services.clock().date()
        paused = history.paused(past)
        body = bouncer.comment(verdict, model, day, services.repository, app, again=again, paused=paused)
        return (UpsertComment(task="triage", number=number, body=body), labels)
    gone = (config.label,) if was_bounced else ()
    actions: list[Action] = []
    if was_bounced and config.mode != "label":
        body = bouncer.cleared(verdict.language)
        actions.append(UpsertComment(task="triage", number=number, body=body, only_edit=True))
    if gone or accepted:
        actions.append(SetLabels(number=number, add=accepted, remove=gone))
    return tuple(actions)
