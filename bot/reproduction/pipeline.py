"""Reproduce a report: find a test that fails for the reported reason, or the reason why there is none.

LIBRO's steps (Kang, Yoon, Yoo, section III): n drafts, injection, execution, clustering, ranking, selection.
Added: the model repairs a draft that cannot be used once, a draft that passes is inverted and run again, and a
failure must match the report.
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
from bot.reproduction.report import Facts, Report, facts, normalise_code
from bot.reproduction.select import FailingTest, Selection, Suggestion, select

#: Most tests among which the model chooses.
TOP = 5
#: Characters of a failure's output that the model sees for its choice.
MAX_FAILURE = 1_500

_JAVA_BUILDS = ("pom.xml", "build.gradle", "build.gradle.kts", "build.xml")


class Options(Frozen):
    """A maintainer's options for one reproduction."""

    samples: int = 10
    threshold: int = 1
    pick: bool = False
    match: bool = True
    """Suggest only failures that match the report; False: select by agreement alone, as LIBRO."""
    seconds: float = 1800.0
    probe: bool = Field(True, description="check first that tests can be run here at all")
    turn: bool = Field(True, description="invert drafts that pass")


def reproduce_in(
    folder: Path,
    report: Report,
    author: Author,
    harness: Harness,
    options: Options,
    *,
    fetch: Fetch | None = None,
    prompt_examples: Sequence[Example] | None = None,
) -> Reproduction:
    """Draft tests for ``report``, run them on the files in ``folder`` (which is not changed), and choose.

    Examples are ``prompt_examples`` if given, else the repository's own if ``fetch`` can read its issues, else two
    fixed ones. Raises ModelError if the model gave no draft at all, BudgetExceeded if the budget ended before a
    reproducing test was found, TransientError if a later try may succeed, SandboxError if the sandbox fails.
    """
    language = language_of(folder, harness.command)
    checkout = read_checkout(folder, language)
    report_facts = facts(report)
    prompt_context = context(report_facts, checkout, language).model_copy(
        update={"command": shlex.join(harness.command.argv), "machine": machine(harness, folder)}
    )
    if prompt_examples is None:
        own = examples.from_repository(report, checkout.tests, language, fetch) if fetch else ()
        prompt_examples = own or examples.fixed_examples(language.name)
    trial = Trial(
        checkout=checkout,
        language=language,
        harness=harness,
        host=prompt_context.host,
        test_name=None if report.number is None else f"test_issue_{report.number}",
        names=language.names(checkout.sources, checkout.tests),
        deadline=time.monotonic() + options.seconds,
    )
    return _reproduce(
        trial, report_facts, Drafting(author, report, prompt_context, prompt_examples, language.name), options
    )


def language_of(folder: Path, command: TestCommand) -> Language:
    """Return the language of the tests, by the test command, else by the build files."""
    # Imported here because each takes a third of a second.
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
        # Do not pay for drafts that cannot be run.
        reason = f"tests cannot be run here: {broken}"
        return Reproduction(state="not run", reason=reason, environment=True, sandbox=sandbox)
    drafts = drafting.drafts(options.samples)
    attempts = {attempt.number: attempt for attempt in trial.attempts(drafts)}
    attempts |= _repair(trial, drafting, drafts, attempts)
    if options.turn:
        attempts |= _invert(trial, facts, attempts)
    all_attempts = tuple(attempts[number] for number in sorted(attempts))
    selection = select(_failing(all_attempts), facts, options.threshold, matched=options.match)
    tests, reason = _choose(selection, all_attempts, drafting, trial.harness.command, options)
    base = Reproduction(
        state="reproduced" if tests else "not reproduced",
        reason=reason,
        tests=tests,
        attempts=tuple(_with_reason(attempt, selection) for attempt in all_attempts),
        drafted=len(drafts),
        failures=tuple(error.reason for error in drafting.failures),
        sandbox=sandbox,
        usage=drafting.usage,
        model=drafting.answered_by,
    )
    if tests:
        return base
    _raise_if_spent(drafting)
    return _or_abstention(_or_not_run(base))


def _raise_if_spent(drafting: Drafting) -> None:
    """Raise BudgetExceeded if the budget ended before all drafts: the missing ones might have succeeded."""
    for error in drafting.failures:
        if isinstance(error, BudgetExceeded):
            error.usage = drafting.usage
            raise error


def _repair(
    trial: Trial, drafting: Drafting, drafts: dict[int, str], attempts: dict[int, Attempt]
) -> dict[int, Attempt]:
    """Let the model repair drafts that could not be used, once, and try them again."""
    broken = repairable(tuple(attempts.values()), drafts)
    if not broken:
        return {}
    answers = drafting.repair(broken)
    given_up = {
        number: attempts[number].model_copy(update={"fault": fault, "why": f"{_FAULTS[fault]}: {repair.plan}"})
        for number, repair in answers.items()
        if (fault := _fault(repair))
    }
    again = trial.attempts({number: repair.code for number, repair in answers.items() if number not in given_up})
    return given_up | {attempt.number: attempt.model_copy(update={"repaired": True}) for attempt in again}


