"""Drafting tests for reported bugs, or judging given ones, as one run."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from bot import __version__, app
from bot.errors import OperatorError
from bot.ops import settings
from bot.reproduce.pipeline import Options
from bot.sandbox.protocol import Limits, Sandbox
from evaluation.brt.cases import read_cases
from evaluation.brt.drafting import PROMPTS, Drafter, read_book
from evaluation.brt.judge import Judge
from evaluation.brt.replay import BENCHMARK, candidate_tasks, judged, run_facts
from evaluation.cli.options import say
from evaluation.dataset import choose, fingerprint
from evaluation.run.folder import RunFacts, RunFolder, Tasks
from evaluation.run.progress import report_result, run_shown
from evaluation.run.replay import NOT_KEPT, Wanted, build_model, kept_and_capped
from evaluation.run.runner import Task


def replay_command(
    cases: str,
    candidates: str | None,
    model: str | None,
    prompts: str | None,
    book: str | None,
    samples: int,
    threshold: int,
    pick: bool,
    out: str,
    limit: int | None,
    seed: int | None,
    max_cost: float | None,
    cache: str | None,
    seconds: int,
    memory: int,
    workers: int,
    retry_failed: bool,
    as_json: bool,
) -> int:
    """Run tests on a buggy and on a fixed checkout, in a sandbox, and say which reproduce the bug."""
    limits = Limits(seconds=seconds, cpu_seconds=seconds, memory_bytes=memory << 20)
    wanted = Wanted(out, model, prompts, limit, seed, workers, max_cost, cache, retry_failed, as_json)
    if candidates is None:
        return _draft(cases, book, Options(samples=samples, threshold=threshold, pick=pick), limits, wanted)
    if model is not None:
        raise click.UsageError("--candidates are judged without a model: leave --model out")
    return _judge(cases, candidates, limits, wanted)


def _judge(cases: str, candidates: str, limits: Limits, wanted: Wanted) -> int:
    sandbox = _sandbox()
    tasks = candidate_tasks(cases, candidates)
    facts = run_facts(cases, candidates, sandbox, limits)
    folder = RunFolder.resume(Path(wanted.out), facts, [task.id for task in tasks])
    if wanted.retry_failed:
        folder.forget_failed()
    result = run_shown(tasks, len(tasks), partial(judged, Judge(sandbox, limits)), folder, wanted.workers)
    return report_result(folder, result, wanted.as_json)


def _draft(cases: str, book: str | None, options: Options, limits: Limits, wanted: Wanted) -> int:
    environment = settings.load(bouncer_model=wanted.model, bouncer_prompts_dir=wanted.prompts)
    texts = app.prompts(environment)
    known = read_cases(cases)
    chosen = choose(known, wanted.limit, wanted.seed)
    tasks = [Task(name, case) for name, case in known.items() if chosen is None or name in chosen]
    pairs = () if book is None else read_book(book)
    model = build_model(environment, wanted.cache or str(Path(wanted.out) / "cache"), wanted.cache is not None)
    sandbox = _sandbox()
    facts = RunFacts(
        benchmark=BENCHMARK,
        model=model.id,
        prompts={name: texts.hash(name) for name in PROMPTS},
        version=__version__,
        config={
            "drafting": options.model_dump(mode="json", exclude={"seconds"}),
            "book": None if book is None else fingerprint(book),
            "sandbox": sandbox.name,
            "limits": limits.model_dump(mode="json"),
        },
        seed=wanted.seed,
        tasks=Tasks(source=cases, sha256=fingerprint(cases), limit=wanted.limit),
        started_at=datetime.now(UTC),
    )
    folder = RunFolder.resume(Path(wanted.out), facts, [task.id for task in tasks])
    try:
        if wanted.retry_failed:
            say(f"{folder.forget_failed()} failed cases are tried again")
        kept = kept_and_capped(model, environment, wanted, folder)
    except OperatorError:
        folder.close(None)
        raise
    drafter = Drafter(kept, texts, sandbox, limits, options, pairs)
    timeless = model.id.startswith(NOT_KEPT)
    result = run_shown(tasks, len(tasks), drafter.replay, folder, wanted.workers, timeless=timeless)
    return report_result(folder, result, wanted.as_json)


def _sandbox() -> Sandbox:
    sandbox = app.build_sandbox(settings.load())
    if sandbox is None:
        raise OperatorError("the sandbox is switched off (BOUNCER_SANDBOX): tests are run nowhere else")
    return sandbox
