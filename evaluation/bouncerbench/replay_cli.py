"""``bouncer-eval replay bouncerbench-input|bouncerbench-output``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bot import wiring
from evaluation.bouncerbench.options import line_options, prompt_option, tasks_option
from evaluation.bouncerbench.staging import stage_input, stage_output
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, InputTask, OutputTask, input_tasks, output_tasks
from evaluation.cli.options import F, json_option, model_options, replay_options
from evaluation.cli.replaying import Replayable, Wanted, replay


def input_bench(
    tasks: str,
    config: str | None = None,
    prompt: str | None = None,
    bounce_at: str | None = None,
    bounce_above: int | None = None,
) -> Replayable[InputTask]:
    """The issues of a task file, for the triage handler."""
    overrides = {"prompt": prompt, "bounce_at": bounce_at, "bounce_above": bounce_above}
    repo_config = wiring.repo_config(config, {"triage": overrides})
    return Replayable(
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


def output_bench(
    tasks: str,
    config: str | None = None,
    prompt: str | None = None,
    bounce_at: str | None = None,
    bounce_above: int | None = None,
) -> Replayable[OutputTask]:
    """The patches of a task file, for the verify handler."""
    overrides = {"prompt": prompt, "bounce_at": bounce_at, "bounce_above": bounce_above}
    repo_config = wiring.repo_config(config, {"verify": overrides})
    return Replayable(
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


def _options(command: F) -> F:
    shared = model_options(replay_options(json_option(command)))
    return tasks_option(prompt_option(line_options(shared)))


@click.command("bouncerbench-input")
@_options
def replay_input(tasks: str, config: str | None, **given: Any) -> int:
    """Open the issue of every input task and record what the input bouncer decides."""
    return _replay(input_bench, tasks, config, given)


@click.command("bouncerbench-output")
@_options
def replay_output(tasks: str, config: str | None, **given: Any) -> int:
    """Open a pull request for every output task and record what the output bouncer decides."""
    return _replay(output_bench, tasks, config, given)


def _replay(bench: Callable[..., Replayable[Any]], tasks: str, config: str | None, given: dict[str, Any]) -> int:
    shaping = {name: given.pop(name) for name in ("prompt", "bounce_at", "bounce_above")}
    return replay(bench(tasks, config, **shaping), Wanted(**given))
