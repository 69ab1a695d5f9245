"""From a report to a test that fails for the reported reason, or to the reason why there is none.

LIBRO's steps (Kang, Yoon, Yoo, section III): n drafts, injection, execution, clustering, ranking, selection.
Added: a draft that cannot be used is mended once by its author, one that passes is turned round and tried
again, and a failure has to match the report before it counts.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen
from bot.errors import BudgetExceeded
from bot.reproduce.attempt import Attempt, OfferedTest, Reproduction
from bot.reproduce.checkout import Checkout
from bot.reproduce.cluster import FailingTest
from bot.reproduce.command import Target
from bot.reproduce.context import Context
from bot.reproduce.drafting import Drafting, Mended, Option
from bot.reproduce.execution import Harness
from bot.reproduce.language import DraftRejected, Language
from bot.reproduce.report import Facts, squeezed
from bot.reproduce.select import Selection, Suggestion, select
from bot.reproduce.trial import Trial, failure_of, repairable


class Options(Frozen):
    """What a maintainer decides about one reproduction."""

    samples: int = 10
    threshold: int = 1
    pick: bool = False
    match: bool = True
    """Only a failure that fits the report is suggested; without it, LIBRO's selection by agreement alone."""
    seconds: float = 1800.0
    probe: bool = Field(True, description="look first whether tests can be run here at all")
    turn: bool = Field(True, description="turn round drafts that pass")


#: Tests that are put before the model for its last word.
TOP = 5
#: Characters of a failure's output that the model sees for its last word.
MAX_FAILURE = 1_500


@dataclass(frozen=True)
class Bench:
    """Everything about the repository that a reproduction works with."""

    checkout: Checkout
    language: Language
    harness: Harness
    context: Context


def reproduce(bench: Bench, facts: Facts, drafting: Drafting, options: Options) -> Reproduction:
    """Draft, run, choose.

    Raises ModelError where the model gave no draft at all, BudgetExceeded where the budget ended before a
    reproducing test was found, TransientError where a later try may succeed, SandboxError where the sandbox
    itself breaks.
    """
    trial = _trial(bench, drafting.report.number, options)
    broken = trial.broken() if options.probe else ""
    if broken:
        # Nothing is asked, and paid for, where no answer could be tried.
        return Reproduction(
            state="not run",
            reason=f"tests cannot be run here: {broken}",
            environment=True,
            sandbox=bench.harness.sandbox.name,
        )
    drafts = drafting.drafts(options.samples)
    attempts = {each.number: each for each in trial.attempts(drafts)}
    attempts |= _mended(trial, drafting, drafts, attempts)
    if options.turn:
        attempts |= _turned(trial, facts, bench.language, attempts)
    done = tuple(attempts[number] for number in sorted(attempts))
    selection = select(_failing(done), facts, options.threshold, matched=options.match)
    shown, reason = _chosen(selection, done, drafting, bench, options)
    base = Reproduction(
        state="reproduced" if shown else "not reproduced",
        reason=reason,
        shown=shown,
        attempts=tuple(_explained(each, selection) for each in done),
        drafted=len(drafts),
        failures=tuple(error.reason for error in drafting.failures),
        sandbox=bench.harness.sandbox.name,
        usage=drafting.usage,
        model=drafting.spoke,
    )
    if shown:
        return base
    _raise_if_spent(drafting)
    return _given_up(_or_not_run(base))


def _raise_if_spent(drafting: Drafting) -> None:
    """Drafts that were never asked for might have done it: that is for another day, not a verdict."""
    for error in drafting.failures:
        if isinstance(error, BudgetExceeded):
            error.usage = drafting.usage
            raise error


def _trial(bench: Bench, issue: int | None, options: Options) -> Trial:
    return Trial(
        checkout=bench.checkout,
        language=bench.language,
        harness=bench.harness,
        host=bench.context.host,
        test_name=None if issue is None else f"test_issue_{issue}",
        names=bench.language.names(bench.checkout.sources, bench.checkout.tests),
        deadline=time.monotonic() + options.seconds,
    )


def _mended(
    trial: Trial, drafting: Drafting, drafts: dict[int, str], attempts: dict[int, Attempt]
) -> dict[int, Attempt]:
    """Drafts that could not be used, after their author's one chance to mend them."""
    broken = repairable(tuple(attempts.values()), drafts)
    if not broken:
        return {}
    answers = drafting.mended(broken)
    given_up = {
        number: attempts[number].model_copy(update={"fault": fault, "why": f"{_FAULTS[fault]}: {said.plan}"})
        for number, said in answers.items()
        if (fault := _fault(said))
    }
    again = trial.attempts({number: said.code for number, said in answers.items() if number not in given_up})
    return given_up | {each.number: each.model_copy(update={"repaired": True}) for each in again}


