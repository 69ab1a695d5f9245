"""Record people's reactions to posts: thumbs, resolved threads, deleted or edited comments, outcomes of subjects.

Nothing is written to GitHub. ``signals`` computes rates from the records, and mutes review categories that are
dismissed too often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from bot.calibration.fates import asks, blamed, undone
from bot.core import events
from bot.core.actions import Decision
from bot.core.commands import Command
from bot.core.subjects import KnownFate, ReviewComment
from bot.features.feedback.record import FeedbackRecord, Outcome, Signal
from bot.features.services import Services
from bot.features.shared import history
from bot.features.shared.findings import Finding
from bot.features.shared.labels import BouncerRecord
from bot.features.shared.links import issue_links
from bot.features.shared.review_history import MAX_REACTIONS, finding_of, is_rejected, our_comments, recall

#: Marks an answer to a command; a change of it says nothing about the bounce.
_ANSWER = "<!-- bouncer:commands:"

OnReviewComment = events.ReviewCommentDeleted | events.ReviewCommentEdited
OnFinding = events.ReviewThreadResolved | OnReviewComment | events.PullRequestClosed
OnBounce = events.IssueClosed | events.CommentDeleted | events.CommentEdited
Trigger = OnFinding | OnBounce


def concerns(event: Trigger, commands: Sequence[Command]) -> bool:
    """Return True if the event may be a reaction; of comments only an app's that another account changed."""
    if isinstance(event, events.CommentEdited | events.CommentDeleted | OnReviewComment):
        return event.comment.author.is_bot and event.comment.author.id != event.sender.id
    if isinstance(event, events.IssueClosed) and event.sender.is_bot:
        return event.issue.state_reason == "not_planned" and bool(event.issue.labels)
    return True


def handle(event: Trigger, services: Services) -> Decision | None:
    """Record the signals of an event; None if there are none."""
    all_signals = _on_findings(event, services) if isinstance(event, OnFinding) else _on_bounce(event, services)
    signals = tuple(all_signals)
    fates = tuple(_fates(event, services))
    if not signals and not fates:
        return None
    reasons = {f"{signal.outcome} ({signal.source})" for signal in signals} | {fate.why for fate in fates}
    return Decision(
        kind="feedback",
        subject=event.subject,
        verdict=signals[0].outcome if len(signals) == 1 else "several" if signals else "ended",
        reason=", ".join(sorted(reasons)),
        record=FeedbackRecord(signals=signals, fates=fates),
    )


def _fates(event: Trigger, services: Services) -> Iterator[KnownFate]:
    """Yield the outcomes of judged subjects, in shadow mode too; the threshold is compared with them."""
    name = event.repository.full_name
    if isinstance(event, events.IssueClosed) and event.issue.state_reason == "not_planned":
        labels = [label for label in event.issue.labels if asks(label, (services.config.triage.label,))]
        if labels or not event.sender.is_bot:
            why = f"closed with {labels[0]}, and no answer" if labels else "closed as not planned"
            yield from _fate("triage", f"{name}#{event.number}", False, why, services)
    if not isinstance(event, events.PullRequestClosed) or not event.pull_request.merged:
        return
    pull = event.pull_request
    here = f"#{pull.number}"
    for link in issue_links(pull, services):
        if link.repository.lower() == name.lower():
            key = f"{name}#{link.number}"
            yield from _fate("triage", key, True, f"closed by the merged pull request {here}", services)
    yield from _fate("verify", f"{name}{here}", True, "merged", services)
    text = f"{pull.title}\n{pull.body}"
    for number in sorted((undone(text) | blamed(text)) - {pull.number}):
        yield from _fate("verify", f"{name}#{number}", False, f"reverted or repaired by {here}", services)


def _fate(
    bouncer: Literal["triage", "verify"], subject: str, good: bool, why: str, services: Services
) -> Iterator[KnownFate]:
    """Yield the outcome with the first verdict on an issue, or the last one on a pull request."""
    verdicts = [decision for decision in services.history.decisions(subject, bouncer) if decision.verdict]
    if not verdicts:
        return
    record = verdicts[0 if bouncer == "triage" else -1].record
    if not isinstance(record, BouncerRecord):
        return
    yield KnownFate(
        subject=subject,
        bouncer=bouncer,
        good=good,
        why=why,
        p_bounce=record.p_bounce,
        bounced=record.bounced,
        harm=record.harm,
    )


def _on_findings(event: OnFinding, services: Services) -> Iterator[Signal]:
    past = services.history.decisions(event.subject.key, "review", "commands", "feedback")
    findings = recall(past).posted
    if not findings:
        return
    if isinstance(event, events.PullRequestClosed):
        yield from _at_the_end(event, findings, services)
    elif isinstance(event, events.ReviewThreadResolved):
        comments = {comment.id: comment for comment in our_comments(event.number, services.forge)}
        for comment in (comments[id_] for id_ in event.comment_ids if id_ in comments):
            yield from _signal(comment, findings, event, "addressed", "resolved")
    elif event.comment.author.id == services.forge.identity().id != event.sender.id:
        source = "deleted" if isinstance(event, events.ReviewCommentDeleted) else "edited"
        yield from _signal(event.comment, findings, event, "dismissed", source)


def _at_the_end(
    event: events.PullRequestClosed, findings: tuple[Finding, ...], services: Services
) -> Iterator[Signal]:
    """Yield a signal for every finding on a closed pull request: thumbs, resolved thread, or neither."""
    resolved = frozenset(services.forge.resolved_threads(event.number))
    for comment in our_comments(event.number, services.forge)[-MAX_REACTIONS:]:
        thumbs = services.forge.reactions(comment.id, review=True)
        outcome: Outcome = "addressed"
        source = "reaction"
        if is_rejected(thumbs, services.forge):
            outcome = "dismissed"
        elif not thumbs.up:
            outcome, source = ("addressed", "resolved") if comment.id in resolved else ("ignored", "closed")
        yield from _signal(comment, findings, event, outcome, source)


def _signal(
    comment: ReviewComment, findings: tuple[Finding, ...], event: OnFinding, outcome: Outcome, source: str
) -> Iterator[Signal]:
    finding = finding_of(comment, findings)
    if finding is not None:
        key = f"{event.subject.key}:{finding.fingerprint}"
        yield Signal(key=key, category=finding.category, outcome=outcome, source=source, by=event.sender.login)


def _on_bounce(event: OnBounce, services: Services) -> Iterator[Signal]:
    past = services.history.decisions(event.subject.key, "triage", "commands")
    if not history.bounced(history.last_verdict(past)):
        return
    outcome: Outcome
    if isinstance(event, events.IssueClosed):
        if event.sender.is_bot:
            return  # Closed as stale, perhaps by us: no person's opinion.
        # An issue that is closed as not planned was not actionable. Other reasons say nothing.
        unplanned = event.issue.state_reason == "not_planned"
        outcome, source = ("addressed", "not_planned") if unplanned else ("ignored", "closed")
    elif _ANSWER in event.comment.body:
        return
    elif event.comment.author.id == services.forge.identity().id != event.sender.id:
        outcome, source = "dismissed", "deleted" if isinstance(event, events.CommentDeleted) else "edited"
    else:
        return
    yield Signal(key=event.subject.key, category="bounce", outcome=outcome, source=source, by=event.sender.login)
