"""``bouncer-eval build fresh``. What it does is imported when it does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli import json_option, limit_option, workers_option

_folder = click.Path(path_type=Path, file_okay=False)


@click.command("fresh")
@click.option("--repo", type=_folder, required=True, help="A clone.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), required=True, help="Fixes from this day on.")
@click.option("--out", type=_folder, required=True, help="A folder; continued where it exists.")
@click.option("--name", metavar="OWNER/NAME", help="Default: what the clone's origin or folder says.")
@click.option("--test-command", metavar="CMD", required=True, help="Runs tests; {tests} becomes what to run.")
@click.option("--environment", type=_folder, help="A virtual environment that the tests need.")
@click.option("--setup", metavar="CMD", multiple=True, help="Or: makes one, with network, for each set of needs.")
@click.option(
    "--env",
    metavar="NAME=VALUE",
    multiple=True,
    help="For the tests, as PYTHONPATH=/repo/src: a tree is at /repo.",
)
@click.option(
    "--add-file",
    metavar="PATH=FILE",
    multiple=True,
    help="A file that every tree gets, as a version module that a build would write.",
)
@click.option(
    "--export", metavar="F", help="Issues: bouncer calibrate's export, or rows with number, title, body."
)
@click.option("--patches", metavar="F", help="JSON Lines: instance_id, candidate_id, patch; judged by running.")
@click.option("--narrow", is_flag=True, help="Only the tests that a fix brings, not the others of their files.")
@click.option(
    "--seconds", default=300, show_default=True, type=click.IntRange(1, 7200), help="Limit of a test run."
)
@limit_option
@workers_option(2)
@json_option
def build(**options: Any) -> int:
    """Executable tasks of all kinds from a clone's own recent fixes, each with its date and proven by running.

    reproduction.jsonl is for replay brt, output.jsonl for bouncerbench-output, review.jsonl for crbench.
    """
    from evaluation.fresh.building import build_command as run

    return run(**options)
