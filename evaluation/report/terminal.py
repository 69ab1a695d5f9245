"""Results in a terminal: the tables of a report as text, lines for people on stderr, one JSON object on stdout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from bot.cli.files import print_json
from evaluation.report.page import Section, Table, cell

#: The narrowest width that a table is fitted to; a narrower terminal wraps lines instead of losing words.
WIDTH = 120
#: The narrowest that a first column of words is folded to.
FOLDED = 24


def data_of(sections: Iterable[Section]) -> dict[str, Any]:
    """Merge the data of all sections for ``--json``."""
    return {name: value for section in sections for name, value in section.data.items()}


def tell(sections: Sequence[Section], to_json: bool, value: dict[str, Any] | None = None) -> None:
    """Print what sections show, or one JSON object: ``value``, by default the data of all sections."""
    if to_json:
        print_json(data_of(sections) if value is None else value)
    else:
        show(sections)


def say(line: str) -> None:
    """A line for the person at the keyboard."""
    click.echo(line, err=True)


def tell_counts(counts: Counter[str], out: Path, as_json: bool) -> None:
    """Print the counts of a build by kind, most frequent first."""
    if as_json:
        print_json({"out": str(out), **dict(counts.most_common())})
        return
    for kind, count in counts.most_common():
        say(f"{count:6}  {kind}")


def show(sections: Iterable[Section], *, stderr: bool = False) -> None:
    """The words and tables of a report; folded tables and figures are left to the page."""
    width = max(Console(stderr=stderr).width, WIDTH)
    # As wide as the widest table needs: a terminal wraps lines, and no number is cut.
    console = Console(stderr=stderr, width=100_000, soft_wrap=True, highlight=False, markup=False)
    for section in sections:
        for table in section.tables:
            if not table.folded:
                _show_table(console, table, width)
        for paragraph in section.paragraphs:
            console.print(paragraph)


def short(model: str) -> str:
    """A model's name without the file that its replies were recorded in."""
    return model.rpartition("#")[2] if model.startswith("recorded:") else model


def _show_table(console: Console, table: Table, width: int) -> None:
    """Fold the words of the first column, never a number, if a table is too wide; no name is taken for markup."""
    rows = [[cell(value) for value in row] for row in table.rows]
    rest = sum(3 + max(map(len, column)) for column in list(zip(table.header, *rows, strict=True))[1:])
    room = max(FOLDED, width - rest)
    grid = Grid(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), title=table.title or None, title_justify="left")
    for place, (name, words) in enumerate(zip(table.header, table.words, strict=True)):
        grid.add_column(
            name,
            no_wrap=place > 0,
            overflow="fold",
            max_width=room if place == 0 else None,
            justify="left" if words else "right",
        )
    for place, row in enumerate(rows):
        if place == table.quoted_from:
            grid.add_section()
        quoted = table.quoted_from is not None and place >= table.quoted_from
        grid.add_row(*row, style="dim" if quoted else "")
    console.print(grid)
    if table.note:
        console.print(table.note)
