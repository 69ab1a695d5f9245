"""Plots about a threshold as SVG, without scripts; colours come from the page's style sheet. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from bot.calibration.risk import Bin, OperatingPoint
from bot.core.text import amount

WIDTH, HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 14, 46

#: Shares from 0 to 1.
Point = tuple[float, float]


def by_line(curve: Sequence[OperatingPoint], threshold: int | None, good: str, bad: str) -> Markup:
    """Plot the shares of good and bad subjects that each threshold bounces, and mark ``threshold``."""
    lines = sorted(curve, key=lambda point: point.bounce_above)
    harm = [(point.bounce_above / 100, point.harm) for point in lines if point.harm is not None]
    limit = [(point.bounce_above / 100, point.bound) for point in lines if point.good]
    recall = [(point.bounce_above / 100, point.recall) for point in lines if point.recall is not None]
    parts = [
        _path(limit, "limit", f"{good}: upper limit at 95 %"),
        _path(harm, "harm", good),
        _path(recall, "recall", bad),
    ]
    if threshold is not None and threshold <= 100:
        x, top, bottom = _x(threshold / 100), _y(1.0), _y(0.0)
        parts.append(
            Markup('<line class="drawn" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>').format(
                x, top, bottom
            )
        )
        side = "end" if threshold > 60 else "start"
        parts.append(_text(x + (-5 if threshold > 60 else 5), top + 10, f"line: {threshold} %", side))
    words = f"What each line bounces: {good} and {bad}"
    return _frame(parts, "threshold: bounce at or above this probability", "share bounced", words)


def risk_over_coverage(curve: Sequence[OperatingPoint], threshold: int | None) -> Markup:
    """Plot the share of bad subjects among those let through over the share let through."""
    points: list[Point] = []
    here: Point | None = None
    for line in curve:
        total = line.good + line.bad
        passed = total - line.harmed - line.caught
        if not passed:
            continue
        point = passed / total, (line.bad - line.caught) / passed
        points.append(point)
        if threshold is not None and line.bounce_above >= threshold:
            here = point
    if curve and curve[0].good + curve[0].bad:
        first = curve[0]
        points.insert(0, (1.0, first.bad / (first.good + first.bad)))
    parts = [_path(points, "risk", "risk"), *(_dot(point, "risk") for point in points)]
    if here is not None:
        parts.append(_dot(here, "here", 6))
    return _frame(
        parts, "coverage: share let through", "risk: share of these that deserved to bounce", "Risk over coverage"
    )


def reliability(bins: Sequence[Bin]) -> Markup:
    """Plot predicted against observed shares; a calibrated model lies on the diagonal."""
    most = max((bin.cases for bin in bins), default=1)
    diagonal = Markup('<line class="diagonal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
        _x(0), _y(0), _x(1), _y(1)
    )
    parts = [diagonal, _path([(bin.predicted, bin.observed) for bin in bins], "risk", "reliability")]
    for bin in bins:
        tooltip = f"{amount(bin.cases, 'case')}: said {bin.predicted:.0%}, came true {bin.observed:.0%}"
        parts.append(_dot((bin.predicted, bin.observed), "risk", 3 + 5 * (bin.cases / most) ** 0.5, tooltip))
    return _frame(parts, "said: probability that it deserves to bounce", "came true", "Reliability diagram")


def _frame(parts: Sequence[Markup], across: str, up: str, words: str) -> Markup:
    grid = [
        Markup('<line class="grid" x1="{0:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}"/>').format(
            _x(0), _x(1), _y(at)
        )
        + _text(_x(0) - 6, _y(at) + 4, f"{at:.0%}", "end")
        + _text(_x(at), _y(0) + 16, f"{at:.0%}", "middle")
        for at in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    names = [
        _text((_x(0) + _x(1)) / 2, HEIGHT - 8, across, "middle"),
        Markup('<g transform="translate(12 {:.1f}) rotate(-90)">{}</g>').format(
            (_y(0) + _y(1)) / 2, _text(0, 0, up, "middle")
        ),
    ]
    content = Markup("").join([*grid, *parts, *names])
    return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, words, content
    )


def _path(points: Sequence[Point], kind: str, tooltip: str) -> Markup:
    if not points:
        return Markup("")
    text = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in points)
    return Markup('<polyline class="{}" points="{}"><title>{}</title></polyline>').format(kind, text, tooltip)


def _dot(point: Point, kind: str, radius: float = 2.5, tooltip: str = "") -> Markup:
    tooltip = tooltip or f"{point[0]:.0%}, {point[1]:.0%}"
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>').format(
        kind, _x(point[0]), _y(point[1]), radius, tooltip
    )


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _x(share: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * share


def _y(share: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share
