"""BouncerBench's two benchmarks: a task as the event of a live repository, and what its scores are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bot import app
from bot.core.config import TriageConfig, VerifyConfig
from bot.core.errors import OperatorError
from bot.core.events import RepositoryEvent
from bot.core.subjects import Issue
from bot.github.offline import AUTHOR, issue_opened, pull_request_opened, split_title
from evaluation.benchmark import Benchmark, Scoring, Session
from evaluation.bouncerbench import sections
from evaluation.bouncerbench.answers import Answer, gather, run_answers
from evaluation.bouncerbench.metrics import Figures, Scored, Tasks, score
from evaluation.bouncerbench.tasks import (
    INPUT,
    OUTPUT,
    InputTask,
    Kind,
    OutputTask,
    input_tasks,
    number_of,
    output_tasks,
)
from evaluation.git.clones import Clones
from evaluation.report.cutoff import Sample
from evaluation.report.terminal import short
from evaluation.run.folder import RunFolder
from evaluation.run.replay import ReplayRequest
from evaluation.run.staging import Staged, repository_named, through_handler


def stage(task: InputTask | OutputTask, code: Clones | None = None) -> Staged:
    """The issue is opened, or a pull request that closes it with the patch; ``task`` has the texts.

    ``code`` lets a handler read the files of the base commit; raises OperatorError if it is not there.
    """
    assert task.problem_statement is not None, "only ready tasks are staged"
    title, body = split_title(task.problem_statement)
    number, repository = number_of(task.instance_id), repository_named(task.repo)
    event: RepositoryEvent
    if isinstance(task, InputTask):
        event, snapshot = issue_opened(title, body, repository, number)
    else:
        assert task.patch is not None, "only ready tasks are staged"
        event, snapshot = pull_request_opened(
            task.patch,
            title=f"Resolve #{number}",
            body=f"Fixes #{number}.",
            issues=(Issue(number=number, title=title, body=body, author=AUTHOR),),
            repository=repository,
            number=number + 1,
            base_sha=task.base_commit,
        )
    staged = Staged(task.instance_id, event, snapshot)
    return staged if code is None else code.beside(staged, task.base_commit)


@contextmanager
def opened(
    kind: Kind,
    request: ReplayRequest,
    config: str | None,
    repos: Path | None,
    shaping: Mapping[str, Any],
    overrides: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Iterator[Session[Any]]:
    """The issues for the triage handler, or the patches for the verify handler.

    ``shaping`` are keys of the handler's config, None = unset, above ``overrides`` (``--set``); ``repos`` lets it
    read the code at the base commit. If nothing says otherwise, the paper's question is asked.
    """
    handler = "triage" if kind == INPUT else "verify"
    keys = {**overrides.get(handler, {}), **{name: value for name, value in shaping.items() if value is not None}}
    if config is None:
        keys.setdefault("prompt", "paper")
    prompts = app.prompts(request.environment)
    full = app.repo_config(config, {**overrides, handler: keys})
    judging = full.triage if kind == INPUT else full.verify
    needs_one = "bounce_above" if judging.bounce_above is not None else request.environment.bouncer_model
    needs_one = needs_one.partition("(")[0]
    if judging.prompt == "paper" and needs_one in ("bounce_above", "mean", "cascade"):
        raise OperatorError(f"{needs_one}: the paper's question asks for no probability; give --prompt careful")
    with Clones(repos or Path()) as clones:
        code = None if repos is None else clones

        def is_ready(task: InputTask | OutputTask) -> bool:
            has_patch = not isinstance(task, OutputTask) or task.patch is not None
            return task.problem_statement is not None and has_patch

        session: Session[Any] = through_handler(
            partial(stage, code=code),
            handler,
            full,
            prompts,
            prompt_names=_prompt_names(handler, judging, code),
            parts=("triage",) if kind == INPUT else ("pulls", "verify"),
            ready=is_ready,
            recognition=request.recognised and judging.prompt != "paper",
        )
        yield replace(session, config={**session.config, "code": code is not None})


def _prompt_names(handler: str, config: TriageConfig | VerifyConfig, code: Clones | None) -> tuple[str, ...]:
    """The prompts that are asked. Raises OperatorError if code is wanted and not at hand, or the reverse."""
    question = f"{handler}.{config.prompt}"
    questions = ("verify.demands", question) if config.prompt == "rubric" else (question,)
    if not config.investigate:
        around = isinstance(config, VerifyConfig) and config.prompt != "paper" and config.context_tokens > 0
        if code is not None and not around:
            raise OperatorError("--repos: this question is asked without the code; --investigate looks at it")
        return questions
    if code is None:
        raise OperatorError(f"--repos DIR is needed: {handler}.investigate is on, and there is no code to look at")
    return (*questions, "investigate", "investigated")


def scored(kind: Kind, name: str, tasks: Tasks, answers: Mapping[str, Answer], scoring: Scoring) -> Scored:
    """Answers with their figures. Raises OperatorError if there is nothing to score."""
    metrics = score(kind, tasks, answers, scoring.missing, scoring.resampling)
    return Scored(name, kind, tasks, answers, metrics)


def _benchmark(kind: Kind, read: Callable[[str], Iterator[Any]]) -> Benchmark[Any, Scored]:
    def score_run(run: RunFolder, name: str, source: str, scoring: Scoring) -> Scored:
        return scored(
            kind, name, labelled(bench.due(run, source), source, f" of {run.path}"), run_answers(run), scoring
        )

    def score_file(answers: str, source: str, scoring: Scoring) -> list[Scored]:
        file, _, model = answers.partition("#")
        tasks, models = labelled(list(read(source)), source), gather(kind, None, file, model or None)
        return [scored(kind, short(name), tasks, of_model, scoring) for name, of_model in models.items()]

    def labelled(tasks: list[Any], source: str, whose: str = "") -> list[Any]:
        if all(task.bounce is None for task in tasks):
            raise OperatorError(
                f"{source} says of no task{whose} what is right: name a labelled file with --tasks"
            )
        return tasks

    def sample(score: Scored) -> Sample:
        pairs = score.metrics.pairs
        recognised = {name: answer.recognised for name, answer in score.answers.items() if answer.recognised}
        return Sample(score.name, [pair.instance_id for pair in pairs], Figures(pairs), recognised)

    bench: Benchmark[Any, Scored] = Benchmark(
        kind,
        read,
        lambda task: task.instance_id,
        score_run,
        sections.on_all,
        sample,
        lambda scores: sections.quoted_costs(),
        InputTask.absent if kind == INPUT else OutputTask.absent,
        score_file,
    )
    return bench


INPUT_BENCH = _benchmark(INPUT, input_tasks)
OUTPUT_BENCH = _benchmark(OUTPUT, output_tasks)
BENCHES: dict[Kind, Benchmark[Any, Scored]] = {INPUT: INPUT_BENCH, OUTPUT: OUTPUT_BENCH}
