"""Small plots as SVG, drawn on the server: no script, no third party. Colours come from the style sheet. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from bot.core.frozen import Frozen

WIDTH, HEIGHT = 720, 180
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 26


class Bar(Frozen):
    """One column of a stacked bar chart."""

    label: str
    values: tuple[float, ...]


def stacked_bars(bars: Sequence[Bar], names: Sequence[str], title: str, unit: str = "") -> Markup:
    """Columns of stacked values; ``names`` are the layers, bottom first."""
    top = _round_up(max((sum(bar.values) for bar in bars), default=0.0))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(bars))
    parts = [_grid(top, unit)]
    for position, bar in enumerate(bars):
        parts.append(_column(bar, names, LEFT + position * step, step, top, unit))
        if position % max(1, len(bars) // 8) == 0:
            middle = LEFT + (position + 0.5) * step
            parts.append(
                Markup('<text x="{:.1f}" y="{}" class="tick middle">{}</text>').format(
                    middle, HEIGHT - 8, bar.label
                )
            )
    return _svg(title, Markup("").join(parts))


def meter(share: float, title: str) -> Markup:
    """A horizontal bar that is ``share`` (0 to 1 and beyond) full."""
    level = "over" if share >= 1 else "high" if share >= 0.8 else "fine"
    return Markup(
        '<svg class="meter" viewBox="0 0 100 8" role="img" aria-label="{}">'
        '<rect class="track" width="100" height="8" rx="4"/>'
        '<rect class="level {}" width="{:.1f}" height="8" rx="4"/></svg>'
    ).format(title, level, 100 * min(1.0, max(0.0, share)))


def interval(share: float, low: float, high: float, title: str) -> Markup:
    """A share (a dot) and its confidence interval (a line), from 0 to 1."""
    return Markup(
        '<svg class="interval" viewBox="0 0 100 8" role="img" aria-label="{}">'
        '<rect class="track" y="3.5" width="100" height="1"/>'
        '<rect class="range" y="2.5" x="{:.1f}" width="{:.1f}" height="3"/>'
        '<circle class="dot" cx="{:.1f}" cy="4" r="3"/></svg>'
    ).format(title, 100 * low, 100 * (high - low), 3 + 94 * share)


def _column(bar: Bar, names: Sequence[str], left: float, step: float, top: float, unit: str) -> Markup:
    room = HEIGHT - TOP - BOTTOM
    parts, base = [], float(HEIGHT - BOTTOM)
    for layer, value in enumerate(bar.values):
        height = room * value / top if top else 0.0
        base -= height
        if value:
            told = f"{bar.label}: {value:g}{unit} {names[layer]}"
            parts.append(
                Markup(
                    '<rect class="layer{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
                    "<title>{}</title></rect>"
                ).format(layer, left + 0.15 * step, base, 0.7 * step, height, told)
            )
    return Markup("").join(parts)


def _grid(top: float, unit: str) -> Markup:
    parts = []
    for part in (0.0, 0.5, 1.0):
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part
        parts.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                LEFT, WIDTH - RIGHT, y, y
            )
        )
        parts.append(
            Markup('<text x="{}" y="{:.1f}" class="tick end">{:g}{}</text>').format(
                LEFT - 6, y + 4, top * part, unit
            )
        )
    return Markup("").join(parts)


def _svg(title: str, content: Markup) -> Markup:
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, title, content
    )


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 10, 20, 40, ... (or 0.1, 0.2, ...): an axis that people can read."""
    if value <= 0:
        return 1.0
    size = 1.0
    while size * 10 < value:
        size *= 10
    while size >= value * 10:
        size /= 10
    return next(size * step for step in (1, 2, 4, 10) if size * step >= value)
