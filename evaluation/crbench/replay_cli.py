"""``bouncer-eval replay crbench``: the live review handler on the pull requests that brought bugs in."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

import click

from bot import wiring
from evaluation.cli.options import json_option, model_options, replay_options
from evaluation.cli.replaying import Replayable, Wanted, replay
from evaluation.crbench.git import GitRepository, find_clone
from evaluation.crbench.staging import stage
from evaluation.crbench.task import ReviewTask, read_tasks
from evaluation.replay import Staged

BENCHMARK = "crbench"


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
def replay_command(
    tasks: str,
    repos: Path | None,
    strategy: str | None,
    iterations: int | None,
    min_severity: str | None,
    max_findings: int | None,
    config: str | None,
    **given: Any,
) -> int:
    """Open every task's pull request and record what the reviewer would post."""
    overrides = {
        "strategy": strategy,
        "iterations": iterations,
        "min_severity": min_severity,
        "max_findings": max_findings,
    }
    repo_config = wiring.repo_config(config, {"review": overrides})
    with ExitStack() as stack:
        clones: dict[str, GitRepository | None] = {}
        mutex = Lock()

        def clone_of(full_name: str) -> GitRepository | None:
            with mutex:
                if repos is not None and full_name not in clones:
                    folder = find_clone(repos, full_name)
                    clones[full_name] = None if folder is None else stack.enter_context(GitRepository(folder))
                return clones.get(full_name)

        def staged(task: ReviewTask) -> Staged:
            assert task.pull is not None, "read_tasks gives complete tasks only"
            return stage(task.instance_id, task.repo, task.pull, clone_of(task.repo))

        bench = Replayable[ReviewTask](
            benchmark=BENCHMARK,
            source=tasks,
            read=read_tasks,
            identify=lambda task: task.instance_id,
            ready=lambda task: True,
            stage=staged,
            handler="review",
            config=repo_config,
            prompts=(f"review.{repo_config.review.strategy}",),
            parts=("pulls", "review"),
        )
        return replay(bench, Wanted(**given))
