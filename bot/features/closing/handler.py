"""Opt-in: a bounced issue whose author never answers is closed as not planned, a week after a warning.

The issue is closed only if the bounce or the warning is still the last event on it: any action by another person
keeps it open. An answer of the author withdraws a warning and reopens an issue that was closed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core import events
from bot.core.actions import Action, Decision, SetIssueState, UpsertComment
from bot.core.commands import Command
from bot.core.config import WARNING_DAYS, RepoConfig, TriageConfig
from bot.core.subjects import Comment, Issue
from bot.features.closing.record import ClosingRecord
from bot.features.feedback.record import FeedbackRecord
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.history import DISCLOSURE, skip_reason
from bot.features.shared.rights import is_paused
from bot.features.triage.record import TriageRecord

Answer = events.CommentCreated | events.CommentEdited | events.IssueEdited
Trigger = Answer | events.CommentDeleted | events.IssueUnanswered

WARNING = (
    "I asked for more details {days} days ago and have not heard back. If nothing happens, I'll close this issue "
    "in a week. To keep it open, reply below or edit the issue. *" + DISCLOSURE + "*"
)
CLOSED = (
    "Closed for now, because nobody has answered in {days} days. Reply below or edit the issue, and I'll open it "
    "again. *" + DISCLOSURE + "*"
)
ANSWERED = "Thanks for coming back to this. The issue stays open."


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the time is up, the author edits or comments, or a person's comment is deleted."""
    if isinstance(event, events.IssueUnanswered):
        return event.task in ("triage", "closing")
    if isinstance(event, events.CommentDeleted):
        return not (event.issue.is_pull_request or event.comment.author.is_bot)
    if event.issue.is_pull_request or not event.by_author:
        return False
    return isinstance(event, events.IssueEdited) or not commands


def closes_issues(config: TriageConfig) -> bool:
    """Return True if the maintainers want unanswered issues to be closed."""
    return config.mode == "comment" and config.close_after_days is not None


def handle(event: Trigger, services: Services) -> Decision | None:
    """Warn, close, or undo either; None if none of them is due."""
    past = services.history.decisions(event.subject.key, "triage", "commands", "closing")
    if isinstance(event, events.CommentDeleted):
        return _deleted(event, past)
    if isinstance(event, events.IssueUnanswered):
        return _time_is_up(event, services, past)
    return _answered(event, services, past)


def _time_is_up(event: events.IssueUnanswered, services: Services, past: Sequence[Decision]) -> Decision | None:
    config = services.config.triage
    last = history.last_verdict(past)
    record = last.record if last else None
    if last is None or not isinstance(record, TriageRecord | ClosingRecord) or record.at != event.since:
        return None  # A later decision has a time of its own.
    if not closes_issues(config):
        return None
    issue = services.forge.issue(event.number)
    if reason := _reason_to_keep_open(issue, event, services, past):
        return Decision(kind="closing", subject=event.subject, abstained="skipped:touched", reason=reason)
    warned = last.kind == "closing"
    about = record.about if isinstance(record, ClosingRecord) else f"{event.since:.0f}"
    text, days = (CLOSED, config.close_after_days) if warned else (WARNING, config.warn_after_days)
    body = text.format(days=days)
    comment = UpsertComment(task="closing", number=issue.number, body=body, about=about)
    close = SetIssueState(number=issue.number, state="closed", comments=issue.comments)
    return Decision(
        kind="closing",
        subject=event.subject,
        verdict="closed" if warned else "warned",
        actions=(close, comment) if warned else (comment,),
        reason="nobody has answered the warning" if warned else "nobody has answered",
        record=ClosingRecord(about=about, at=services.clock().timestamp()),
        again_days=None if warned else WARNING_DAYS,
    )


def _reason_to_keep_open(
    issue: Issue, event: events.IssueUnanswered, services: Services, past: Sequence[Decision]
) -> str:
    """Return why the issue stays open; empty if it can be closed."""
    if issue.state == "closed":
        return "it is closed already"
    if is_paused(past) or history.accepted(past) or any(map(history.marked, past)):
        return "a maintainer has spoken"
    if issue.revision != event.issue.revision:
        return "its text has changed"
    if change := _labels_changed(issue, event.issue, services.config):
        return change
    if issue.claimed:
        return "it is assigned to somebody, or planned"
    if skip := skip_reason(issue, services.config.triage, past):
        return skip[1]
    return _taken_up(issue, services, past)


def _labels_changed(issue: Issue, before: Issue, config: RepoConfig) -> str:
    """Return how a person changed the labels since the bounce; empty if no person did."""
    bounce_label = config.triage.label
    labels, labels_before, ours = (
        {label.lower() for label in names} for names in (issue.labels, before.labels, config.labels)
    )
    if bounce_label.lower() not in labels:
        return f"{bounce_label} was taken off"
    return "somebody labelled it" if labels - labels_before - ours else ""


def _taken_up(issue: Issue, services: Services, past: Sequence[Decision]) -> str:
    """Return what people did with the issue since the bounce; empty if they did nothing."""
    bounce = history.triage_records(past)[-1]
    if bounce.reopened:
        return "somebody opened it again"
    if any(_takes_up(comment, issue, bounce) for comment in services.forge.comments(issue.number)):
        return "people are talking about it"
    if any(decision.record_of(ClosingRecord).taken_up_by for decision in past):
        return "people were talking about it"
    reactions = services.history.decisions(f"{services.forge.repository}#{issue.number}", "feedback")
    signals = [signal for decision in reactions for signal in decision.record_of(FeedbackRecord).signals]
    if any(signal.source in ("deleted", "edited") for signal in signals):
        return "my comment was deleted or edited"
    return ""


def _takes_up(comment: Comment, issue: Issue, bounce: TriageRecord) -> bool:
    """Return True if a person other than the author wrote the comment, or the author did after the bounce."""
    if comment.author.is_bot:
        return False
    return comment.author.id != issue.author.id or comment.id not in bounce.answers


def _deleted(event: events.CommentDeleted, past: Sequence[Decision]) -> Decision | None:
    """Record that a person took up a bounced issue: a deleted comment cannot be read when the time is up."""
    bounces = [record for record in history.triage_records(past) if record.bounced]
    if not bounces or not _takes_up(event.comment, event.issue, bounces[-1]):
        return None
    return Decision(
        kind="closing",
        subject=event.subject,
        abstained="skipped:touched",
        reason=f"a comment by {event.comment.author.login} was deleted",
        record=ClosingRecord(taken_up_by=event.comment.author.login),
    )


def _answered(event: Answer, services: Services, past: Sequence[Decision]) -> Decision | None:
    """Withdraw the warning and reopen what was closed here. Triage reads the answer as usual."""
    steps = (decision for decision in reversed(past) if decision.kind == "closing" and decision.verdict)
    last = next(steps, None)
    if last is None or last.verdict == "answered" or not isinstance(last.record, ClosingRecord):
        return None
    number, actions = event.number, list[Action]()
    if event.issue.state == "closed":
        # A maintainer may have closed it since, and only our own closing is undone.
        if services.forge.issue(number).closed_by != services.forge.identity().id:
            return None
        actions.append(SetIssueState(number=number, state="open"))
    about = last.record.about
    actions.append(UpsertComment(task="closing", number=number, body=ANSWERED, about=about, only_edit=True))
    return Decision(
        kind="closing",
        subject=event.subject,
        verdict="answered",
        actions=tuple(actions),
        reason=f"{event.sender.login} has answered",
        record=ClosingRecord(about=about, at=services.clock().timestamp()),
    )
