"""``bouncer-eval score bouncerbench-input|bouncerbench-output``: from files alone, no model is asked."""

from __future__ import annotations

from typing import Any

import click

from evaluation.bouncerbench.options import line_options, tasks_option
from evaluation.cli.options import F, json_option, with_options


def _score_options(command: F) -> F:
    options = (
        tasks_option,
        click.option("--run", metavar="DIR", help="A run of replay."),
        click.option(
            "--predictions", metavar="F", help="JSON Lines with label or bounce, or a submission's JSON."
        ),
        click.option("--model-name", metavar="NAME", help="Whose answers, where the file holds several models'."),
        click.option(
            "--against", metavar="RUN|F[#MODEL]", help="Other answers to the same tasks: what flipped since them."
        ),
        click.option(
            "--missing",
            type=click.Choice(["count", "accept", "exclude"]),
            default="count",
            show_default=True,
            help="No answer counts as never right; as a pass (the authors' convention); or not at all.",
        ),
        click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap."),
        click.option("--replicates", type=click.IntRange(0, 100_000), default=2000, show_default=True),
        json_option,
    )
    return with_options(line_options(command), options)


@click.command("bouncerbench-input")
@_score_options
def score_input(**given: Any) -> None:
    """Score answers to input tasks with the paper's metrics."""
    from evaluation.bouncerbench.scoring import score_input as run

    run(**given)


@click.command("bouncerbench-output")
@_score_options
def score_output(**given: Any) -> None:
    """Score answers to output tasks with the paper's metrics."""
    from evaluation.bouncerbench.scoring import score_output as run

    run(**given)
