"""Label an issue that is ready for work, and fold a brief into the comment on it. Nothing here asks a model.

An issue is ready if triage found it clear, a maintainer accepted it and, unless reproduction is off, a test
reproduces it. All of it was recorded by other features for the same event or an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core import events
from bot.core.actions import Action, Decision, SetLabels, UpsertComment
from bot.core.commands import Command
from bot.core.events import Event
from bot.features.commands.record import is_paused
from bot.features.ready import texts
from bot.features.ready.record import ReadyRecord
from bot.features.reproduce.record import StoredTest, stored_test
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.issues import posted_suggestion, with_suggestion
from bot.features.triage.record import TriageRecord

Trigger = (
    events.IssueEdited | events.IssueReopened | events.IssueLabeled | events.IssueUnlabeled | events.CommentCreated
)


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if the event can complete what an issue needs, or take it back."""
    if not isinstance(event, Trigger) or event.issue.is_pull_request or event.sender.is_bot:
        return False
    if isinstance(event, events.CommentCreated):
        return any(command.word in ("accept", "reproduce") for command in commands)
    return True


def handle(event: Event, services: Services) -> Decision | None:
    """Decide if the issue became ready, or is not ready any more; None if nothing changed."""
    config = services.config.triage
    if not config.brief or config.mode == "off" or not isinstance(event, Trigger):
        return None
    past = services.history.decisions(event.subject.key)
    if event.issue.state == "closed" or is_paused(past):
        return None
    test = None if services.config.reproduce.mode == "off" else stored_test(past)
    record = _readiness(services, past, test)
    before = history.last_record(past, ReadyRecord) or ReadyRecord()
    if record == before or not (record.ready or before.ready):
        return None
    actions: tuple[Action, ...] = (SetLabels(number=event.number, remove=(config.ready_label,)),)
    if record.ready:
        body = texts.ready(record, test, event.issue.title, services.repository)
        body = with_suggestion(body, posted_suggestion(event.number, services))
        label = SetLabels(number=event.number, add=(config.ready_label,))
        comment = UpsertComment(task="triage", number=event.number, body=body)
        actions = (label,) if config.mode == "label" else (comment, label)
    in_shadow = config.mode == "shadow"
    reason = (
        f"clear, accepted{' and reproduced' if test else ''}" if record.ready else "something is missing again"
    )
    return Decision(
        kind="ready",
        subject=event.subject,
        verdict="ready" if record.ready else "not ready",
        actions=() if in_shadow else actions,
        withheld=actions if in_shadow else (),
        reason=reason,
        record=record,
    )


def _readiness(services: Services, past: Sequence[Decision], test: StoredTest | None) -> ReadyRecord:
    """Return what the issue is ready by; an empty record if something is missing."""
    verdict = history.last_verdict([decision for decision in past if decision.kind == "triage"])
    if verdict is None or not isinstance(verdict.record, TriageRecord) or history.bounced(verdict):
        return ReadyRecord()
    is_reproduced = test is not None or services.config.reproduce.mode == "off"
    if not history.accepted(past) or not is_reproduced:
        return ReadyRecord()
    return ReadyRecord(
        ready=True,
        accepted_by=history.accepted_by(past),
        request=verdict.record.request,
        sha=verdict.record.sha,
        files=verdict.record.files,
        test=f"{test.path}::{test.name}" if test else "",
    )
