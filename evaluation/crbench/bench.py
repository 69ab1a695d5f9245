"""CR-Bench as a benchmark: the live reviewer on the pull requests that brought bugs in, and who judges it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot import app
from bot.errors import OperatorError
from bot.ops import settings
from evaluation.benchmark import Benchmark, Scoring, Session
from evaluation.crbench import sections
from evaluation.crbench.judge import Panel, Scope
from evaluation.crbench.judged import (
    BENCHMARK,
    Reviewed,
    Scored,
    is_judged,
    judge_comments,
    reviewed_file,
    reviewed_run,
    scored,
)
from evaluation.crbench.staging import stage
from evaluation.crbench.task import ReviewTask, read_tasks
from evaluation.git.clones import Clones
from evaluation.prompts import benchmark_prompts
from evaluation.report.terminal import say
from evaluation.run.folder import RunFacts, RunFolder
from evaluation.run.model import Account
from evaluation.run.replay import Wanted
from evaluation.run.staging import Staged, through_handler

#: Findings per pull request where none is cut off.
EVERY_FINDING = 100_000


@contextmanager
def opened(
    wanted: Wanted, config: str | None, repos: Path | None, shaping: Mapping[str, Any], as_paper: bool = False
) -> Iterator[Session[ReviewTask]]:
    """The pull requests for the review handler; ``shaping`` are keys of its config, None = unset.

    ``repos`` lets it read files, as they were when the pull request was opened. ``as_paper`` holds nothing back.
    """
    full = app.repo_config(config, {"review": shaping})
    if as_paper:
        uncut = {"min_severity": "low", "max_findings": EVERY_FINDING}  # no repository may ask for as many
        full = full.model_copy(update={"review": full.review.model_copy(update=uncut)})
    with Clones(repos or Path()) as clones:

        def staged(task: ReviewTask) -> Staged:
            assert task.pull is not None, "read_tasks gives complete tasks only"
            return stage(task.instance_id, task.repo, task.pull, clones.of(task.repo) if repos else None)

        prompts = app.prompts(wanted.environment)
        asked = (f"review.{full.review.strategy}",)
        session = through_handler(staged, "review", full, prompts, asked=asked, parts=("pulls", "review"))
        yield replace(session, config={**session.config, "preset": "paper"}) if as_paper else session


def reviewer(run: str | None, predictions: str | None) -> tuple[RunFacts | None, Reviewed]:
    """Whose comments are judged, and the facts of the run where it is one. Raises OperatorError."""
    if run is not None and predictions is None:
        folder = RunFolder.read(Path(run))
        if folder.facts.benchmark != BENCHMARK:
            raise OperatorError(f"{run} is a run of {folder.facts.benchmark}, not of {BENCHMARK}")
        return folder.facts, reviewed_run(folder)
    if predictions is None or run is not None:
        raise OperatorError("one of --run and --predictions is needed")
    return None, reviewed_file(predictions)


def have_judged(
    reviewed: Reviewed,
    facts: RunFacts | None,
    source: str,
    judges: tuple[str, ...],
    *,
    draws: int,
    seed: int,
    prompts: str | None,
    cache: str | None,
    max_cost: float | None,
    workers: int,
    scope: Scope | None,
) -> None:
    """Have the comments judged, or leave it at what was judged before.

    Raises OperatorError without a judge, BudgetExceeded where what judging may cost is spent.
    """
    environment = settings.load()
    default = (environment.bouncer_judge_model,) if environment.bouncer_judge_model else ()
    names = judges or default
    if not names:
        if is_judged(reviewed):
            return
        raise OperatorError("a judge is needed: --judge provider:name, or BOUNCER_JUDGE_MODEL")
    if facts is not None and facts.model in names:
        say(f"warning: {facts.model} judges its own comments; a judge should be another model")
    account = Account(environment, Path(cache or reviewed.folder / "judge-cache"), max_cost)
    models = tuple(account.model(name) for name in names)
    panel = Panel(models, benchmark_prompts(None if prompts is None else Path(prompts)), draws, seed, workers)
    judge_comments(reviewed, source, panel, scope or reviewed.scope)


def _score(run: RunFolder, name: str, source: str, scoring: Scoring) -> Scored:
    return scored(reviewed_run(run, name), source, scoring)


CRBENCH: Benchmark[ReviewTask, Scored] = Benchmark(
    BENCHMARK,
    read_tasks,
    lambda task: task.instance_id,
    _score,
    sections.on_report,
    lambda scores: [sections.judge_cost(each) for each in scores],
)
