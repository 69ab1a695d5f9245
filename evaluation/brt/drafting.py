"""``bouncer-eval replay brt --model``: draft tests for each case with the app's own pipeline, then judge them.

The pipeline sees the buggy checkout and the report, nothing else; the fixed one is for the judge alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from bot.core.frozen import Frozen
from bot.errors import BudgetExceeded
from bot.models.protocol import Model
from bot.prompts import Prompts
from bot.reproduce.attempt import Attempt, Reproduction
from bot.reproduce.command import TestCommand
from bot.reproduce.examples import STATIC, Example, nearest
from bot.reproduce.execution import Harness
from bot.reproduce.pipeline import Options
from bot.reproduce.report import Report, parse_report
from bot.reproduce.run import Author, reproduce_in
from bot.sandbox.protocol import Limits, Sandbox
from evaluation.brt.cases import Candidate, Case
from evaluation.brt.judge import Judge
from evaluation.dataset import read_rows, shaped, task_id
from evaluation.run.runner import Outcome, Postponed

PROMPTS = ("reproduce.draft", "reproduce.repair", "reproduce.pick")


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


def examples_for(case: str, report: Report, book: Sequence[Pair]) -> tuple[Example, ...]:
    """The two nearest of other bugs by BM25 (layered framework, section 3.4); fixed ones without a book.

    The bug's own pair is left out: it would be the answer.
    """
    others = [(pair.problem_statement, pair.test) for pair in book if pair.instance_id != case]
    return nearest(report, others) if others else STATIC


@dataclass(frozen=True)
class Drafter:
    """Drafts and judges one case after the other."""

    model: Model
    prompts: Prompts
    sandbox: Sandbox
    limits: Limits
    options: Options
    book: tuple[Pair, ...] = ()

    def replay(self, case: Case) -> Outcome:
        """One case's record. Raises BudgetExceeded where the budget did not last for all drafts."""
        report = parse_report(case.problem_statement)
        result = reproduce_in(
            case.base,
            report,
            Author(self.model, self.prompts, case.instance_id),
            Harness(
                self.sandbox, TestCommand(argv=case.command), env=case.env, limits=self.limits, by_operator=True
            ),
            self.options,
            shown=examples_for(case.instance_id, report, self.book),
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
        return self.judged(case, result)

    def judged(self, case: Case, result: Reproduction) -> Outcome:
        """The judge's word on every draft that fails on the buggy version; the others cannot reproduce it."""
        judge = Judge(self.sandbox, self.limits)
        seen: dict[tuple[str, str], dict[str, Any]] = {}
        drafts = [_draft(attempt, self._judgement(judge, case, attempt, seen)) for attempt in result.attempts]
        return Outcome(
            usage=result.usage,
            details={
                "instance_id": case.instance_id,
                "state": result.state,
                "reason": result.reason,
                "drafted": result.drafted,
                "unanswered": list(result.failures),
                "shown": [str(each.candidate.number) for each in result.shown],
                "drafts": drafts,
            },
        )

    @staticmethod
    def _judgement(
        judge: Judge, case: Case, attempt: Attempt, seen: dict[tuple[str, str], dict[str, Any]]
    ) -> Mapping[str, Any]:
        candidate = attempt.candidate
        if attempt.fate != "failed" or candidate is None:
            return {"applied": candidate is not None, "base": _plain(attempt), "fixed": None, "brt": False}
        key = candidate.path, candidate.content
        if key not in seen:
            given = Candidate(
                instance_id=case.instance_id,
                candidate_id=str(attempt.number),
                path=candidate.path,
                content=candidate.content,
            )
            found = judge.judge(case, given)
            seen[key] = found.model_dump(mode="json", exclude={"instance_id", "candidate_id"})
        return seen[key]


def _draft(attempt: Attempt, judgement: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "candidate_id": str(attempt.number),
        "fate": attempt.fate,
        "why": attempt.why,
        "repaired": attempt.repaired,
        "inverted": attempt.inverted,
        "code": attempt.candidate.code if attempt.candidate else None,
        **judgement,
    }


def _plain(attempt: Attempt) -> dict[str, Any] | None:
    return attempt.outcome.model_dump(mode="json") if attempt.outcome else None
