"""``bouncer-eval score crbench``: have a run's comments judged, then print what they are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli.options import json_option


@click.command("crbench")
@click.option("--tasks", required=True, metavar="F", help="What build crbench or build own wrote.")
@click.option("--run", "run_path", metavar="DIR", help="A run of replay crbench.")
@click.option("--predictions", metavar="F", help="Or any reviewer's: instance_id, path, line, comment a line.")
@click.option(
    "--judge", "judges", multiple=True, metavar="ID", help="provider:name; default: BOUNCER_JUDGE_MODEL."
)
@click.option("--draws", type=click.IntRange(1, 25), default=1, show_default=True, help="Votes of each judge.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the judging order and the bootstrap.")
@click.option("--prompts", type=click.Path(path_type=Path), help="Other prompt templates.")
@click.option("--cache", type=click.Path(path_type=Path), help="Judges' replies; default: in the run.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What judging may cost.")
@click.option("--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Comments at a time.")
@click.option(
    "--comments",
    "scope",
    type=click.Choice(["posted", "reported"]),
    help="What people would have seen (default), or also what was held back; without a judge: what was judged.",
)
@click.option(
    "--missing",
    type=click.Choice(["count", "exclude"]),
    default="count",
    show_default=True,
    help="A task without an answer: its bug counts as not found, or not at all.",
)
@click.option("--replicates", type=click.IntRange(0, 100_000), default=2000, show_default=True)
@json_option
def score_command(**given: Any) -> int:
    """Judge review comments against the known bugs; without a judge, print what was judged before."""
    from evaluation.crbench.scoring import score_command as run

    return run(**given)
