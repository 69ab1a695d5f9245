"""``bouncer-eval build bloom``: the same bugs, told or named otherwise, as cases for ``replay brt``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.bloom.paper import LANGUAGE

CHANGES = ("rephrased", "translated", "hash", "meaningful", "clarified")


@click.command("bloom")
@click.option("--cases", required=True, metavar="FILE", help="As for replay brt.")
@click.option(
    "--change",
    "changes",
    type=click.Choice(CHANGES),
    multiple=True,
    required=True,
    help="May be given several times; made in this order.",
)
@click.option("--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="A new folder.")
@click.option("--model", metavar="ID", help="Rewrites and names; triage for clarified. Default: BOUNCER_MODEL.")
@click.option("--judge", metavar="ID", help="Verifies meanings; the author for clarified. Default: the model.")
@click.option("--language", default=LANGUAGE, show_default=True, help="For translated.")
@click.option("--known", metavar="FILE", help="For clarified: JSON Lines, instance_id and hints_text or patch.")
@click.option("--limit", type=click.IntRange(min=1), help="So many cases.")
@click.option("--seed", type=int, help="Which cases --limit takes.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What it may cost in all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def build_command(**given: Any) -> int:
    """Change reports and method names of known bugs, layer by layer, to see what a model's success rests on."""
    from evaluation.bloom.building import build_command as run

    return run(**given)
