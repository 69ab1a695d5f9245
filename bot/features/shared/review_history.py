"""What was said about a pull request, and what people turned down of it; decisions come oldest first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from bot.code.diff import Diff
from bot.code.quotes import Index
from bot.core import events
from bot.core.actions import Decision, SubmitReview, UpsertComment
from bot.core.subjects import PullRequest, ReviewComment, at_least
from bot.features.feedback.record import FeedbackRecord
from bot.features.review.record import ReviewRecord
from bot.features.shared.findings import Finding
from bot.github.protocol import Forge, Reactions

#: What a review can come to; see ``outcome``.
VERDICTS = frozenset({"defects", "clean", "not_reviewed"})


@dataclass(frozen=True, slots=True)
class PastFindings:
    """What was said about a pull request, and what became of it."""

    posted: tuple[Finding, ...] = ()
    gone: tuple[Finding, ...] = ()
    dismissed: tuple[Finding, ...] = ()
    summarised: bool = False
    resolved: frozenset[str] = frozenset()

    @property
    def open(self) -> tuple[Finding, ...]:
        """Findings that stand, and whose thread no person resolved."""
        return tuple(each for each in self.posted if each.fingerprint not in self.resolved)

    @property
    def known(self) -> tuple[Finding, ...]:
        """Everything that a reviewer need not say again."""
        return (*self.posted, *self.dismissed)


def recall(past: Sequence[Decision]) -> PastFindings:
    """The state that all decisions together leave behind."""
    posted: dict[str, Finding] = {}
    gone: dict[str, Finding] = {}
    dismissed: dict[str, Finding] = {}
    resolved: set[str] = set()
    summarised = False
    for decision in past:
        for finding in said(decision):
            posted[finding.fingerprint] = finding
            gone.pop(finding.fingerprint, None)
        for print_ in review_record(decision).outdated:
            if print_ in posted:
                gone[print_] = posted.pop(print_)
        resolved |= _resolved(decision)
        for print_ in rejected(decision, (*posted, *gone)):
            found = posted.pop(print_, None) or gone.pop(print_, None)
            if found is not None:
                dismissed[print_] = found
        summarised |= decision.kind == "review" and any(
            isinstance(action, UpsertComment) and action.task == "review" for action in decision.actions
        )
    return PastFindings(
        tuple(posted.values()), tuple(gone.values()), tuple(dismissed.values()), summarised, frozenset(resolved)
    )


def _resolved(decision: Decision) -> frozenset[str]:
    """Return the fingerprints of findings whose thread was resolved, as feedback recorded it."""
    signals = decision.record.signals if isinstance(decision.record, FeedbackRecord) else ()
    return frozenset(signal.key.rpartition(":")[2] for signal in signals if signal.source == "resolved")


def said(decision: Decision) -> tuple[Finding, ...]:
    """The findings that a review decision asked to post; in shadow mode nothing was."""
    return review_record(decision).posted if decision.actions else ()


def review_record(decision: Decision) -> ReviewRecord:
    """Return what a review left; an empty record for any other decision."""
    return decision.record if isinstance(decision.record, ReviewRecord) else ReviewRecord()


def rejected(decision: Decision, fingerprints: Iterable[str]) -> tuple[str, ...]:
    """Those of ``fingerprints`` that a decision records as dismissed: by command, or by a reaction."""
    named = set(review_record(decision).dismissed)
    signals = decision.record.signals if isinstance(decision.record, FeedbackRecord) else ()
    keys = [signal.key for signal in signals if signal.outcome == "dismissed"]
    return tuple(each for each in fingerprints if each in named or any(key.endswith(each) for key in keys))


def last_on(past: Sequence[Decision], revision: str) -> Decision | None:
    """The newest review of exactly that head that reached a verdict; taking a finding back is no review."""
    reviews = (each for each in reversed(past) if each.kind == "review" and each.verdict in VERDICTS)
    return next((each for each in reviews if each.subject.revision == revision), None)


def submitted(decision: Decision | None) -> bool:
    """Whether a decision asked for a review with inline comments."""
    return decision is not None and any(isinstance(action, SubmitReview) for action in decision.actions)


def outdated(findings: Iterable[Finding], diff: Diff, unseen: Collection[str] = ()) -> tuple[Finding, ...]:
    """Findings whose code the diff no longer shows; of files that it leaves out nothing is known."""
    return tuple(each for each in findings if each.path not in unseen and not _still_there(each, diff))


def finding_of(comment: ReviewComment, findings: Iterable[Finding]) -> Finding | None:
    """The finding that an inline comment of ours carries: by its fingerprint, else by its opening words."""
    here = [finding for finding in findings if finding.path == comment.path]
    named = next((finding for finding in here if finding.fingerprint in comment.body), None)
    return named or next((finding for finding in here if _opening(finding.comment) in _words(comment.body)), None)


def _still_there(finding: Finding, diff: Diff) -> bool:
    files = diff.named(finding.path)
    if finding.line is None:
        return bool(files)
    code = "\n".join(finding.code)
    return any(match.whole and match.side == finding.side for file in files for match in Index(file).find(code))


def _opening(text: str) -> str:
    return _words(text)[:40]


def _words(text: str) -> str:
    """Letters and digits only: what survives when text is made safe to post."""
    return "".join(char for char in text.lower() if char.isalnum())


#: Comments of ours whose reactions are read: one request each.
MAX_REACTIONS = 30


def our_comments(number: int, forge: Forge) -> tuple[ReviewComment, ...]:
    """Our comments on a pull request that opened a thread, oldest first."""
    us = forge.identity().id
    return tuple(
        each for each in forge.review_comments(number) if each.author.id == us and each.in_reply_to is None
    )


def in_thread(event: events.ReviewCommentCreated, findings: Iterable[Finding], forge: Forge) -> Finding | None:
    """The finding of ours in whose thread somebody speaks."""
    root = next((each for each in our_comments(event.number, forge) if each.id == event.comment.in_reply_to), None)
    return finding_of(root, findings) if root is not None else None


def turned_down(thumbs: Reactions, forge: Forge) -> bool:
    """Return True if a person who may dismiss findings reacted with a thumbs-down."""
    return any(at_least(forge.permission(user.login), "triage") for user in thumbs.down)


def live(memory: PastFindings, pull: PullRequest, forge: Forge) -> PastFindings:
    """``memory`` held against what stands on the pull request.

    A finding whose comment is not there was never posted (a newer push overtook it); one with a thumbs-down
    from somebody with triage permission or more is dismissed.
    """
    if not any(finding.line is not None for finding in memory.posted):
        return memory
    found = ((finding_of(comment, memory.posted), comment) for comment in our_comments(pull.number, forge))
    standing = {finding.fingerprint: comment for finding, comment in found if finding is not None}
    present = tuple(each for each in memory.posted if each.line is None or each.fingerprint in standing)
    rejected = {
        print_
        for print_, comment in tuple(standing.items())[-MAX_REACTIONS:]
        if turned_down(forge.reactions(comment.id, review=True), forge)
    }
    return replace(
        memory,
        posted=tuple(each for each in present if each.fingerprint not in rejected),
        dismissed=(*memory.dismissed, *(each for each in present if each.fingerprint in rejected)),
    )
