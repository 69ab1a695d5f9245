"""``bouncer-eval report RUN...``: one page about runs, compared where they are of the same benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from bot import __version__
from bot.errors import OperatorError
from evaluation.cli.options import json_option, say
from evaluation.report.facts import is_timeless
from evaluation.report.page import Report, Section, as_html, as_json, as_markdown
from evaluation.run.folder import RunFolder

Runs = Sequence[tuple[str, RunFolder]]

#: Benchmark -> the function that writes about its runs: ``sections(runs, tasks, missing, seed)``.
WRITERS: dict[str, str] = {
    "bouncerbench-input": "evaluation.bouncerbench.report:sections",
    "bouncerbench-output": "evaluation.bouncerbench.report:sections",
    "crbench": "evaluation.crbench.report:sections",
    "brt": "evaluation.brt.report:sections",
}
#: For a benchmark that the table does not know.
PLAIN = "evaluation.report.facts:sections"


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--out", metavar="F", help="report.html, report.md or report.json; without it the Markdown is printed."
)
@click.option(
    "--tasks", multiple=True, metavar="[BENCH=]F", help="Score on this task file instead of the run's own."
)
@click.option("--missing", type=click.Choice(["count", "accept", "exclude"]), default="count", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@json_option
def command(
    runs: tuple[str, ...], out: str | None, tasks: tuple[str, ...], missing: str, seed: int, as_json: bool
) -> None:
    """Tables beside the papers' rows, plots, and what each number describes, on one page."""
    folders = named([RunFolder.read(Path(run)) for run in runs])
    written = write(folders, _task_files(tasks, folders), missing, seed)
    if out is not None:
        _store(Path(out), written)
    if as_json:
        click.echo(_json_line(written))
    elif out is None:
        click.echo(as_markdown(written), nl=False)


def named(folders: Sequence[RunFolder]) -> list[tuple[str, RunFolder]]:
    """A short name for each run: its model's, with the folder's where two would be the same."""
    short = [folder.facts.model.rpartition("#")[2] for folder in folders]
    names = [
        name if short.count(name) == 1 or _alone(folder, folders, short) else f"{name} ({folder.path.name})"
        for name, folder in zip(short, folders, strict=True)
    ]
    return list(zip(names, folders, strict=True))


def _alone(folder: RunFolder, folders: Sequence[RunFolder], short: Sequence[str]) -> bool:
    """Whether no other run of the same benchmark has the same name: one input and one output run may share it."""
    mine = folder.facts.model.rpartition("#")[2]
    same = [
        other
        for other, name in zip(folders, short, strict=True)
        if name == mine and other.facts.benchmark == folder.facts.benchmark
    ]
    return len(same) == 1


def write(runs: Runs, tasks: dict[str, str], missing: str, seed: int) -> Report:
    """The report on these runs, benchmark by benchmark."""
    groups: dict[str, list[tuple[str, RunFolder]]] = {}
    for name, run in runs:
        groups.setdefault(WRITERS.get(run.facts.benchmark, PLAIN), []).append((name, run))
    sections: list[Section] = []
    for writer, group in groups.items():
        sections += _writer(writer)(group, tasks, missing, seed)
    benchmarks = ", ".join(dict.fromkeys(run.facts.benchmark for _, run in runs))
    made = f"bouncer {__version__}"
    if not all(is_timeless(run.facts) for _, run in runs):
        made += f", {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return Report(f"{benchmarks}: {', '.join(dict.fromkeys(name for name, _ in runs))}", tuple(sections), made)


def _writer(name: str) -> Callable[..., list[Section]]:
    module, _, attribute = name.partition(":")
    found: Any = getattr(import_module(module), attribute)
    assert callable(found)
    return found  # type: ignore[no-any-return]  # the table above says what it is


def _task_files(given: Sequence[str], runs: Runs) -> dict[str, str]:
    """Task file by benchmark; a file without a benchmark's name is for all runs."""
    benchmarks = {run.facts.benchmark for _, run in runs}
    files: dict[str, str] = {}
    for each in given:
        name, found, file = each.partition("=")
        if found and name in WRITERS:
            files[name] = file
        elif len(benchmarks) == 1:
            files[next(iter(benchmarks))] = each
        else:
            raise OperatorError(f"--tasks {each}: the runs are of several benchmarks, write BENCH=F")
    return files


def _store(file: Path, report: Report) -> None:
    forms = {".html": as_html, ".htm": as_html, ".md": as_markdown, ".json": as_json}
    if file.suffix not in forms:
        raise OperatorError(f"--out {file}: must end in {', '.join(forms)}")
    try:
        file.write_text(forms[file.suffix](report), encoding="utf-8", errors="replace")
    except OSError as error:
        raise OperatorError(f"--out {file}: {error.strerror}") from None
    say(f"written: {file}")


def _json_line(report: Report) -> str:
    return " ".join(as_json(report).split("\n")).strip()
