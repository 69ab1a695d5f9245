"""Options that several of BouncerBench's commands take."""

from __future__ import annotations

import click

from bot.errors import OperatorError
from evaluation.bouncerbench.answers import PAPER_LINE, Line
from evaluation.bouncerbench.tasks import LABELS, Benchmark
from evaluation.cli.options import F, with_options

tasks_option = click.option("--tasks", required=True, metavar="F", help=".jsonl(.gz), .csv(.gz) or hf:owner/name.")
_LINE = (
    click.option("--bounce-at", metavar="LABEL", help="The mildest label that bounces."),
    click.option("--bounce-above", type=click.IntRange(0, 100), metavar="P", help="Bounce from P percent on."),
)


def line_options(command: F) -> F:
    """``--bounce-at`` and ``--bounce-above``."""
    return with_options(command, _LINE)


def line_of(benchmark: Benchmark, bounce_at: str | None, bounce_above: int | None) -> Line | None:
    """The line that the options draw; None where they say nothing. Raises OperatorError for a strange label."""
    if bounce_at is None and bounce_above is None:
        return None
    names: list[str] = [each.value for each in LABELS[benchmark]]
    if bounce_at is not None and bounce_at not in names[1:]:
        raise OperatorError(f"--bounce-at: {bounce_at!r} is none of {', '.join(names[1:])}")
    return Line(PAPER_LINE if bounce_at is None else names.index(bounce_at), bounce_above)
