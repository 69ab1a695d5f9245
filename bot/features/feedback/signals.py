"""Rates of people's reactions to posts, with intervals, and the muted categories. Pure.

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

#: Category -> outcome -> number of posts.
Counts = Mapping[str, Mapping[Outcome, int]]

#: Order of the outcomes: a dismissal outweighs a change, a change outweighs silence.
_WEIGHT: dict[Outcome, int] = {"ignored": 0, "addressed": 1, "dismissed": 2}

#: A category with this many outcomes is muted if the lower bound of its dismissed rate is above the limit.
MIN_OUTCOMES = 8
MUTE_ABOVE = 0.5

Z_95 = 1.959963984540054


class Row(Frozen):
    """The number of posts of one category by outcome."""

    category: str
    addressed: int
    dismissed: int
    ignored: int

    @property
    def total(self) -> int:
        """The number of posts with an outcome."""
        return self.addressed + self.dismissed + self.ignored

    @property
    def share(self) -> float:
        """The share of dismissed posts; 0 if there are no posts."""
        return self.dismissed / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of ``share``."""
        return wilson(self.dismissed, self.total)

    @property
    def muted(self) -> bool:
        """True if the category was dismissed too often and is not posted any more."""
        # For bounces the maintainers have a threshold; only review categories are muted.
        return self.category != "bounce" and self.total >= MIN_OUTCOMES and self.interval[0] > MUTE_ABOVE


#: Features whose decisions ``signals`` reads.
SOURCES: tuple[Task, ...] = ("triage", "review", "commands", "feedback")


def signals(decisions: Iterable[Decision]) -> tuple[Signal, ...]:
    """Return all signals in the decisions on any subjects, oldest first.

    Feedback decisions have signals; others imply some: code that changed under a finding, ``/bouncer dismiss``,
    ``/bouncer accept`` after a bounce, an issue that became clear.
    """
    result: list[Signal] = []
    categories: dict[str, str] = {}
    bounced: set[str] = set()
    for decision in decisions:
        key = decision.subject.key
        record = decision.record
        if isinstance(record, FeedbackRecord):
            result += record.signals
        elif isinstance(record, ReviewRecord):
            result += _of_review(key, record, categories)
        elif isinstance(record, TriageRecord) and decision.verdict:
            if record.bounced:
                bounced.add(key)
            elif key in bounced:
                bounced.discard(key)
                result.append(Signal(key=key, category="bounce", outcome="addressed", source="edited"))
        elif isinstance(record, CommandsRecord) and key in bounced and "accept" in record.done:
            result.append(Signal(key=key, category="bounce", outcome="dismissed", source="command", by=record.by))
    return tuple(result)


def _of_review(here: str, record: ReviewRecord, categories: dict[str, str]) -> Iterable[Signal]:
    """Yield the signals in a review, and add its findings to ``categories``."""
    for finding in record.posted:
        categories[f"{here}:{finding.fingerprint}"] = finding.category.value
    outcomes: tuple[tuple[tuple[str, ...], Outcome, str], ...] = (
        (record.outdated, "addressed", "changed"),
        (record.dismissed, "dismissed", "command"),
    )
    for fingerprints, outcome, source in outcomes:
        for fingerprint in fingerprints:
            key = f"{here}:{fingerprint}"
            if key in categories:
                yield Signal(key=key, category=categories[key], outcome=outcome, source=source)


def outcomes(signals: Iterable[Signal]) -> Mapping[str, Signal]:
    """Return the decisive signal of each post: the one of the highest weight, the newest among equals."""
    final: dict[str, Signal] = {}
    for signal in signals:
        earlier = final.get(signal.key)
        if earlier is None or _WEIGHT[signal.outcome] >= _WEIGHT[earlier.outcome]:
            final[signal.key] = signal
    return final


def rates(counts: Counts) -> tuple[Row, ...]:
    """Return the numbers of each category, most dismissed first."""
    rows = (
        Row(category=category, **{outcome: numbers.get(outcome, 0) for outcome in get_args(Outcome)})
        for category, numbers in counts.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.share, row.category)))


def wilson(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share; zero if nothing was counted."""
    if of == 0:
        return 0.0, 0.0
    share, square = count / of, Z_95**2
    centre = (share + square / (2 * of)) / (1 + square / of)
    half = Z_95 * sqrt(share * (1 - share) / of + square / (4 * of**2)) / (1 + square / of)
    return max(0.0, centre - half), min(1.0, centre + half)