#: What people are told where a draft's author gives up.
_FAULTS: Mapping[str, str] = {
    "environment": "the environment that tests run in is at fault, not the report",
    "interface": "the report does not determine the interface that a test would have to call",
}


def _fault(said: Mended) -> Literal["", "environment", "interface"]:
    """Why no test is given; one that comes with code is tried all the same."""
    if said.code.strip() or said.at_fault == "the test":
        return ""
    return "environment" if said.at_fault == "the environment" else "interface"


def _given_up(result: Reproduction) -> Reproduction:
    """An abstention, where no draft ran and most of their authors name the same reason."""
    faults = Counter(each.fault for each in result.attempts if each.fate == "unusable")
    fault, count = max(faults.items(), key=lambda each: each[1], default=("", 0))
    if not fault or count * 2 <= len(result.attempts):
        return result
    why = next(each.why for each in result.attempts if each.fault == fault)
    return result.model_copy(update={"state": "not run", "abstained": fault, "reason": why})


def _does_the_same(draft: str, facts: Facts) -> bool:
    code = squeezed(draft)
    return not facts.calls or any(call in code for call in facts.calls)


def _turned(trial: Trial, facts: Facts, language: Language, attempts: dict[int, Attempt]) -> dict[int, Attempt]:
    """Drafts that passed, turned round; those that still do not fail stay what they were.

    Any passing test fails when it is turned round. Only one that does what the report does, where the report
    shows a call at all, is taken to have asserted the wrong behaviour.
    """
    opposites: dict[int, str] = {}
    for each in attempts.values():
        if each.fate == "passed" and each.candidate is not None and _does_the_same(each.candidate.draft, facts):
            try:
                opposite = language.inverted(each.candidate.draft)
            except DraftRejected:
                continue
            if opposite is not None:
                opposites[each.number] = opposite
    again = trial.attempts(opposites, inverted=True) if opposites else ()
    return {
        each.number: each.model_copy(update={"repaired": attempts[each.number].repaired})
        for each in again
        if each.fate == "failed"
    }


def _failing(attempts: Sequence[Attempt]) -> list[FailingTest]:
    return [
        FailingTest(
            number=each.number,
            failure=failure_of(each.outcome),
            syntax=each.candidate.syntax,
            tokens=each.candidate.tokens,
            inverted=each.inverted,
            flaky=each.flaky,
        )
        for each in attempts
        if each.fate == "failed" and each.candidate is not None and each.outcome is not None
    ]


def _chosen(
    selection: Selection, attempts: Sequence[Attempt], drafting: Drafting, bench: Bench, options: Options
) -> tuple[tuple[OfferedTest, ...], str]:
    by_number = {each.number: each for each in attempts}
    shown = [_offered(each, by_number[each.test.number], bench) for each in selection.suggestions]
    if not shown:
        return (), selection.reason
    if options.pick and len(shown) > 1:
        choices = [_choice(each) for each in shown[:TOP]]
        place = drafting.pick(choices, len(attempts))
        if place is None:
            return (), "the drafts that fail were put before the model once more, and it found every one wrong"
        shown.insert(0, shown.pop(place))
    return tuple(shown), ""


def _offered(suggestion: Suggestion, attempt: Attempt, bench: Bench) -> OfferedTest:
    assert attempt.candidate is not None
    assert attempt.outcome is not None
    target = Target(path=attempt.candidate.path, name=attempt.candidate.name)
    return OfferedTest(
        candidate=attempt.candidate,
        outcome=attempt.outcome,
        agreeing=suggestion.agreeing,
        grade=suggestion.match.grade,
        command=shlex.join(bench.harness.command.fill([target])),
    )


def _choice(shown: OfferedTest) -> Option:
    failure = f"{shown.outcome.exception_type or ''}: {shown.outcome.message}\n\n{shown.outcome.output}"
    return Option(code=shown.candidate.code, failure=failure[:MAX_FAILURE], agreeing=shown.agreeing)


def _explained(attempt: Attempt, selection: Selection) -> Attempt:
    why = selection.dropped.get(attempt.number)
    return attempt.model_copy(update={"why": why}) if why else attempt


def _or_not_run(result: Reproduction) -> Reproduction:
    """Where not one draft could be run, the drafts are at fault, or the time was."""
    fates = {each.fate for each in result.attempts}
    if fates == {"not run"}:
        return result.model_copy(update={"state": "not run", "reason": "the time for this report was used up"})
    if fates <= {"passed", "failed", "skipped"} or "failed" in fates or "passed" in fates:
        return result
    return result.model_copy(update={"reason": "no draft became a test that can be run"})
