"""From what a model says (percent) to how often it is right: monotone maps, and how far off it is. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.calibration.risk import Judged
from bot.models.voices import interpolated

#: A map takes a probability in percent and gives one between 0 and 1.
Map = Callable[[float], float]

#: Bins of the reliability diagram and of the expected calibration error, equally wide (Guo et al. 2017).
BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases whose probabilities lie together: what was said and what came true, both 0 to 1."""

    cases: int
    said: float
    true: float


def reliability(cases: Sequence[Judged], bins: int = BINS) -> tuple[Bin, ...]:
    """The bins that hold a case, lowest first."""
    grouped: dict[int, list[Judged]] = {}
    for case in cases:
        grouped.setdefault(min(bins - 1, case.p_bounce * bins // 100), []).append(case)
    return tuple(
        Bin(
            len(group),
            sum(case.p_bounce for case in group) / (100 * len(group)),
            sum(not case.good for case in group) / len(group),
        )
        for _, group in sorted(grouped.items())
    )


def expected_calibration_error(cases: Sequence[Judged], bins: int = BINS) -> float | None:
    """Mean distance of what was said from what came true, weighted by cases, 0 to 1 (Guo et al. 2017, eq. 3)."""
    if not cases:
        return None
    return sum(each.cases * abs(each.said - each.true) for each in reliability(cases, bins)) / len(cases)


def brier(cases: Sequence[Judged], through: Map = lambda percent: percent / 100) -> float | None:
    """Mean squared distance between probability and outcome, 0 to 1 (Brier 1950)."""
    if not cases:
        return None
    return sum((through(case.p_bounce) - (not case.good)) ** 2 for case in cases) / len(cases)


def isotonic(cases: Sequence[Judged]) -> Map:
    """The monotone step map with the least squared error: pool adjacent violators (Ayer et al. 1955).

    Between two blocks the value is interpolated; beyond the ends it is that of the end. Raises ValueError without
    a case.
    """
    if not cases:
        raise ValueError("no case to fit a map on")
    ordered = sorted(cases, key=lambda case: case.p_bounce)
    blocks: list[list[float]] = []  # sum of outcomes, cases, lowest and highest percent
    for case in ordered:
        if blocks and blocks[-1][3] == case.p_bounce:
            blocks[-1][0] += not case.good
            blocks[-1][1] += 1
        else:
            blocks.append([float(not case.good), 1.0, case.p_bounce, case.p_bounce])
    pooled: list[list[float]] = []
    for block in blocks:
        pooled.append(block)
        while len(pooled) > 1 and pooled[-2][0] * pooled[-1][1] >= pooled[-1][0] * pooled[-2][1]:
            last = pooled.pop()
            pooled[-1] = [pooled[-1][0] + last[0], pooled[-1][1] + last[1], pooled[-1][2], last[3]]
    places = [edge for block in pooled for edge in (block[2], block[3])]
    values = [block[0] / block[1] for block in pooled for _ in range(2)]
    return lambda percent: interpolated(percent, places, values)


def platt(cases: Sequence[Judged]) -> Map:
    """The logistic map of the log-odds (Platt 1999, with his smoothed targets), fitted by Newton's method.

    Raises ValueError without a case.
    """
    if not cases:
        raise ValueError("no case to fit a map on")
    bad = sum(not case.good for case in cases)
    high, low = (bad + 1) / (bad + 2), 1 / (len(cases) - bad + 2)
    points = [(_log_odds(case.p_bounce), low if case.good else high) for case in cases]
    slope, shift = 1.0, 0.0
    for _ in range(100):
        step = _newton(points, slope, shift)
        slope, shift = slope + step[0], shift + step[1]
        if abs(step[0]) + abs(step[1]) < 1e-9:
            break
    return lambda percent: _sigmoid(slope * _log_odds(percent) + shift)


def _newton(points: Sequence[tuple[float, float]], slope: float, shift: float) -> tuple[float, float]:
    """One step towards the largest likelihood; slightly ridged, so that one repeated score has an answer."""
    first = second = aa = ab = bb = 0.0
    for x, target in points:
        chance = _sigmoid(slope * x + shift)
        weight = chance * (1 - chance)
        first += (target - chance) * x
        second += target - chance
        aa, ab, bb = aa + weight * x * x, ab + weight * x, bb + weight
    aa, bb = aa + 1e-6, bb + 1e-6
    determinant = aa * bb - ab * ab
    step = ((bb * first - ab * second) / determinant, (aa * second - ab * first) / determinant)
    longest = max(1.0, abs(step[0]), abs(step[1]))
    return step[0] / longest, step[1] / longest


def _log_odds(percent: float) -> float:
    share = min(max(percent / 100, 0.005), 0.995)
    return math.log(share / (1 - share))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
