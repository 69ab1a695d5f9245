"""Tables in a terminal, beside the paper's rows."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from evaluation.crbench.dataset import PAPER, Averages, Statistics

#: The narrowest width at which every table here fits; a narrower terminal wraps lines instead of losing words.
WIDTH = 100


def print_statistics(name: str, found: Statistics) -> None:
    """Averages beside the paper's Table 3, then shares and reasons."""
    console = wide_console(stderr=True)
    table = new_table("data set", "tasks", "lines fixed", "comments", "description length")
    for title, row in {name: found.averages, **PAPER}.items():
        table.add_row(title, str(row.tasks), *_cells(row), style="" if title == name else "dim")
    console.print(table)
    for title, counts in (
        ("category", found.categories),
        ("impact", found.impacts),
        ("severity", found.severities),
        ("discarded", found.discarded),
    ):
        if counts:
            console.print(f"{title}: " + ", ".join(f"{what} {count}" for what, count in counts.items()))


def wide_console(*, stderr: bool = False) -> Console:
    """A console on which no table is cut."""
    width = Console(stderr=stderr).width
    return Console(stderr=stderr, width=max(width, WIDTH), soft_wrap=True, highlight=False)


def new_table(*columns: str) -> Table:
    """An empty table in the house's style."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _cells(row: Averages) -> tuple[str, ...]:
    comments = "–" if row.comments is None else f"{row.comments:.2f}"
    if row.comments is not None and row.comments_known < row.tasks:
        comments += f" (of {row.comments_known})"
    return (_mean(row.lines_fixed), comments, _mean(row.description_length))


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
