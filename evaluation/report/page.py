"""The parts of a report, and its output as one self-contained HTML page, Markdown, or JSON.

A benchmark gives ``Section``s, and writes each table once: here it becomes HTML, in ``terminal`` text. Nothing
here knows what they are about. Cells are plain text or numbers, escaped when they are written; figures are SVG
text, drawn by ``figures`` where a page shows them and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from bot.core.page import render

Cell = str | int | float | None


def percentage(share: float | None) -> str | None:
    """A share as a cell, in percent; None if it is not defined."""
    return None if share is None else f"{100 * share:.1f}"


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header.

    Rows from ``quoted_from`` on are another source's and are set apart; a ``folded`` table opens on demand; a
    table of ``prose`` has words in every column, in as many lines as they need.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    quoted_from: int | None = None
    note: str = ""
    folded: bool = False
    prose: bool = False

    @property
    def words(self) -> tuple[bool, ...]:
        """Which columns hold words, not numbers: they are aligned to the left."""
        if self.prose:
            return (True,) * len(self.header)

        def is_words(value: Cell) -> bool:
            return isinstance(value, str) and not any(character.isdigit() for character in value[:2])

        columns = zip(*self.rows, strict=True) if self.rows else iter(() for _ in self.header)
        return tuple(index == 0 or all(map(is_words, column)) for index, column in enumerate(columns))


@dataclass(frozen=True)
class Figure:
    """A picture, drawn as SVG text when it is shown, and in words what it shows (for those who cannot see it)."""

    draw: Callable[[], str]
    caption: str


@dataclass(frozen=True)
class Section:
    """A part of a report."""

    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """A whole report; ``origin`` says which version wrote it, and when."""

    title: str
    sections: tuple[Section, ...]
    origin: str


def as_html(report: Report) -> str:
    """One page that needs nothing else: no script, no font, no picture from elsewhere."""
    return render("evaluation.report", "templates/report.html.jinja", report=report, cell=cell, svg=Markup)


def as_markdown(report: Report) -> str:
    """The same without the figures, whose captions stay."""
    parts = [f"# {_plain(report.title)}", report.origin]
    for section in report.sections:
        parts.append(f"## {_plain(section.title)}")
        parts += [_plain(paragraph) for paragraph in section.paragraphs]
        parts += [_markdown_table(table) for table in section.tables]
        parts += [f"Figure: {_plain(figure.caption)}" for figure in section.figures]
    return "\n\n".join(parts) + "\n"


def as_json(report: Report) -> str:
    """The numbers: tables as lists, and what each section adds in ``data``."""
    sections = [
        {
            "title": section.title,
            "tables": [
                {"title": table.title, "header": table.header, "rows": table.rows} for table in section.tables
            ],
            **section.data,
        }
        for section in report.sections
    ]
    value = {"title": report.title, "made": report.origin, "sections": sections}
    return json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def cell(value: Cell) -> str:
    """A cell as it is shown; a dash for what is not defined."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else value


def _markdown_table(table: Table) -> str:
    lines = [f"**{_plain(table.title)}**", ""] if table.title else []
    lines += [_markdown_row(table.header), _markdown_row(["---"] * len(table.header))]
    lines += [_markdown_row([cell(value) for value in row]) for row in table.rows]
    if table.note:
        lines += ["", _plain(table.note)]
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell_text).replace("|", "\\|") for cell_text in cells) + " |"


def _plain(text: str) -> str:
    """One line that cannot start Markdown or HTML of its own."""
    return " ".join(text.split()).replace("<", "&lt;")
