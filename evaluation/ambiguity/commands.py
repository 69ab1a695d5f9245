"""``bouncer-eval replay ambiguity`` and ``score ambiguity``. Their code is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli import json_option, model_options, replay_options, replicates_option, seed_option


@click.command("ambiguity")
@click.option(
    "--tasks",
    required=True,
    metavar="F",
    help="Ambig-SWE's full_summaries_verified.xlsx, or rows with instance_id, original_issue, problem_statement.",
)
@click.option(
    "--prompt",
    type=click.Choice(["paper", "panel", "careful"]),
    help="The question of triage.  [default: careful, unless --config says otherwise]",
)
@click.option("--author", metavar="ID", help="Plays the author, and compares answers.  [default: --model]")
@click.option("--no-loop", is_flag=True, help="Only triage both texts; ask the author nothing.")
@model_options
@replay_options()
@json_option
def replay(
    tasks: str, prompt: str | None, author: str | None, no_loop: bool, config: str | None, **options: Any
) -> int:
    """Triage the full text and the summary of each issue, let a simulated author answer, and triage again."""
    from evaluation.ambiguity.bench import AMBIGUITY, session
    from evaluation.run.replay import ReplayRequest
    from evaluation.run.replay import replay as run

    request = ReplayRequest(**{**options, "recognised": False})
    return run(AMBIGUITY, session(request, config, prompt, author, loop=not no_loop), tasks, request)


@click.command("ambiguity")
@click.option("--run", required=True, metavar="DIR", type=click.Path(path_type=Path), help="A run of replay.")
@seed_option
@replicates_option
@json_option
def score(run: Path, seed: int, replicates: int, as_json: bool) -> None:
    """Measure how well triage tells the texts of a pair apart, and what its questions bring back."""
    from evaluation.benchmark import Scoring
    from evaluation.report.runs import score_command

    score_command("ambiguity", run, None, Scoring("count", seed, replicates), as_json)
