"""Earlier findings on a pull request, and people's reactions to them. Decisions are ordered, oldest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bot.core import events
from bot.core.actions import Decision, SubmitReview, UpsertComment
from bot.core.subjects import PullRequest, ReviewComment, may_triage
from bot.features.feedback.record import FeedbackRecord
from bot.features.review.record import ReviewRecord
from bot.features.shared.findings import Finding
from bot.github.protocol import Forge, Reactions

#: The verdicts of a review.
VERDICTS = frozenset({"defects", "clean", "not_reviewed"})


@dataclass(frozen=True, slots=True)
class PastFindings:
    """Earlier findings on a pull request by their state.

    ``resolved`` and ``answered`` are the fingerprints of posted findings whose thread was resolved or has a reply.
    """

    posted: tuple[Finding, ...] = ()
    outdated: tuple[Finding, ...] = ()
    dismissed: tuple[Finding, ...] = ()
    summarised: bool = False
    resolved: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding that was ever posted."""
        return (*self.posted, *self.outdated, *self.dismissed)

    @property
    def settled(self) -> tuple[Finding, ...]:
        """Findings whose thread was resolved or answered, and those whose code is gone."""
        closed = self.resolved | self.answered
        return (*self.outdated, *(finding for finding in self.posted if finding.fingerprint in closed))

    @property
    def open(self) -> tuple[Finding, ...]:
        """Posted findings whose thread was not resolved."""
        return tuple(finding for finding in self.posted if finding.fingerprint not in self.resolved)


def recall(past: Sequence[Decision]) -> PastFindings:
    """Return the state of all earlier findings."""
    posted: dict[str, Finding] = {}
    outdated: dict[str, Finding] = {}
    dismissed: dict[str, Finding] = {}
    resolved: set[str] = set()
    summarised = False
    for decision in past:
        # In shadow mode a decision posts none.
        for finding in decision.record_of(ReviewRecord).posted if decision.actions else ():
            posted[finding.fingerprint] = finding
            outdated.pop(finding.fingerprint, None)
        for fingerprint in decision.record_of(ReviewRecord).outdated:
            if fingerprint in posted:
                outdated[fingerprint] = posted.pop(fingerprint)
        signals = decision.record_of(FeedbackRecord).signals
        resolved |= {signal.key.rpartition(":")[2] for signal in signals if signal.source == "resolved"}
        for fingerprint in _dismissed(decision, (*posted, *outdated)):
            dismissed[fingerprint] = (posted if fingerprint in posted else outdated).pop(fingerprint)
        summarised |= decision.kind == "review" and any(
            isinstance(action, UpsertComment) and action.task == "review" for action in decision.actions
        )
    return PastFindings(
        tuple(posted.values()),
        tuple(outdated.values()),
        tuple(dismissed.values()),
        summarised,
        frozenset(resolved),
    )


def _dismissed(decision: Decision, fingerprints: Iterable[str]) -> tuple[str, ...]:
    """Return those of ``fingerprints`` that a decision records as dismissed, by command or by a reaction."""
    by_command = set(decision.record_of(ReviewRecord).dismissed)
    signals = decision.record_of(FeedbackRecord).signals
    keys = [signal.key for signal in signals if signal.outcome == "dismissed"]
    return tuple(
        fingerprint
        for fingerprint in fingerprints
        if fingerprint in by_command or any(key.endswith(fingerprint) for key in keys)
    )


def last_on(past: Sequence[Decision], pull: PullRequest) -> Decision | None:
    """Return the newest review of that head and base with a verdict. A dismissal is no review."""
    reviews = (
        decision for decision in reversed(past) if decision.kind == "review" and decision.verdict in VERDICTS
    )
    return next((review for review in reviews if is_of_change(review, pull)), None)


def is_of_change(review: Decision, pull: PullRequest) -> bool:
    """Return True if a review is of the head of a pull request, on its base branch if it names one."""
    base = review.record_of(ReviewRecord).base
    return review.subject.revision == pull.revision and base in ("", pull.base_ref)


def submitted(decision: Decision | None) -> bool:
    """Return True if a decision posted a review with inline comments."""
    return decision is not None and any(isinstance(action, SubmitReview) for action in decision.actions)


def finding_of(comment: ReviewComment, findings: Iterable[Finding]) -> Finding | None:
    """Return the finding of an inline comment of ours, by its fingerprint, else by its first words."""
    candidates = [finding for finding in findings if finding.path == comment.path]
    by_fingerprint = next((finding for finding in candidates if finding.fingerprint in comment.body), None)
    text = _letters(comment.body)
    by_text = (finding for finding in candidates if _letters(finding.comment)[:40] in text)
    return by_fingerprint or next(by_text, None)


def _letters(text: str) -> str:
    """Return letters and digits only, which do not change when text is made safe to post."""
    return "".join(char for char in text.lower() if char.isalnum())


#: Comments of ours whose reactions are read, with one request per comment.
MAX_REACTIONS = 30


def our_comments(number: int, forge: Forge) -> tuple[ReviewComment, ...]:
    """Return our comments on a pull request that opened a thread, oldest first."""
    return _openers_by_us(forge.review_comments(number), forge)


def _openers_by_us(comments: Iterable[ReviewComment], forge: Forge) -> tuple[ReviewComment, ...]:
    app = forge.identity().id
    return tuple(comment for comment in comments if comment.author.id == app and comment.in_reply_to is None)


def in_thread(event: events.ReviewCommentCreated, findings: Iterable[Finding], forge: Forge) -> Finding | None:
    """Return the finding in whose thread a comment is."""
    comments = our_comments(event.number, forge)
    root = next((comment for comment in comments if comment.id == event.comment.in_reply_to), None)
    return finding_of(root, findings) if root is not None else None


def is_rejected(thumbs: Reactions, forge: Forge) -> bool:
    """Return True if a person who may dismiss findings reacted with a thumbs-down."""
    return any(may_triage(forge.permission(user.login)) for user in thumbs.down)


def live(memory: PastFindings, pull: PullRequest, forge: Forge) -> PastFindings:
    """Return ``memory`` compared with the comments on the pull request.

    A finding without its comment was never posted (a newer push superseded it). A finding with a thumbs-down by a
    person with triage permission is dismissed, and one with a person's reply in its thread is answered.
    """
    if not any(finding.line is not None for finding in memory.posted):
        return memory
    all_comments = forge.review_comments(pull.number)
    comments: dict[str, ReviewComment] = {}
    for comment in _openers_by_us(all_comments, forge):
        if finding := finding_of(comment, memory.posted):
            comments[finding.fingerprint] = comment
    rejected = {
        fingerprint
        for fingerprint, comment in tuple(comments.items())[-MAX_REACTIONS:]
        if is_rejected(forge.reactions(comment.id, review=True), forge)
    }
    threads_with_reply = {comment.in_reply_to for comment in all_comments if not comment.author.is_bot}
    present = [finding for finding in memory.posted if finding.line is None or finding.fingerprint in comments]
    return replace(
        memory,
        posted=tuple(finding for finding in present if finding.fingerprint not in rejected),
        dismissed=(*memory.dismissed, *(finding for finding in present if finding.fingerprint in rejected)),
        answered=frozenset(key for key, comment in comments.items() if comment.id in threads_with_reply),
    )
