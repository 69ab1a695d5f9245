"""``bouncer-eval replay brt``: tests drafted for each case with the app's own pipeline, or given ones, are judged.

The pipeline sees the buggy checkout and the report, nothing else; the fixed one is for the judge alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import click
from pydantic import Field

from bot import app
from bot.core.errors import BudgetExceeded, OperatorError, SandboxError
from bot.core.frozen import Frozen
from bot.models.prompts import Prompts
from bot.models.protocol import Model
from bot.reproduction.examples import Example, fixed_examples, nearest
from bot.reproduction.pipeline import language_of_tests, reproduce_in
from bot.reproduction.protocol import Attempt, Author, Options, Report, Reproduction, TestCommand
from bot.reproduction.report import Facts, facts, parse_report
from bot.reproduction.select import ASSERTIONS, body_matches, match, signature
from bot.sandbox.protocol import Limits, ProgramRun, Sandbox
from bot.settings import Settings
from evaluation.benchmark import Session
from evaluation.brt.cases import Candidate, Case, Checkouts, read_candidates, read_cases
from evaluation.brt.judge import Judge, KeepingHarness
from evaluation.brt.libro import THRESHOLD
from evaluation.brt.metrics import Features
from evaluation.brt.report import BRT, CANDIDATES
from evaluation.dataset import fingerprint, read_rows, shaped, task_id
from evaluation.run.recognition import Recognition, prompt_hash
from evaluation.run.replay import ReplayRequest, replay
from evaluation.run.runner import Outcome, Postponed

#: LIBRO: 50 drafts, more than one of which fail alike; none is repaired, inverted or dropped for its failure.
PRESETS: Mapping[str, Options] = {
    "ours": Options(),
    "libro": Options(
        samples=50, threshold=THRESHOLD + 1, match=False, turn=False, repair=False, framed=False, patches=0
    ),
}

PROMPTS = ("reproduce.draft", "reproduce.repair", "reproduce.patch", "reproduce.pick")


class Pair(Frozen):
    """A report and the test that reproduced it, from a file: what open-book drafting may look up."""

    instance_id: str
    problem_statement: str
    test: str = Field(description="code of the test, or a diff that adds it")


def read_book(source: str) -> tuple[Pair, ...]:
    """Pairs from JSON Lines with instance_id, problem_statement and test. Raises OperatorError."""
    pairs = []
    for row in read_rows(source):
        task_id(row)
        pairs.append(shaped(row, Pair))
    return tuple(pairs)


def examples_for(case: str, report: Report, book: Sequence[Pair], language: str = "python") -> tuple[Example, ...]:
    """The two nearest of other bugs by BM25 (layered framework, section 3.4); fixed ones without a book.

    The bug's own pair is left out: it would be the answer.
    """
    others = [Example(report=pair.problem_statement, test=pair.test) for pair in book if pair.instance_id != case]
    return nearest(report, others) if others else fixed_examples(language)


@dataclass(frozen=True)
class Drafter:
    """Drafts and judges one case after the other."""

    model: Model
    prompts: Prompts
    sandbox: Sandbox
    limits: Limits
    options: Options
    book: tuple[Pair, ...]
    recognition: bool
    """True if the model is asked if it knows the bug from elsewhere."""

    def replay(self, case: Case) -> Outcome:
        """One case's record. Raises BudgetExceeded if the budget did not last for all drafts."""
        report = parse_report(case.problem_statement)
        recognition = Recognition(self.model) if self.recognition else None
        command = TestCommand(argv=case.command)
        harness = KeepingHarness(self.sandbox, command, env=case.env, limits=self.limits, by_operator=True)
        result = reproduce_in(
            case.base,
            report,
            Author(recognition or self.model, self.prompts, case.instance_id),
            harness,
            self.options,
            prompt_examples=examples_for(
                case.instance_id, report, self.book, language_of_tests(case.base, command).name
            ),
        )
        if result.environment:
            details = {"instance_id": case.instance_id, "state": "environment", "drafts": [], "shown": []}
            return Outcome(error=f"environment: {result.reason}", details=details)
        if "budget" in result.failures:
            # Something was found all the same, but with all drafts it might have been something else.
            raise BudgetExceeded("the budget ended in the middle of a case")
        if "unrecorded" in result.failures and not self.model.id.startswith("recorded:"):
            # Answers are still to come: fewer drafts would be another experiment.
            raise Postponed("some of the case's drafts have not been answered yet")
        outcome = self.judge_result(case, result, Judge(self.sandbox, self.limits, harness.reports))
        recognised = recognition.details() if recognition else {}
        return dataclasses.replace(outcome, details={**outcome.details, **recognised})

    def judge_result(self, case: Case, result: Reproduction, judge: Judge) -> Outcome:
        """The record: a judgement of every draft that fails on the buggy version; others reproduce nothing."""
        judgements: dict[tuple[str, str], dict[str, Any]] = {}
        report_facts = facts(parse_report(case.problem_statement))
        drafts = [
            {
                "candidate_id": str(attempt.number),
                "fate": attempt.fate,
                "why": attempt.why,
                "repaired": attempt.repaired,
                "inverted": attempt.inverted,
                "code": attempt.candidate.code if attempt.candidate else None,
                **self._judgement(judge, case, attempt, judgements),
                "features": _features(attempt, report_facts),
            }
            for attempt in result.attempts
        ]
        return Outcome(
            usage=result.usage,
            details={
                "instance_id": case.instance_id,
                "state": result.state,
                "reason": result.reason,
                "drafted": result.drafts,
                "unanswered": list(result.failures),
                "shown": [str(suggestion.candidate.number) for suggestion in result.tests],
                "drafts": drafts,
            },
        )

    @staticmethod
    def _judgement(
        judge: Judge, case: Case, attempt: Attempt, judgements: dict[tuple[str, str], dict[str, Any]]
    ) -> Mapping[str, Any]:
        candidate = attempt.candidate
        if attempt.fate != "failed" or candidate is None:
            base = attempt.outcome.model_dump(mode="json") if attempt.outcome else None
            return {"applied": candidate is not None, "base": base, "fixed": None, "brt": False}
        key = candidate.path, candidate.content
        if key not in judgements:
            test = Candidate(
                instance_id=case.instance_id,
                candidate_id=str(attempt.number),
                path=candidate.path,
                content=candidate.content,
            )
            judgement = judge.judge(case, test)
            judgements[key] = judgement.model_dump(mode="json", exclude={"instance_id", "candidate_id"})
        return judgements[key]


