"""Draw the outcome and the record of a review from all that it consists of. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bot.code.context import Surroundings
from bot.code.packing import BEYOND, Packed
from bot.core.actions import CodeContext, Skipped, Usage
from bot.core.text import amount
from bot.features.review.anchoring import outdated
from bot.features.review.doubt import Doubting
from bot.features.review.proof import Proving
from bot.features.review.record import ReviewOutcome, ReviewRecord, Suppressed
from bot.features.review.rounds import Rounds, Scope, line_hashes
from bot.features.review.strategies import Result
from bot.features.shared.findings import Finding
from bot.features.shared.labels import ModelReply
from bot.features.shared.review_history import PastFindings

#: Characters of a model's raw reply that are kept.
REPLY = 20_000


@dataclass(frozen=True, slots=True)
class Material:
    """A change to review. ``gone`` are earlier findings whose code it no longer contains."""

    packed: Packed
    around: Surroundings
    scope: Scope
    gone: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Parts:
    """All that a review consists of."""

    material: Material
    result: Result
    selected: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    memory: PastFindings
    doubting: Doubting
    rounds: Rounds
    max_total: int
    proving: Proving | None = None
    contexts: Sequence[CodeContext] = ()
    """The code around each piece."""

    @property
    def usage(self) -> Usage:
        """The usage of the looks, the second questions and the proofs."""
        return self.result.usage + self.doubting.usage + (self.proving.usage if self.proving else Usage())

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Files that no model saw, or without a usable answer."""
        return (*self.material.packed.skipped, *self.result.unread)

    @property
    def is_over(self) -> bool:
        """True if no finding may be posted on the pull request any more."""
        return self.rounds.posted >= self.max_total

    @property
    def paths_read(self) -> frozenset[str]:
        """Files that need no other look until they change."""
        if self.is_over:
            return frozenset()
        too_large = {file.path for file in self.material.packed.skipped if file.reason.endswith(BEYOND)}
        unread = too_large | {file.path for file in self.result.unread}
        return frozenset({*self.material.packed.unchanged, *self.shown} - unread)

    @property
    def shown(self) -> set[str]:
        """Files that the model was asked about."""
        return {path for piece in self.material.packed.pieces for path in piece.paths}

    @property
    def verdict(self) -> str:
        """``defects`` if there are new findings, ``clean`` if not; ``not_reviewed`` if nothing was looked at."""
        if self.selected:
            return "defects"
        is_old = bool(self.material.packed.unchanged) and not self.is_over
        return "clean" if self.result.rounds or self.material.packed.reformatted or is_old else "not_reviewed"

    @property
    def reason(self) -> str:
        """The outcome in one sentence."""
        if self.material.packed.reformatted:
            return f"{self.material.packed.reformatted}: no model was asked"
        if self.is_over:
            return f"{self.rounds.posted} findings were posted, review.max_total allows {self.max_total}"
        if not self.result.rounds:
            new = self.material.packed.unchanged and self.rounds.since
            return f"nothing changed since {self.rounds.since[:7]}" if new else "there was nothing to review"
        count = amount(len(self.selected), "new finding")
        return f"{count}, {len(self.suppressed)} held back, {len(self.result.dropped)} dropped"

    @property
    def too_slow(self) -> tuple[str, ...]:
        """Files that took too long to parse."""
        return tuple(dict.fromkeys(path for context in self.contexts for path in context.too_slow))


def outcome(parts: Parts) -> ReviewOutcome:
    """Return the outcome of a review, with its record."""
    material, memory, diff = parts.material, parts.memory, parts.material.around.diff
    paths = parts.shown - {file.path for file in parts.result.unread}
    return ReviewOutcome(
        verdict=parts.verdict,
        reason=parts.reason,
        record=_record(parts),
        usage=parts.usage,
        model=parts.result.model,
        since=parts.rounds.since,
        earlier=parts.rounds.posted,
        max_total=parts.max_total,
        standing=tuple(finding for finding in memory.posted if finding not in material.gone),
        open_count=sum(finding not in material.gone for finding in memory.open),
        outdated=material.gone,
        gone=(*outdated(memory.gone, diff, material.packed.omitted), *material.gone),
        summarised=memory.summarised,
        lines=sum(material.scope.changed.get(path, 0) for path in paths),
        files=len(paths),
        all_files=len(diff.files),
        too_slow=parts.too_slow,
    )


def _record(parts: Parts) -> ReviewRecord:
    """Return every finding with its outcome, and the counts."""
    result, proofs = parts.result, parts.proving.proofs if parts.proving else {}
    return ReviewRecord(
        posted=parts.selected,
        suppressed=parts.suppressed,
        dropped=result.dropped,
        counts=_counts(parts),
        outdated=tuple(finding.fingerprint for finding in parts.material.gone),
        dismissed=tuple(finding.fingerprint for finding in parts.memory.dismissed),
        skipped=parts.skipped,
        reviewed=line_hashes(parts.material.around.diff, parts.paths_read),
        rounds=len(result.rounds),
        looks=result.looks,
        agreement=dict(sorted(Counter(str(finding.looks) for finding in result.findings).items())),
        proofs=dict(Counter(str(proof.outcome) for proof in proofs.values())),
        doubts=tuple(parts.doubting.doubts.values()),
        context=tuple(context.without_text() for context in parts.contexts),
        tool_calls=sum(len(notes.looks) for notes in result.notes),
        tokens=tuple(piece.tokens for piece in parts.material.packed.pieces),
        replies=tuple(
            ModelReply(prompt_hash=round_.prompt_hash, reply=round_.reply.text[:REPLY]) for round_ in result.rounds
        ),
    )


def _counts(parts: Parts) -> dict[str, int]:
    """Return the number of reported findings, and of each outcome (``suppressed:muted``, ``dropped:...``)."""
    fates = Counter(f"suppressed:{finding.reason}" for finding in parts.suppressed)
    fates.update(f"dropped:{finding.reason}" for finding in parts.result.dropped)
    posted = len(parts.selected)
    return {"reported": posted + sum(fates.values()), "posted": posted, **dict(sorted(fates.items()))}
