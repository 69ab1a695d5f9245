"""``bouncer-eval build golden``: review tasks from other people's golden comments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli.options import json_option


@click.command("golden")
@click.option("--set", "kind", type=click.Choice(["aacr", "martian"]), required=True, help="Whose comments.")
@click.option("--source", required=True, metavar="F", help="The data set, .jsonl(.gz) or hf:NAME.")
@click.option("--repos", type=click.Path(path_type=Path, file_okay=False), required=True, help="Clones.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="JSON Lines; continued if there.")
@click.option("--defects-only", is_flag=True, help="Leave out comments about maintainability.")
@click.option("--overwrite", is_flag=True, help="Begin anew where --out exists.")
@json_option
def build_golden_command(**given: Any) -> None:
    """Make review tasks of pull requests whose change a local clone holds, for replay and score crbench."""
    from evaluation.crbench.golden_building import build_golden_command as run

    run(**given)
