"""``bouncer-eval replay bouncerbench-input|bouncerbench-output``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evaluation.bouncerbench.options import line_options, prompt_option, tasks_option
from evaluation.cli.options import F, json_option, model_options, replay_options, with_options

_AGENTIC = (
    click.option(
        "--investigate",
        is_flag=True,
        default=None,
        help="Let it read the code at the base commit first (the paper's agentic bouncer); needs --repos.",
    ),
    click.option(
        "--repos",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False, exists=True),
        help="Local clones named owner+name or owner/name, for --investigate.",
    ),
)


def _options(command: F) -> F:
    shared = with_options(model_options(replay_options(json_option(command))), _AGENTIC)
    return tasks_option(prompt_option(line_options(shared)))


@click.command("bouncerbench-input")
@_options
def replay_input(**given: Any) -> int:
    """Open the issue of every input task and record what the input bouncer decides."""
    from evaluation.bouncerbench.benches import replay_input as run

    return run(**given)


@click.command("bouncerbench-output")
@_options
def replay_output(**given: Any) -> int:
    """Open a pull request for every output task and record what the output bouncer decides."""
    from evaluation.bouncerbench.benches import replay_output as run

    return run(**given)
