"""``bouncer-eval build fresh``. What it does is imported when it does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli import json_option, limit_option, workers_option

_folder = click.Path(path_type=Path, file_okay=False)


@click.command("fresh")
@click.option("--repo", type=_folder, required=True, help="A clone.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    required=True,
    help="Use fixes since this day.",
)
@click.option("--out", type=_folder, required=True, help="Output folder; an existing build is continued.")
@click.option(
    "--name", metavar="OWNER/NAME", help="Name of the repository.  [default: from the clone's origin or folder]"
)
@click.option("--test-command", metavar="CMD", required=True, help="Runs tests; {tests} becomes what to run.")
@click.option("--environment", type=_folder, help="A virtual environment that the tests need.")
@click.option(
    "--setup",
    metavar="CMD",
    multiple=True,
    help="Or a command that makes one, with network access, once per set of dependencies.",
)
@click.option(
    "--env",
    metavar="NAME=VALUE",
    multiple=True,
    help="Environment of the tests, for example PYTHONPATH=/repo/src; the tree is at /repo.",
)
@click.option(
    "--add-file",
    metavar="PATH=FILE",
    multiple=True,
    help="A file to add to every tree, for example a version module that a build would write.",
)
@click.option(
    "--export", metavar="F", help="Issues: bouncer calibrate's export, or rows with number, title, body."
)
@click.option("--patches", metavar="F", help="JSON Lines: instance_id, candidate_id, patch; judged by running.")
@click.option("--narrow", is_flag=True, help="Run only the tests that a fix adds, not the rest of their files.")
@click.option(
    "--seconds", default=300, show_default=True, type=click.IntRange(1, 7200), help="Time limit of a test run."
)
@limit_option
@workers_option(2)
@json_option
def build(**options: Any) -> int:
    """Build executable tasks of every kind from a clone's recent fixes, with dates, proven by running their tests.

    reproduction.jsonl is for replay brt, output.jsonl for bouncerbench-output, review.jsonl for crbench.
    """
    from evaluation.fresh.building import build_command as run

    return run(**options)
