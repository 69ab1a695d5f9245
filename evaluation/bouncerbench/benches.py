"""BouncerBench's tasks as what ``replay`` runs: which handler, which config, how a task becomes an event."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bot import app
from bot.core.config import TriageConfig, VerifyConfig
from bot.errors import OperatorError
from evaluation.bouncerbench.code import Code
from evaluation.bouncerbench.staging import stage_input, stage_output
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, InputTask, OutputTask, input_tasks, output_tasks
from evaluation.run.replay import Replayable, Wanted, replay

#: The keys of the bouncers' config that the command line can set.
SHAPING = ("prompt", "bounce_at", "bounce_above", "investigate")


def input_bench(
    tasks: str, config: str | None = None, code: Code | None = None, **shaping: Any
) -> Replayable[InputTask]:
    """The issues of a task file, for the triage handler; ``shaping`` are keys of its config, None = unset."""
    repo_config = app.repo_config(config, {"triage": shaping})
    return Replayable(
        benchmark=INPUT,
        source=tasks,
        read=input_tasks,
        identify=lambda task: task.instance_id,
        ready=lambda task: task.problem_statement is not None,
        stage=lambda task: stage_input(task, code),
        handler="triage",
        config=repo_config,
        prompts=_prompts("triage", repo_config.triage, code),
        parts=("triage",),
    )


def output_bench(
    tasks: str, config: str | None = None, code: Code | None = None, **shaping: Any
) -> Replayable[OutputTask]:
    """The patches of a task file, for the verify handler; ``shaping`` as in ``input_bench``."""
    repo_config = app.repo_config(config, {"verify": shaping})
    return Replayable(
        benchmark=OUTPUT,
        source=tasks,
        read=output_tasks,
        identify=lambda task: task.instance_id,
        ready=lambda task: task.problem_statement is not None and task.patch is not None,
        stage=lambda task: stage_output(task, code),
        handler="verify",
        config=repo_config,
        prompts=_prompts("verify", repo_config.verify, code),
        parts=("pulls", "verify"),
    )


def _prompts(handler: str, config: TriageConfig | VerifyConfig, code: Code | None) -> tuple[str, ...]:
    """The prompts that are asked. Raises OperatorError where code is wanted and not at hand, or the reverse."""
    question = f"{handler}.{config.prompt}"
    if not config.investigate:
        if code is not None:
            raise OperatorError("--repos: nobody looks at the clones without --investigate")
        return (question,)
    if code is None:
        raise OperatorError(f"--repos DIR is needed: {handler}.investigate is on, and there is no code to look at")
    return (question, "investigate", "investigated")


def replay_input(tasks: str, config: str | None, **given: Any) -> int:
    """Open the issue of every input task and record what the input bouncer decides."""
    return _replay(input_bench, tasks, config, given)


def replay_output(tasks: str, config: str | None, **given: Any) -> int:
    """Open a pull request for every output task and record what the output bouncer decides."""
    return _replay(output_bench, tasks, config, given)


def _replay(bench: Callable[..., Replayable[Any]], tasks: str, config: str | None, given: dict[str, Any]) -> int:
    shaping = {name: given.pop(name) for name in SHAPING}
    repos: Path | None = given.pop("repos")
    with nullcontext() if repos is None else Code(repos) as code:
        return replay(bench(tasks, config, code, **shaping), Wanted(**given))