#: Texts for the faults that the model can name instead of a repair.
_FAULTS: Mapping[str, str] = {
    "environment": "the environment that tests run in is at fault, not the report",
    "interface": "the report does not determine the interface that a test would have to call",
}


def _fault(repair: Mended) -> Literal["", "environment", "interface"]:
    """Return the fault for which the model gives no repair; a reply with code is tried in any case."""
    if repair.code.strip() or repair.at_fault == "the test":
        return ""
    return "environment" if repair.at_fault == "the environment" else "interface"


def _or_abstention(result: Reproduction) -> Reproduction:
    """Turn the result into an abstention if no draft ran and most replies name the same fault."""
    faults = Counter(attempt.fault for attempt in result.attempts if attempt.fate == "unusable")
    fault, count = max(faults.items(), key=lambda item: item[1], default=("", 0))
    if not fault or count * 2 <= len(result.attempts):
        return result
    why = next(attempt.why for attempt in result.attempts if attempt.fault == fault)
    return result.model_copy(update={"state": "not run", "abstained": fault, "reason": why})


def _does_the_same(draft: str, facts: Facts) -> bool:
    code = normalise_code(draft)
    return not facts.calls or any(call in code for call in facts.calls)


def _invert(trial: Trial, facts: Facts, attempts: dict[int, Attempt]) -> dict[int, Attempt]:
    """Invert drafts that passed and try them again. Return those that fail.

    Any passing test fails when it is inverted. If the report shows calls, only a draft with one of these counts:
    that draft probably asserts the wrong behaviour.
    """
    opposites: dict[int, str] = {}
    for attempt in attempts.values():
        candidate = attempt.candidate
        if attempt.fate == "passed" and candidate is not None and _does_the_same(candidate.draft, facts):
            try:
                opposite = trial.language.invert(candidate.draft)
            except DraftRejected:
                continue
            if opposite is not None:
                opposites[attempt.number] = opposite
    again = trial.attempts(opposites, inverted=True) if opposites else ()
    return {
        retried.number: retried.model_copy(update={"repaired": attempts[retried.number].repaired})
        for retried in again
        if retried.fate == "failed"
    }


def _failing(attempts: Sequence[Attempt]) -> list[FailingTest]:
    return [
        FailingTest(
            number=attempt.number,
            outcome=attempt.outcome,
            syntax=attempt.candidate.syntax,
            tokens=attempt.candidate.tokens,
            inverted=attempt.inverted,
            flaky=attempt.flaky,
        )
        for attempt in attempts
        if attempt.fate == "failed" and attempt.candidate is not None and attempt.outcome is not None
    ]


def _choose(
    selection: Selection,
    attempts: Sequence[Attempt],
    drafting: Drafting,
    command: TestCommand,
    options: Options,
) -> tuple[tuple[OfferedTest, ...], str]:
    by_number = {attempt.number: attempt for attempt in attempts}
    tests = [
        _offer(suggestion, by_number[suggestion.test.number], command) for suggestion in selection.suggestions
    ]
    if not tests:
        return (), selection.reason
    if options.pick and len(tests) > 1:
        choices = [_choice(test) for test in tests[:TOP]]
        place = drafting.pick(choices, len(attempts))
        if place is None:
            return (), "the drafts that fail were put before the model once more, and it found every one wrong"
        tests.insert(0, tests.pop(place))
    return tuple(tests), ""


def _offer(suggestion: Suggestion, attempt: Attempt, command: TestCommand) -> OfferedTest:
    assert attempt.candidate is not None
    assert attempt.outcome is not None
    return OfferedTest(
        candidate=attempt.candidate,
        outcome=attempt.outcome,
        agreeing=suggestion.agreeing,
        grade=suggestion.match.grade,
        command=command.line(attempt.candidate.target),
    )


def _choice(test: OfferedTest) -> Option:
    failure = f"{test.outcome.exception_type or ''}: {test.outcome.message}\n\n{test.outcome.output}"
    return Option(code=test.candidate.code, failure=failure[:MAX_FAILURE], agreeing=test.agreeing)


def _with_reason(attempt: Attempt, selection: Selection) -> Attempt:
    why = selection.dropped.get(attempt.number)
    return attempt.model_copy(update={"why": why}) if why else attempt


def _or_not_run(result: Reproduction) -> Reproduction:
    """Give the reason if no draft could be run: the time, or the drafts."""
    fates = {attempt.fate for attempt in result.attempts}
    if fates == {"not run"}:
        return result.model_copy(update={"state": "not run", "reason": "the time for this report was used up"})
    if fates & {"passed", "failed"} or fates <= {"skipped"}:
        return result
    return result.model_copy(update={"reason": "no draft became a test that can be run"})
