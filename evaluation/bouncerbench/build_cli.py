"""``bouncer-eval build bouncerbench``: task files out of annotations, instances and submitted patches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli.options import json_option


@click.command("bouncerbench")
@click.option(
    "--annotations", required=True, metavar="F", help="underspecified, false_negative, other_major_issues."
)
@click.option(
    "--instances", required=True, metavar="F", help="SWE-bench instances: problem_statement, base_commit."
)
@click.option("--patches", required=True, metavar="F", help="Submitted patches with resolved or tests_status.")
@click.option(
    "--repos",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Local clones: patches that git refuses at the base commit are removed.",
)
@click.option("--submission", metavar="NAME", help="All patches of one submission instead of one an instance.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which patch an instance gets.")
@click.option(
    "--out", required=True, metavar="DIR", help="input.jsonl.gz, output.jsonl.gz, lite.jsonl.gz, build.json."
)
@json_option
def command(**given: Any) -> None:
    """Build input, output and Lite tasks as the paper does (II.A), and print the count of every step."""
    from evaluation.bouncerbench.building import command as run

    run(**given)
