"""``bouncer-eval replay bouncerbench-input|bouncerbench-output``."""

from __future__ import annotations

from typing import Any

import click

from bot import wiring
from evaluation.bouncerbench.options import line_options, tasks_option
from evaluation.bouncerbench.staging import stage_input, stage_output
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, InputTask, OutputTask, input_tasks, output_tasks
from evaluation.cli.options import json_option, model_options, replay_options
from evaluation.cli.replaying import Replayable, Wanted, replay

_prompt_option = click.option("--prompt", type=click.Choice(["paper", "panel"]), help="Which question is asked.")


@click.command("bouncerbench-input")
@tasks_option
@_prompt_option
@line_options
@model_options
@replay_options
@json_option
def replay_input(
    tasks: str,
    prompt: str | None,
    bounce_at: str | None,
    bounce_above: int | None,
    config: str | None,
    **given: Any,
) -> int:
    """Open the issue of every input task and record what the input bouncer decides."""
    overrides = {"prompt": prompt, "bounce_at": bounce_at, "bounce_above": bounce_above}
    repo_config = wiring.repo_config(config, {"triage": overrides})
    bench = Replayable[InputTask](
        benchmark=INPUT,
        source=tasks,
        read=input_tasks,
        identify=lambda task: task.instance_id,
        ready=lambda task: task.problem_statement is not None,
        stage=stage_input,
        handler="triage",
        config=repo_config,
        prompts=(f"triage.{repo_config.triage.prompt}",),
        parts=("triage",),
    )
    return replay(bench, Wanted(**given))


@click.command("bouncerbench-output")
@tasks_option
@_prompt_option
@line_options
@model_options
@replay_options
@json_option
def replay_output(
    tasks: str,
    prompt: str | None,
    bounce_at: str | None,
    bounce_above: int | None,
    config: str | None,
    **given: Any,
) -> int:
    """Open a pull request for every output task and record what the output bouncer decides."""
    overrides = {"prompt": prompt, "bounce_at": bounce_at, "bounce_above": bounce_above}
    repo_config = wiring.repo_config(config, {"verify": overrides})
    bench = Replayable[OutputTask](
        benchmark=OUTPUT,
        source=tasks,
        read=output_tasks,
        identify=lambda task: task.instance_id,
        ready=lambda task: task.problem_statement is not None and task.patch is not None,
        stage=stage_output,
        handler="verify",
        config=repo_config,
        prompts=(f"verify.{repo_config.verify.prompt}",),
        parts=("pulls", "verify"),
    )
    return replay(bench, Wanted(**given))
