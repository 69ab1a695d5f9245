"""Figures as SVG text, made with matplotlib out of numbers and names."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from matplotlib.patches import PathPatch

    from evaluation.statistics import Estimate

#: Colours that differ in lightness too, so that they can be told apart in print and by colour-blind readers.
COLOURS = ("#0b5fa5", "#d9822b", "#2e8b57", "#a23b72", "#7a7f87", "#5b4bb7", "#b8860b", "#3aa6b9")
#: The colours of points, which have to tell more names apart than curves and bars, and their shapes.
_MARK_COLOURS = (*COLOURS, "#000000", "#8c564b", "#e377c2", "#17a768")
_SHAPES = ("o", "^", "D")
#: matplotlib types its settings by name; the names here are checked when the first figure is drawn.
_STYLE: Any = {
    "font.size": 10,
    "svg.fonttype": "path",  # letters as outlines: the page needs no font
    "text.parse_math": False,  # a model's name may hold a dollar sign
    "svg.hashsalt": "bouncer",  # the same numbers give the same file
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e5e8",
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Series:
    """One colour of bars; a value of None is left out. ``errors`` are (low, high) ends."""

    name: str
    values: Sequence[float | None]
    errors: Sequence[tuple[float, float] | None] = ()

    @classmethod
    def of(cls, name: str, estimates: Sequence[Estimate], scale: float = 1) -> Series:
        """Estimates with their intervals, each ``scale`` times as large."""
        values = [None if estimate.value is None else scale * estimate.value for estimate in estimates]
        ends = [(estimate.low, estimate.high) for estimate in estimates]
        errors = [None if low is None or high is None else (scale * low, scale * high) for low, high in ends]
        return cls(name, values, errors)


@dataclass(frozen=True)
class Curve:
    """Points joined by a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    has_points: bool = True


@dataclass(frozen=True)
class Marks:
    """One point; its colour stands for ``name``, its shape for a place in a list of names."""

    name: str
    x: float
    y: float
    shape: int


@dataclass(frozen=True)
class Flow:
    """A band of a Sankey diagram from one node to another."""

    source: str
    target: str
    size: int


def bars(
    groups: Sequence[str], series: Sequence[Series], *, ylabel: str, xlabel: str = "", top: float | None = None
) -> str:
    """Bars side by side per group, with their intervals; horizontal ones if the groups' names are long."""
    with _styled():
        width = max(7.6, 1.2 * len(groups) + 3)
        lying = max(map(len, groups), default=0) * _LETTER > (width - 1) / max(1, len(groups))
        canvas = _canvas(7.6 if lying else width, 1.2 + 0.42 * len(groups) if lying else 3.6)
        axes: Any = canvas.add_subplot()
        thick = 0.8 / max(1, len(series))
        for index, bar_series in enumerate(series):
            shift = (index - (len(series) - 1) / 2) * thick
            _draw_bars(axes, bar_series, index, shift, thick * 0.92, lying)
        if lying:
            axes.set_yticks(range(len(groups)), groups)
            axes.invert_yaxis()
            axes.grid(axis="y", visible=False)
            axes.axvline(0, color="#60646c", linewidth=0.8)
            axes.set(xlabel=ylabel, ylabel=xlabel)
            axes.set_xlim(right=top)
        else:
            axes.set_xticks(range(len(groups)), groups)
            axes.grid(axis="x", visible=False)
            axes.axhline(0, color="#60646c", linewidth=0.8)
            axes.set(ylabel=ylabel, xlabel=xlabel)
            axes.set_ylim(top=top)
        return _svg(canvas, axes, len(series) > 1)


#: Width of a letter in a group's name, inches.
_LETTER = 0.085


def _draw_bars(axes: Any, series: Series, index: int, shift: float, width: float, lying: bool) -> None:
    colour = COLOURS[index % len(COLOURS)]
    draw, draw_ends = (axes.barh, axes.hlines) if lying else (axes.bar, axes.vlines)
    places = [place for place, value in enumerate(series.values) if value is not None]
    heights = [value for value in series.values if value is not None]
    draw([place + shift for place in places], heights, width, color=colour, label=series.name)
    for place, ends in enumerate(series.errors):
        if ends is not None:
            draw_ends(place + shift, *ends, color="#1c2024", linewidth=1)


def curves(
    lines: Sequence[Curve],
    *,
    xlabel: str,
    ylabel: str,
    right: float | None = 1.02,
    marks: Sequence[Marks] = (),
    shapes: Sequence[str] = (),
) -> str:
    """Curves from 0 to ``right`` on the x axis, and points beside them."""
    with _styled():
        canvas = _canvas(7.6, 4.8 if marks else 3.8)
        axes: Any = canvas.add_subplot()
        for index, line in enumerate(lines):
            marker = "o" if line.has_points else None
            axes.plot(
                line.x, line.y, marker=marker, markersize=4, color=COLOURS[index % len(COLOURS)], label=line.name
            )
        names = list(dict.fromkeys(mark.name for mark in marks))
        for mark in marks:
            colour = _MARK_COLOURS[names.index(mark.name) % len(_MARK_COLOURS)]
            axes.plot(mark.x, mark.y, linestyle="none", marker=_SHAPES[mark.shape % 3], markersize=6, color=colour)
        for name, colour in zip(names, _MARK_COLOURS, strict=False):
            axes.plot([], [], linestyle="none", marker="s", color=colour, label=name)
        for shape, name in zip(_SHAPES, shapes, strict=False):
            axes.plot([], [], linestyle="none", marker=shape, color=COLOURS[4], label=name)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.set_xlim(0, right)
        axes.set_ylim(bottom=0)
        return _svg(canvas, axes, len(lines) + len(marks) > 1)


