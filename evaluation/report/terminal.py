"""Tables in a terminal: no number is cut off, and no name is taken for markup."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

#: The narrowest width at which every table here fits; a narrower terminal wraps lines instead of losing words.
WIDTH = 120


def wide_console(*, stderr: bool = False) -> Console:
    """A console on which no table is cut. Names come from files, so they are shown as they are."""
    width = Console(stderr=stderr).width
    return Console(stderr=stderr, width=max(width, WIDTH), soft_wrap=True, highlight=False, markup=False)


def new_table(*columns: str) -> Table:
    """An empty table; where it is too wide, the first column's words are folded, never a number."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, no_wrap=place > 0, overflow="fold")
    return table


def short(model: str) -> str:
    """A model's name without the file that its replies were recorded in."""
    return model.rpartition("#")[2] if model.startswith("recorded:") else model
