"""Opt-in: a bounced issue whose author never answers is closed as not planned, a week after a warning.

Everything follows from what was decided and from what stands on the issue: only a bounce or warning that is still
the last word leads on, and whoever else took the issue up, in whatever way, keeps it open. An answer takes a
warning back and opens an issue again that was closed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core import events
from bot.core.actions import Action, Decision, SetIssueState, UpsertComment
from bot.core.commands import Command
from bot.core.events import Event
from bot.core.subjects import Comment, Issue
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared import input_bouncer as bouncer
from bot.features.shared.input_bouncer import WARNING
from bot.features.shared.records import ClosingRecord, TriageRecord

_Answer = events.CommentCreated | events.CommentEdited | events.IssueEdited


def concerns(event: Event, commands: Sequence[Command]) -> bool:
    """Return True if time is up, the author of an issue says something, or a person's comment is deleted."""
    if isinstance(event, events.IssueUnanswered):
        return True
    if isinstance(event, events.CommentDeleted):
        return not (event.issue.is_pull_request or event.comment.author.is_bot)
    if not isinstance(event, _Answer) or event.issue.is_pull_request or not event.by_author:
        return False
    return isinstance(event, events.IssueEdited) or not commands


def handle(event: Event, services: Services) -> Decision | None:
    """Warn, close, or take either back; None where nothing of it is due."""
    if not isinstance(event, events.IssueUnanswered | events.CommentDeleted | _Answer):
        return None
    past = services.history.decisions(event.subject.key, "triage", "commands", "closing")
    if isinstance(event, events.CommentDeleted):
        return _deleted(event, past)
    if isinstance(event, events.IssueUnanswered):
        return _time_is_up(event, services, past)
    return _answered(event, services, past)


def _time_is_up(event: events.IssueUnanswered, services: Services, past: Sequence[Decision]) -> Decision | None:
    config = services.config.triage
    last = history.last_verdict(past)
    if last is None or _time_of(last) != event.since:
        return None  # something was decided since, which has a time of its own
    if config.close_after_days is None or config.mode != "comment":
        return None
    issue = services.forge.issue(event.number)
    if why_not := _why_not(issue, event, services, past):
        return Decision(kind="closing", subject=event.subject, abstained="skipped:touched", reason=why_not)
    warned = last.kind == "closing"
    about = last.record.about if isinstance(last.record, ClosingRecord) else f"{event.since:.0f}"
    days = config.close_after_days if warned else config.close_after_days - WARNING
    body = bouncer.unanswered("closed" if warned else "warning", days, history.language(past))
    comment = UpsertComment(task="closing", number=issue.number, body=body, about=about)
    close = SetIssueState(number=issue.number, state="closed", comments=issue.comments)
    return Decision(
        kind="closing",
        subject=event.subject,
        verdict="closed" if warned else "warned",
        actions=(close, comment) if warned else (comment,),
        reason="nobody has answered the warning" if warned else "nobody has answered",
        record=ClosingRecord(about=about, at=services.clock().timestamp()),
        again_days=None if warned else WARNING,
    )


def _time_of(decision: Decision) -> float | None:
    record = decision.record
    return record.at if isinstance(record, TriageRecord | ClosingRecord) else None


def _why_not(issue: Issue, event: events.IssueUnanswered, services: Services, past: Sequence[Decision]) -> str:
    """Why an issue stays open, in a sentence; empty where nothing speaks for it."""
    config, before = services.config.triage, event.issue
    if issue.state == "closed":
        return "it is closed already"
    if history.paused(past) or history.accepted(past) or any(map(history.marked, past)):
        return "a maintainer has spoken"
    if issue.revision != before.revision:
        return "its text has changed"
    if config.label.lower() not in map(str.lower, issue.labels):
        return f"{config.label} was taken off"
    if issue.claimed:
        return "it is assigned to somebody, or planned"
    ours = {label.lower() for label in services.config.labels}
    if {each.lower() for each in issue.labels} - {each.lower() for each in before.labels} - ours:
        return "somebody labelled it"
    bounce = history.triage_records(past)[-1]
    if bounce.reopened:
        return "somebody opened it again"
    if any(_takes_up(comment, issue, bounce) for comment in services.forge.comments(issue.number)):
        return "people are talking about it"
    if any(isinstance(decision.record, ClosingRecord) and decision.record.taken_up_by for decision in past):
        return "people were talking about it"
    return ""


def _takes_up(comment: Comment, issue: Issue, bounce: TriageRecord) -> bool:
    """Return True if a person other than the author wrote the comment, or the author did after the bounce."""
    if comment.author.is_bot:
        return False
    return comment.author.id != issue.author.id or comment.id not in bounce.answers


def _deleted(event: events.CommentDeleted, past: Sequence[Decision]) -> Decision | None:
    """Remember that a person took a bounced issue up: the comment cannot be read any more when time is up."""
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


def _answered(event: _Answer, services: Services, past: Sequence[Decision]) -> Decision | None:
    """The warning is taken back, and what was closed here is opened; it is read again like any other answer."""
    last = next((each for each in reversed(past) if each.kind == "closing" and each.verdict), None)
    if last is None or last.verdict == "answered" or not isinstance(last.record, ClosingRecord):
        return None
    number, actions = event.number, list[Action]()
    if event.issue.state == "closed":
        # A maintainer may have opened and closed it since: only what we closed is opened.
        if services.forge.issue(number).closed_by != services.forge.identity().id:
            return None
        actions.append(SetIssueState(number=number, state="open"))
    about = last.record.about
    body = bouncer.sentences(history.language(past))["answered"]
    actions.append(UpsertComment(task="closing", number=number, body=body, about=about, only_edit=True))
    return Decision(
        kind="closing",
        subject=event.subject,
        verdict="answered",
        actions=tuple(actions),
        reason=f"{event.sender.login} has answered",
        record=ClosingRecord(about=about, at=services.clock().timestamp()),
    )
