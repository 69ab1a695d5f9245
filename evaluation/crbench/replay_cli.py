"""``bouncer-eval replay crbench``: the live review handler on the pull requests that brought bugs in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.cli.options import json_option, model_options, replay_options


@click.command("crbench")
@click.option("--tasks", required=True, metavar="F", help="What build crbench or build own wrote.")
@click.option("--repos", type=click.Path(path_type=Path, file_okay=False), help="Clones, to let it read files.")
@click.option("--strategy", type=click.Choice(["single-shot", "reflexion"]), help="How a change is read.")
@click.option("--iterations", type=click.IntRange(1, 5), help="reflexion: rounds of looking again.")
@click.option("--min-severity", type=click.Choice(["low", "medium", "high"]), help="Weaker findings stay unsaid.")
@click.option("--max-findings", type=click.IntRange(1, 25), help="Findings per pull request at most.")
@model_options
@replay_options
@json_option
def replay_command(**given: Any) -> int:
    """Open every task's pull request and record what the reviewer would post."""
    from evaluation.crbench.replaying import replay_command as run

    return run(**given)
