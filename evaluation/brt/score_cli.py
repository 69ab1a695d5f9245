"""``bouncer-eval score brt``: from recorded outcomes alone; nothing is run and no model is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli import json_option


@click.command("brt")
@click.option(
    "--rankings",
    metavar="CSV",
    type=click.Path(path_type=Path),
    help="bug_id, first_success_rank (100000 = never), total_success_fibs, num_clusters.",
)
@click.option(
    "--before", metavar="CSV", type=click.Path(path_type=Path), help="The rankings before selection, for recall."
)
@click.option("--run", metavar="DIR", type=click.Path(path_type=Path), help="A run of replay.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@click.option("--replicates", type=click.IntRange(0, 100_000), default=2000, show_default=True)
@json_option
def score_command(**given: Any) -> None:
    """Score rankings of tests (acc@n, wef@n) or a run of replay (%BRT, and the rankings of what it drafted)."""
    from evaluation.brt.scoring import score_command as run

    run(**given)
