"""Shared by the commands: reading and writing files, a bar for progress, printing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bot.core.errors import OperatorError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from bot.settings import Settings

#: Bytes of an input file: more than GitHub shows of any issue or diff.
MAX_BYTES = 64 << 20

F = TypeVar("F", bound=Callable[..., Any])


def read_text(path: str, *, may_be_empty: bool = False) -> str:
    """Read a file, or standard input for ``-``; undecodable bytes become replacement characters.

    Raises OperatorError that names the file.
    """
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror or error}") from None
    name = "standard input" if path == "-" else path
    if len(raw) > MAX_BYTES:
        raise OperatorError(f"{name}: larger than {MAX_BYTES >> 20} MB")
    if not raw.strip() and not may_be_empty:
        raise OperatorError(f"{name}: empty")
    if b"\0" in raw:
        raise OperatorError(f"{name}: not text in UTF-8")
    return raw.decode("utf-8-sig", "replace")


def write_text(path: str | Path, text: str) -> None:
    """Write a file that an option names. Raises OperatorError that names it."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror or error}") from None


def data_folder(settings: Settings, *names: str) -> Path:
    """Return a private folder below BOUNCER_DATA_DIR, created if needed. Raises OperatorError."""
    folder = settings.bouncer_data_dir.joinpath(*names)
    try:
        # The mode applies to the last folder of a path only.
        settings.bouncer_data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"BOUNCER_DATA_DIR: {folder}: {error.strerror}") from None
    return folder


@contextmanager
def progress() -> Iterator[Callable[..., None]]:
    """Show a bar per step on stderr if that is a terminal. The result takes step, done, total and a note."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), disable=not sys.stderr.isatty()) as bar:
        rows: dict[str, TaskID] = {}

        def advance(step: str, done: int, total: int, note: str = "") -> None:
            if step not in rows:
                rows[step] = bar.add_task(step, total=total, note=note)
            bar.update(rows[step], completed=done, note=note)

        yield advance


def read_diff(path: str, *, may_be_empty: bool = False) -> str:
    """Read a unified diff. Raises OperatorError that names the file if it cannot be read."""
    from bot.code.change.diff import parse

    text = read_text(path, may_be_empty=may_be_empty)
    diff = parse(text)
    if diff.flaws and not diff.files:
        raise OperatorError(f"{'standard input' if path == '-' else path}: {diff.flaws[0]}")
    return text


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Combine options, in the order of ``--help``."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
prompts_option = click.option("--prompts", metavar="DIR", help="Other prompt templates.")


def show_card(text: str, *, err: bool = False) -> None:
    """Print for a person. Characters that control a terminal or forge text are escaped."""
    from bot.core.text import show

    click.echo("\n".join(show(line) for line in text.split("\n")), err=err)


def confirm(question: str, remedy: str) -> None:
    """Ask on a terminal before something is paid for. Raises OperatorError with a remedy without a terminal."""
    if not sys.stdin.isatty():
        raise OperatorError(f"cannot ask for confirmation (not a terminal): {remedy}")
    click.confirm(question, abort=True, err=True)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output. NaN is a bug: a figure that is not defined is ``null``."""
    click.echo(json.dumps(value, ensure_ascii=True, allow_nan=False))
