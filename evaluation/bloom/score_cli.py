"""``bouncer-eval score bloom``: layers beside the baseline, from records alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli import json_option


@click.command("bloom")
@click.option("--baseline", metavar="RUN", type=click.Path(path_type=Path), help="The run on unchanged cases.")
@click.option(
    "--repeat", metavar="RUN", multiple=True, type=click.Path(path_type=Path), help="Remember: once more."
)
@click.option("--altered", metavar="RUN", multiple=True, type=click.Path(path_type=Path), help="On changed cases.")
@click.option("--picked", metavar="RUN", type=click.Path(path_type=Path), help="Evaluate: the same with --pick.")
@click.option(
    "--reports",
    metavar="F",
    help="Analyze: JSON Lines with bug_id or instance_id, title, description_html or body.",
)
@click.option(
    "--rankings", metavar="CSV", type=click.Path(path_type=Path), help="Analyze: which reports were reproduced."
)
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
def score_command(**given: Any) -> None:
    """Compare runs of replay brt layer by layer, or say which parts of a report go with success."""
    from evaluation.bloom.scoring import score_command as run

    run(**given)
