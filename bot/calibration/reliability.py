"""Calibration of a model's probabilities (percent): bins, expected error, Brier score. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.calibration.risk import Judged

#: Bins of the reliability diagram and of the expected calibration error, equally wide (Guo et al. 2017).
BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases with similar probabilities: the mean prediction and the observed share, both 0 to 1."""

    cases: int
    predicted: float
    observed: float


def bins(cases: Sequence[Judged]) -> tuple[Bin, ...]:
    """Return the bins that hold a case, lowest first."""
    grouped: dict[int, list[Judged]] = {}
    for case in cases:
        grouped.setdefault(min(BINS - 1, case.p_bounce * BINS // 100), []).append(case)
    return tuple(
        Bin(
            len(group),
            sum(case.p_bounce for case in group) / (100 * len(group)),
            sum(not case.good for case in group) / len(group),
        )
        for _, group in sorted(grouped.items())
    )


def expected_calibration_error(cases: Sequence[Judged]) -> float | None:
    """Return the mean distance of predicted from observed shares, weighted by cases (Guo et al. 2017, eq. 3)."""
    if not cases:
        return None
    return sum(bin.cases * abs(bin.predicted - bin.observed) for bin in bins(cases)) / len(cases)


def brier(cases: Sequence[Judged]) -> float | None:
    """Return the mean squared distance between probability and outcome, 0 to 1 (Brier 1950)."""
    if not cases:
        return None
    return sum((case.p_bounce / 100 - (not case.good)) ** 2 for case in cases) / len(cases)
