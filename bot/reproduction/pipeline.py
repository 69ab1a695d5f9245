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
from pathlib import Path
from typing import Literal

from pydantic import Field

from bot.core.errors import BudgetExceeded
from bot.core.frozen import Frozen
from bot.reproduction import examples
from bot.reproduction.attempt import Attempt, OfferedTest, Reproduction, Trial, repairable
from bot.reproduction.command import TestCommand
from bot.reproduction.context import context, machine, read_checkout
from bot.reproduction.drafting import Author, Drafting, Mended, Option
from bot.reproduction.examples import Example, Fetch
from bot.reproduction.execution import Harness
from bot.reproduction.language import DraftRejected, Language
from bot.reproduction.report import Facts, Report, facts, squeezed
from bot.reproduction.select import FailingTest, Selection, Suggestion, select

#: Tests that are put before the model for its last word.
TOP = 5
#: Characters of a failure's output that the model sees for its last word.
MAX_FAILURE = 1_500

_JAVA_BUILDS = ("pom.xml", "build.gradle", "build.gradle.kts", "build.xml")


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


def reproduce_in(
    folder: Path,
    report: Report,
    author: Author,
    harness: Harness,
    options: Options,
    *,
    fetch: Fetch | None = None,
    shown: Sequence[Example] | None = None,
) -> Reproduction:
    """Draft tests for ``report``, run them on the files in ``folder`` (which is not changed), and choose.

    Examples are ``shown`` where given, else the repository's own where ``fetch`` can read its issues, else two
    fixed ones. Raises ModelError where the model gave no draft at all, BudgetExceeded where the budget ended
    before a reproducing test was found, TransientError where a later try may succeed, SandboxError where the
    sandbox itself breaks.
    """
    language = language_of(folder, harness.command)
    checkout = read_checkout(folder, language)
    known = facts(report)
    around = context(known, checkout, language).model_copy(
        update={"command": shlex.join(harness.command.argv), "machine": machine(harness, folder)}
    )
    if shown is None:
        own = examples.from_repository(report, checkout.tests, language, fetch) if fetch else ()
        shown = own or examples.fixed(language.name)
    trial = Trial(
        checkout=checkout,
        language=language,
        harness=harness,
        host=around.host,
        test_name=None if report.number is None else f"test_issue_{report.number}",
        names=language.names(checkout.sources, checkout.tests),
        deadline=time.monotonic() + options.seconds,
    )
    return _reproduce(trial, known, Drafting(author, report, around, shown, language.name), options)


def language_of(folder: Path, command: TestCommand) -> Language:
    """The language that tests are written in: what the test command runs, else what the build files say."""
    # Each takes a third of a second to import, which only this needs.
    if command.runs_java or (
        command.naming == "files" and any((folder / name).is_file() for name in _JAVA_BUILDS)
    ):
        from bot.reproduction.java.language import Java

        return Java()
    from bot.reproduction.python.language import Python

    return Python()


def _reproduce(trial: Trial, facts: Facts, drafting: Drafting, options: Options) -> Reproduction:
    sandbox = trial.harness.sandbox.name
    broken = trial.broken() if options.probe else ""
    if broken:
        # Nothing is asked, and paid for, where no answer could be tried.
        reason = f"tests cannot be run here: {broken}"
        return Reproduction(state="not run", reason=reason, environment=True, sandbox=sandbox)
    drafts = drafting.drafts(options.samples)
    attempts = {each.number: each for each in trial.attempts(drafts)}
    attempts |= _mended(trial, drafting, drafts, attempts)
    if options.turn:
        attempts |= _turned(trial, facts, attempts)
    done = tuple(attempts[number] for number in sorted(attempts))
    selection = select(_failing(done), facts, options.threshold, matched=options.match)
    shown, reason = _chosen(selection, done, drafting, trial.harness.command, options)
    base = Reproduction(
        state="reproduced" if shown else "not reproduced",
        reason=reason,
        shown=shown,
        attempts=tuple(_explained(each, selection) for each in done),
        drafted=len(drafts),
        failures=tuple(error.reason for error in drafting.failures),
        sandbox=sandbox,
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


def _turned(trial: Trial, facts: Facts, attempts: dict[int, Attempt]) -> dict[int, Attempt]:
    """Drafts that passed, turned round; those that still do not fail stay what they were.

    Any passing test fails when it is turned round. Only one that does what the report does, where the report
    shows a call at all, is taken to have asserted the wrong behaviour.
    """
    opposites: dict[int, str] = {}
    for each in attempts.values():
        if each.fate == "passed" and each.candidate is not None and _does_the_same(each.candidate.draft, facts):
            try:
                opposite = trial.language.inverted(each.candidate.draft)
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
            outcome=each.outcome,
            syntax=each.candidate.syntax,
            tokens=each.candidate.tokens,
            inverted=each.inverted,
            flaky=each.flaky,
        )
        for each in attempts
        if each.fate == "failed" and each.candidate is not None and each.outcome is not None
    ]


def _chosen(
    selection: Selection,
    attempts: Sequence[Attempt],
    drafting: Drafting,
    command: TestCommand,
    options: Options,
) -> tuple[tuple[OfferedTest, ...], str]:
    by_number = {each.number: each for each in attempts}
    shown = [_offered(each, by_number[each.test.number], command) for each in selection.suggestions]
    if not shown:
        return (), selection.reason
    if options.pick and len(shown) > 1:
        choices = [_choice(each) for each in shown[:TOP]]
        place = drafting.pick(choices, len(attempts))
        if place is None:
            return (), "the drafts that fail were put before the model once more, and it found every one wrong"
        shown.insert(0, shown.pop(place))
    return tuple(shown), ""


def _offered(suggestion: Suggestion, attempt: Attempt, command: TestCommand) -> OfferedTest:
    assert attempt.candidate is not None
    assert attempt.outcome is not None
    return OfferedTest(
        candidate=attempt.candidate,
        outcome=attempt.outcome,
        agreeing=suggestion.agreeing,
        grade=suggestion.match.grade,
        command=command.line(attempt.candidate.target),
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
    if fates & {"passed", "failed"} or fates <= {"skipped"}:
        return result
    return result.model_copy(update={"reason": "no draft became a test that can be run"})
