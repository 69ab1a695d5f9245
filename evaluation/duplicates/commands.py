"""``bouncer-eval replay duplicates`` and ``score duplicates``. Their code is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli import json_option, model_options, replay_options, replicates_option, seed_option


@click.command("duplicates")
@click.option("--tasks", required=True, metavar="F", help="What build own --duplicates wrote.")
@model_options
@replay_options()
@json_option
def replay(tasks: str, config: str | None, **options: Any) -> int:
    """Open each task as a new issue, and let the live feature compare it with the issues before it."""
    from evaluation.duplicates.bench import DUPLICATES, opened
    from evaluation.run.replay import ReplayRequest
    from evaluation.run.replay import replay as run

    request = ReplayRequest(**{**options, "recognised": False})
    with opened(request, config, tasks) as session:
        return run(DUPLICATES, session, tasks, request)


@click.command("duplicates")
@click.option("--run", required=True, metavar="DIR", type=click.Path(path_type=Path), help="A run of replay.")
@click.option("--tasks", metavar="F", help="Score on this task file instead of the run's.")
@click.option(
    "--suggest-above",
    type=click.IntRange(0, 100),
    metavar="P",
    help="The threshold in percent.  [default: duplicates.suggest_above of the run, or 0]",
)
@seed_option
@replicates_option
@json_option
def score(
    run: Path, tasks: str | None, suggest_above: int | None, seed: int, replicates: int, as_json: bool
) -> None:
    """Measure how often the repeated issue is found, and how often a suggestion names it."""
    from evaluation.benchmark import Scoring
    from evaluation.report.runs import score_command

    score_command(
        "duplicates",
        run,
        tasks,
        Scoring("count", seed, replicates),
        as_json,
        lambda score: score if suggest_above is None else score.at(suggest_above),
    )