def radar(spokes: Sequence[str], series: Sequence[Series]) -> str:
    """Shares of 0 to 1 on one spoke each; a series with a missing value is drawn as points without an outline."""
    with _styled():
        canvas = _canvas(7.6, 4.6)
        axes: Any = canvas.add_subplot(projection="polar")
        angles = [2 * math.pi * place / len(spokes) for place in range(len(spokes))]
        for index, bar_series in enumerate(series):
            colour = COLOURS[index % len(COLOURS)]
            points = [
                (angle, value) for angle, value in zip(angles, bar_series.values, strict=True) if value is not None
            ]
            closed = [*points, points[0]] if len(points) == len(spokes) else points
            line = "-" if len(points) == len(spokes) else "none"
            x, y = [angle for angle, _ in closed], [value for _, value in closed]
            axes.plot(x, y, linestyle=line, marker="o", markersize=4, color=colour, label=bar_series.name)
        axes.set_xticks(angles, spokes)
        # Names stand outside of the circle, whatever their length.
        for angle, label in zip(angles, axes.get_xticklabels(), strict=True):
            side = math.sin(angle)
            label.set_horizontalalignment("center" if abs(side) < 0.1 else "left" if side > 0 else "right")
        axes.set(ylim=(0, 1), theta_offset=math.pi / 2, theta_direction=-1)
        return _svg(canvas, axes, len(series) > 1, below=True)


def sankey(columns: Sequence[Sequence[str]], flows: Sequence[Flow], colours: dict[str, str]) -> str:
    """Bands between columns of nodes, as wide as they are large; a node's height is its larger side."""
    with _styled():
        from matplotlib.patches import Rectangle

        canvas = _canvas(9.2, 4.6)
        axes = canvas.add_subplot()
        axes.axis("off")
        into, out = Counter[str](), Counter[str]()
        for flow in flows:
            into[flow.target] += flow.size
            out[flow.source] += flow.size
        sizes = {name: max(into[name], out[name]) for column in columns for name in column}
        total = max(sum(sizes[name] for name in column) for column in columns)
        places = _places(columns, sizes, gap=0.06 * total)
        left = {name: top for name, (_, top, _) in places.items()}
        right = dict(left)
        for flow in flows:
            if flow.size:
                ends = (
                    (places[flow.source][0] + _NODE, right[flow.source]),
                    (places[flow.target][0], left[flow.target]),
                )
                axes.add_patch(_band(*ends, flow.size, colours.get(flow.target, COLOURS[4])))
                right[flow.source] -= flow.size
                left[flow.target] -= flow.size
        for name, (x, top, size) in places.items():
            axes.add_patch(Rectangle((x, top - size), _NODE, size, color=colours.get(name, COLOURS[4])))
            axes.text(x + _NODE + 0.015, top - size / 2, f"{name}\n{size:,}", va="center", ha="left", fontsize=9.5)
        bottom = min(top - size for _, top, size in places.values())
        axes.set_xlim(0, len(columns) - 1 + 0.42)
        axes.set_ylim(bottom - 0.02 * total, max(top for _, top, _ in places.values()) + 0.04 * total)
        return _svg(canvas, axes, False)


_NODE = 0.035


def _places(
    columns: Sequence[Sequence[str]], sizes: dict[str, int], gap: float
) -> dict[str, tuple[float, float, int]]:
    """Node -> (x, top, size); columns hang from the same height."""
    places: dict[str, tuple[float, float, int]] = {}
    for x, column in enumerate(columns):
        top = 0.0
        for name in column:
            if sizes[name]:
                places[name] = (float(x), top, sizes[name])
                top -= sizes[name] + gap
    return places


def _band(start: tuple[float, float], end: tuple[float, float], size: float, colour: str) -> PathPatch:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = start, end
    middle = (x0 + x1) / 2
    points = [
        (x0, y0), (middle, y0), (middle, y1), (x1, y1),
        (x1, y1 - size), (middle, y1 - size), (middle, y0 - size), (x0, y0 - size), (x0, y0),
    ]  # fmt: skip
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    return PathPatch(Path(points, codes), facecolor=colour, alpha=0.38, linewidth=0)


def _canvas(width: float, height: float) -> Canvas:
    from matplotlib.figure import Figure as Canvas  # takes a second to import, and a terminal shows no figure

    return Canvas(figsize=(width, height), layout="constrained")


@contextmanager
def _styled() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def _svg(canvas: Canvas, axes: Any, legend: bool, *, below: bool = False) -> str:
    """The picture as text; a legend stands beside the axes, or below all that is written around them."""
    if legend and below:
        canvas.legend(loc="outside lower center", ncols=1)
    elif legend:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    out = io.StringIO()
    # A legend beside the axes may be longer than there was room for.
    canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    text = out.getvalue()
    return text[text.index("<svg") :]
