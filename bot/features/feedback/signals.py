"""How often people agreed: outcomes of what was posted, rates with intervals, and what is muted for it. Pure.

The Wilson score interval: E. B. Wilson, "Probable inference, the law of succession, and statistical
inference", Journal of the American Statistical Association 22 (1927).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import get_args

from bot.core.actions import Decision, Task
from bot.core.frozen import Frozen
from bot.features.commands.record import CommandsRecord
from bot.features.feedback.record import FeedbackRecord, Outcome, Signal
from bot.features.review.record import ReviewRecord
from bot.features.triage.record import TriageRecord

#: Category -> outcome -> how many.
Counts = Mapping[str, Mapping[Outcome, int]]

#: What a later sign may overrule: a word against it weighs more than a change, a change more than silence.
_WEIGHT: dict[Outcome, int] = {"ignored": 0, "addressed": 1, "dismissed": 2}

#: A category is muted from this many outcomes on, where the lower bound of its dismissed rate passes the limit.
MIN_OUTCOMES = 8
MUTE_ABOVE = 0.5

Z_95 = 1.959963984540054


class Row(Frozen):
    """What became of everything that was posted in one category: how many things came to each outcome."""

    category: str
    addressed: int
    dismissed: int
    ignored: int

    @property
    def total(self) -> int:
        """How many came to any outcome."""
        return self.addressed + self.dismissed + self.ignored

    @property
    def share(self) -> float:
        """The dismissed ones among all; 0 where there are none."""
        return self.dismissed / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of ``share``."""
        return wilson(self.dismissed, self.total)

    @property
    def muted(self) -> bool:
        """Whether it was dismissed so often that it is not posted any more."""
        # Bounces are the maintainers' own line to move; only review categories are muted.
        return self.category != "bounce" and self.total >= MIN_OUTCOMES and self.interval[0] > MUTE_ABOVE


#: Features whose decisions ``signals`` reads.
SOURCES: tuple[Task, ...] = ("triage", "review", "commands", "feedback")


def signals(decisions: Iterable[Decision]) -> tuple[Signal, ...]:
    """All signs in the decisions on any subjects, oldest first.

    Feedback decisions hold signs; others imply some: code that changed under a finding, ``/bouncer dismiss``,
    ``/bouncer accept`` after a bounce, an issue that became clear.
    """
    found: list[Signal] = []
    categories: dict[str, str] = {}
    bounced: set[str] = set()
    for decision in decisions:
        key = decision.subject.key
        record = decision.record
        if isinstance(record, FeedbackRecord):
            found += record.signals
        elif isinstance(record, ReviewRecord):
            found += _of_review(key, record, categories)
        elif isinstance(record, TriageRecord) and decision.verdict:
            if record.bounced:
                bounced.add(key)
            elif key in bounced:
                bounced.discard(key)
                found.append(Signal(key=key, category="bounce", outcome="addressed", source="edited"))
        elif isinstance(record, CommandsRecord) and key in bounced and "accept" in record.done:
            found.append(Signal(key=key, category="bounce", outcome="dismissed", source="command", by=record.by))
    return tuple(found)


def _of_review(here: str, record: ReviewRecord, categories: dict[str, str]) -> Iterable[Signal]:
    """Signs in a review; ``categories`` holds what is known of each finding and learns what is new."""
    for finding in record.posted:
        categories[f"{here}:{finding.fingerprint}"] = finding.category.value
    fates: tuple[tuple[tuple[str, ...], Outcome, str], ...] = (
        (record.outdated, "addressed", "changed"),
        (record.dismissed, "dismissed", "command"),
    )
    for fingerprints, outcome, source in fates:
        for fingerprint in fingerprints:
            key = f"{here}:{fingerprint}"
            if key in categories:
                yield Signal(key=key, category=categories[key], outcome=outcome, source=source)


def outcomes(signs: Iterable[Signal]) -> Mapping[str, Signal]:
    """One outcome for each thing that was posted: the weightiest sign, the newest among equals."""
    final: dict[str, Signal] = {}
    for sign in signs:
        known = final.get(sign.key)
        if known is None or _WEIGHT[sign.outcome] >= _WEIGHT[known.outcome]:
            final[sign.key] = sign
    return final


def rates(counts: Counts) -> tuple[Row, ...]:
    """What became of each category, most dismissed first."""
    rows = (
        Row(category=category, **{each: outcomes.get(each, 0) for each in get_args(Outcome)})
        for category, outcomes in counts.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.share, row.category)))


def wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a share; zero where nothing was counted."""
    if of == 0:
        return 0.0, 0.0
    share, square = count / of, Z_95**2
    centre = (share + square / (2 * of)) / (1 + square / of)
    half = Z_95 * sqrt(share * (1 - share) / of + square / (4 * of**2)) / (1 + square / of)
    return max(0.0, centre - half), min(1.0, centre + half)
