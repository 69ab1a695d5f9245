"""Drafting tests for reported bugs, or judging given ones, as one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from bot import app
from bot.errors import OperatorError, SandboxError
from bot.models.protocol import Model
from bot.ops.settings import Settings
from bot.reproduce.pipeline import Options
from bot.sandbox.protocol import Limits, Sandbox
from evaluation.benchmark import Session
from evaluation.brt.cases import Candidate, Case, read_candidates, read_cases
from evaluation.brt.drafting import PROMPTS, Drafter, read_book
from evaluation.brt.judge import Judge
from evaluation.brt.report import BRT, CANDIDATES
from evaluation.dataset import fingerprint
from evaluation.run.replay import Wanted, replay
from evaluation.run.runner import Outcome


def replay_command(
    cases: str,
    candidates: str | None,
    book: str | None,
    samples: int,
    threshold: int,
    pick: bool,
    seconds: int,
    memory: int,
    **given: Any,
) -> int:
    """Run tests on a buggy and on a fixed checkout, in a sandbox, and say which reproduce the bug."""
    limits = Limits(seconds=seconds, cpu_seconds=seconds, memory_bytes=memory << 20)
    wanted = Wanted(**given)
    sandbox = working_sandbox(wanted.environment)
    if candidates is None:
        options = Options(samples=samples, threshold=threshold, pick=pick)
        return replay(BRT, _drafting(book, options, limits, sandbox, wanted), cases, wanted)
    if wanted.model is not None:
        raise click.UsageError("--candidates are judged without a model: leave --model out")
    return replay(CANDIDATES, _judging(cases, candidates, limits, sandbox), candidates, wanted)


def _judging(cases: str, candidates: str, limits: Limits, sandbox: Sandbox) -> Session[Candidate]:
    """Given tests are judged, no model asked; one record a candidate: applied, base, fixed, flaky, brt, reason."""
    known = read_cases(cases)
    checked: Iterator[Candidate] = read_candidates(candidates, known)
    for _ in checked:
        pass
    judge = Judge(sandbox, limits)

    def run(candidate: Candidate, model: Model) -> Outcome:
        return Outcome(details=judge.judge(known[candidate.instance_id], candidate).model_dump(mode="json"))

    config = {"cases": fingerprint(cases), "sandbox": sandbox.name, "limits": limits.model_dump(mode="json")}
    return Session(run, config, answered_by="given candidates")


def _drafting(
    book: str | None, options: Options, limits: Limits, sandbox: Sandbox, wanted: Wanted
) -> Session[Case]:
    texts = app.prompts(wanted.environment)
    pairs = () if book is None else read_book(book)
    config = {
        "drafting": options.model_dump(mode="json", exclude={"seconds"}),
        "book": None if book is None else fingerprint(book),
        "sandbox": sandbox.name,
        "limits": limits.model_dump(mode="json"),
    }

    def run(case: Case, model: Model) -> Outcome:
        return Drafter(model, texts, sandbox, limits, options, pairs).replay(case)

    return Session(run, config, {name: texts.hash(name) for name in PROMPTS})


def working_sandbox(environment: Settings) -> Sandbox:
    """The sandbox of the settings, tried once. Raises OperatorError where nothing can be run in it."""
    sandbox = app.build_sandbox(environment)
    if sandbox is None:
        raise OperatorError("the sandbox is switched off (BOUNCER_SANDBOX): tests are run nowhere else")
    try:
        with TemporaryDirectory(prefix="bouncer-") as folder:
            tried = sandbox.run(("true",), workdir=Path(folder), files={}, limits=Limits())
    except SandboxError as error:
        raise OperatorError(f"no test can be run: {error}") from None
    if tried.exit_code != 0:
        raise OperatorError(f"no test can be run: the sandbox ({sandbox.name}) ran nothing: {tried.output[:300]}")
    return sandbox
