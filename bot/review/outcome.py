"""From a finished review to what is said and what is recorded. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bot.actions import Action, SubmitReview, UpsertComment
from bot.review import comments
from bot.review.comments import Page
from bot.review.findings import Finding
from bot.review.memory import Memory
from bot.review.noise import Suppressed
from bot.review.packing import Packed, Skipped
from bot.review.reviewer import Result

#: Characters of a model's raw reply that are kept.
REPLY = 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that one review came to."""

    packed: Packed
    result: Result
    chosen: tuple[Finding, ...]
    held: tuple[Suppressed, ...]
    gone: tuple[Finding, ...]
    memory: Memory

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Whatever no model was shown, or gave no answer about."""
        return (*self.packed.skipped, *self.result.unread)

    @property
    def verdict(self) -> str:
        """``defects`` where something new is said, ``clean`` where nothing is; ``not_reviewed``: unread."""
        if self.chosen:
            return "defects"
        return "clean" if self.result.rounds else "not_reviewed"

    @property
    def reason(self) -> str:
        """One sentence."""
        if not self.result.rounds:
            return "there was nothing to review"
        return f"{len(self.chosen)} new findings, {len(self.held)} held back, {len(self.result.dropped)} dropped"


def actions(outcome: Outcome, page: Page, *, explicitly: bool) -> tuple[Action, ...]:
    """At most one review and one sticky comment; nothing where there is nothing to say.

    ``explicitly``: somebody asked for this review and is owed an answer.
    """
    review = _review(outcome, page)
    summary = _summary(outcome, page, explicitly=explicitly)
    return tuple(action for action in (review, summary) if action is not None)


def _review(outcome: Outcome, page: Page) -> SubmitReview | None:
    placed = tuple(comments.inline(each, page) for each in outcome.chosen if each.line is not None)
    if not placed:
        return None
    return SubmitReview(
        number=page.pull.number,
        commit_id=page.pull.head_sha,
        body=comments.opening(len(placed), outcome.skipped, outcome.result.model, page),
        comments=placed,
    )


def _summary(outcome: Outcome, page: Page, *, explicitly: bool) -> UpsertComment | None:
    memory, number = outcome.memory, page.pull.number
    standing = (each for each in memory.posted if each not in outcome.gone)
    unplaced = [each for each in (*standing, *outcome.chosen) if each.line is None]
    back = {each.fingerprint for each in outcome.chosen}
    gone = [each for each in (*memory.gone, *outcome.gone) if each.fingerprint not in back]
    body = comments.summary(unplaced, outcome.skipped, gone, page)
    if body is not None:
        return UpsertComment(task="review", number=number, body=body)
    if explicitly and not outcome.chosen:
        body = comments.nothing_found(page, outcome.result.model)
        return UpsertComment(task="review", number=number, body=body)
    if memory.summarised:
        return UpsertComment(task="review", number=number, body=comments.settled(page), only_edit=True)
    return None


def evidence(outcome: Outcome) -> dict[str, object]:
    """What is recorded: every finding with its fate, and the counts of each fate."""
    result = outcome.result
    return {
        "posted": _dump(outcome.chosen),
        "suppressed": [each.model_dump(mode="json") for each in outcome.held],
        "dropped": [each.model_dump(mode="json") for each in result.dropped],
        "counts": counts(outcome),
        "outdated": [each.fingerprint for each in outcome.gone],
        "dismissed": [each.fingerprint for each in outcome.memory.dismissed],
        "skipped": [each.model_dump() for each in outcome.skipped],
        "rounds": len(result.rounds),
        "tokens": [piece.tokens for piece in outcome.packed.pieces],
        "replies": [{"prompt_hash": each.prompt_hash, "reply": each.reply.text[:REPLY]} for each in result.rounds],
    }


def counts(outcome: Outcome) -> dict[str, int]:
    """How many findings were reported, and how many met which fate (``suppressed:muted``, ``dropped:...``)."""
    fates = Counter(f"suppressed:{each.reason}" for each in outcome.held)
    fates.update(f"dropped:{each.reason}" for each in outcome.result.dropped)
    posted = len(outcome.chosen)
    return {"reported": posted + sum(fates.values()), "posted": posted, **dict(sorted(fates.items()))}


def _dump(findings: Sequence[Finding]) -> list[dict[str, object]]:
    return [each.model_dump(mode="json") for each in findings]
