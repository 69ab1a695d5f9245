"""The live review handler on the pull requests that brought bugs in, as one run."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

from bot import app
from evaluation.crbench.staging import stage
from evaluation.crbench.task import ReviewTask, read_tasks
from evaluation.git.repository import GitRepository, find_clone
from evaluation.run.replay import Replayable, Wanted, replay
from evaluation.run.staging import Staged

BENCHMARK = "crbench"


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
    repo_config = app.repo_config(config, {"review": overrides})
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