def _features(attempt: Attempt, report_facts: Facts) -> dict[str, Any] | None:
    """Return LIBRO's features of a test that fails on the buggy version; None for any other test."""
    if attempt.fate != "failed" or attempt.candidate is None or attempt.outcome is None:
        return None
    fit = match(attempt.outcome, report_facts)
    return Features(
        signature=_digest(signature(attempt.outcome)),
        syntax=_digest(attempt.candidate.syntax),
        test_length=attempt.candidate.tokens,
        is_crash=report_facts.crash,
        actual_crash=attempt.outcome.kind not in ASSERTIONS,
        actual_value_match=bool(fit.values),
        exception_type_match=fit.exception,
        test_exception_type_match=body_matches(attempt.candidate.code, report_facts),
    ).model_dump()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def replay_command(
    cases: str,
    candidates: str | None,
    book: str | None,
    preset: Literal["ours", "libro"],
    samples: int | None,
    threshold: int | None,
    pick: bool,
    match: bool | None,
    seconds: int,
    memory: int,
    checkouts: str | None,
    test_command: str | None,
    **shared_options: Any,
) -> int:
    """Run tests on a buggy and on a fixed checkout, in a sandbox, and say which reproduce the bug."""
    limits = Limits(seconds=seconds, cpu_seconds=seconds, memory_bytes=memory << 20)
    request = ReplayRequest(**shared_options)
    options = PRESETS[preset]
    changes = {"samples": samples, "threshold": threshold, "match": match, "pick": pick}
    options = options.model_copy(update={name: value for name, value in changes.items() if value is not None})
    if preset == "libro":
        request = dataclasses.replace(request, recognised=False)
    if candidates is not None and request.model is not None:
        raise click.UsageError("--candidates are judged without a model: leave --model out")
    if (checkouts is None) != (test_command is None):
        raise click.UsageError("--checkouts and --test-command go together")
    places = None
    if checkouts is not None and test_command is not None:
        places = Checkouts(Path(checkouts), tuple(shlex.split(test_command)))
    sandbox = working_sandbox(request.environment)
    if candidates is not None:
        judging = _judging(read_cases(cases, places), cases, candidates, limits, sandbox)
        return replay(CANDIDATES, judging, candidates, request)
    bench = dataclasses.replace(BRT, read=lambda source: iter(read_cases(source, places).values()))
    return replay(bench, _drafting(book, options, limits, sandbox, request), cases, request)


def _judging(
    by_id: dict[str, Case], cases: str, candidates: str, limits: Limits, sandbox: Sandbox
) -> Session[Candidate]:
    """Given tests are judged, no model asked; one record a candidate: applied, base, fixed, flaky, brt, reason."""
    checked: Iterator[Candidate] = read_candidates(candidates, by_id)
    for _ in checked:
        pass
    judge = Judge(sandbox, limits)

    def run(candidate: Candidate, model: Model) -> Outcome:
        return Outcome(details=judge.judge(by_id[candidate.instance_id], candidate).model_dump(mode="json"))

    config = {"cases": fingerprint(cases), "sandbox": sandbox.name, "limits": limits.model_dump(mode="json")}
    return Session(run, config, answered_by="given candidates")


def _drafting(
    book: str | None, options: Options, limits: Limits, sandbox: Sandbox, request: ReplayRequest
) -> Session[Case]:
    texts = app.prompts(request.environment)
    pairs = () if book is None else read_book(book)
    config = {
        "drafting": options.model_dump(mode="json", exclude={"seconds"}),
        "book": None if book is None else fingerprint(book),
        "sandbox": sandbox.name,
        "limits": limits.model_dump(mode="json"),
    }

    def run(case: Case, model: Model) -> Outcome:
        return Drafter(model, texts, sandbox, limits, options, pairs, request.recognised).replay(case)

    hashes = {name: texts.hash(name) for name in PROMPTS if options.patches or name != "reproduce.patch"}
    return Session(run, config, hashes | ({"recognised": prompt_hash()} if request.recognised else {}))


def working_sandbox(environment: Settings) -> Sandbox:
    """The sandbox of the settings, tried once. Raises OperatorError if nothing can be run in it."""
    sandbox = app.build_sandbox(environment)
    if sandbox is None:
        raise OperatorError("the sandbox is switched off (BOUNCER_SANDBOX): tests are run nowhere else")
    try:
        with TemporaryDirectory(prefix="bouncer-") as folder:
            trial = sandbox.run(ProgramRun(("true",), workdir=Path(folder), limits=Limits()))
    except SandboxError as error:
        raise OperatorError(f"no test can be run: {error}") from None
    if trial.exit_code != 0:
        raise OperatorError(f"no test can be run: the sandbox ({sandbox.name}) ran nothing: {trial.output[:300]}")
    return sandbox
