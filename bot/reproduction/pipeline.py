"""Reproduce a report: find a test that fails for the reported reason, or the reason why there is none.

LIBRO's steps (Kang, Yoon, Yoo, section III): n drafts, injection, execution, clustering, ranking, selection.
Added: drafts see the report in different framings, the model repairs a draft that cannot be used or fails for
another reason, a draft that passes is inverted and run again, a failure must match the report, and tests that pass
with a drafted repair of the bug rank first.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bot.core.errors import BudgetExceeded
from bot.reproduction import examples
from bot.reproduction.attempt import Trial
from bot.reproduction.context import Checkout, context, machine, read_checkout
from bot.reproduction.drafting import Drafting, Fault, Option, Patch
from bot.reproduction.examples import Example
from bot.reproduction.language import DraftRejected, Language
from bot.reproduction.notation import command_line
from bot.reproduction.protocol import (
    Attempt,
    Author,
    Fetch,
    Harness,
    OfferedTest,
    Options,
    Report,
    Reproduction,
    TestCommand,
)
from bot.reproduction.report import Facts, facts, normalise_code
from bot.reproduction.select import FailingTest, Selection, match, select

#: Most tests among which the model chooses.
TOP = 5
#: Characters of a failure's output that the model sees for its choice.
MAX_FAILURE = 1_500

_JAVA_BUILDS = ("pom.xml", "build.gradle", "build.gradle.kts", "build.xml")


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
    fixed ones. Raises what ``Harness.reproduce`` raises.
    """
    language = language_of_tests(folder, harness.command)
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
    drafting = Drafting(author, report, prompt_context, prompt_examples, language.name, options.framed)
    return _reproduce(trial, report_facts, drafting, options)


def language_of_tests(folder: Path, command: TestCommand) -> Language:
    """Return the language of the tests, by the test command, else by the build files."""
    # Imported here because each takes a third of a second.
    has_java_build = any((folder / name).is_file() for name in _JAVA_BUILDS)
    if command.runs_java or (command.naming == "files" and has_java_build):
        from bot.reproduction.java.language import Java

        return Java()
    from bot.reproduction.python.language import Python

    return Python()


def _reproduce(trial: Trial, facts: Facts, drafting: Drafting, options: Options) -> Reproduction:
    sandbox = trial.harness.sandbox_name
    broken = trial.broken() if options.probe else ""
    if broken:
        # Do not pay for drafts that cannot be run.
        reason = f"tests cannot be run here: {broken}"
        return Reproduction(state="not run", reason=reason, environment=True, sandbox=sandbox)
    drafts = drafting.drafts(options.samples)
    attempts = {attempt.number: attempt for attempt in trial.run(drafts)}
    if options.repair:
        attempts |= _repair(trial, facts, drafting, drafts, attempts, options)
    if options.turn:
        attempts |= _invert(trial, facts, attempts)
    in_order = [attempts[number] for number in sorted(attempts)]
    # The model chooses only among failures on which as many drafts agree as the threshold asks for.
    smallest = options.threshold if options.pick else 1
    failing = [attempt for attempt in in_order if isinstance(attempt, FailingTest)]
    selection = select(failing, facts, options.threshold, matched=options.match, smallest=smallest)
    tests, reason = _choose(selection, len(in_order), drafting, trial, options)
    budget_error = next((error for error in drafting.failures if isinstance(error, BudgetExceeded)), None)
    if budget_error is not None and not tests:
        # The drafts that are missing might have succeeded.
        budget_error.usage = drafting.usage
        raise budget_error
    result = Reproduction(
        state="reproduced" if tests else "not reproduced",
        reason=reason,
        tests=tests,
        attempts=tuple(
            attempt.model_copy(update={"why": attempt.why or selection.dropped.get(attempt.number, "")})
            for attempt in in_order
        ),
        drafts=len(drafts),
        failures=tuple(error.reason for error in drafting.failures),
        sandbox=sandbox,
        usage=drafting.usage,
        model=drafting.answered_by,
    )
    return result if tests else _explained(result)


def _repair(
    trial: Trial,
    facts: Facts,
    drafting: Drafting,
    drafts: Mapping[int, str],
    attempts: Mapping[int, Attempt],
    options: Options,
) -> dict[int, Attempt]:
    """Let the model repair drafts that could not be used and run them again, ``options.repairs`` times at most."""
    results, codes = dict(attempts), dict(drafts)
    settled: set[int] = set()
    for _ in range(options.repairs):
        problems = {
            number: _problem(attempt, facts, options)
            for number, attempt in results.items()
            if number not in settled
        }
        broken = {number: (codes[number], problem) for number, problem in problems.items() if problem}
        answers = drafting.repair(broken) if broken else {}
        settled |= broken.keys() - answers.keys()
        repaired: dict[int, str] = {}
        for number, answer in answers.items():
            # A reply with code is run, whatever else it says.
            if answer.at_fault in _FAULTS and not answer.code.strip():
                why = f"{_FAULTS[answer.at_fault]}: {answer.plan}"
                fault = {"fault": answer.at_fault.removeprefix("the "), "why": why}
                results[number] = results[number].model_copy(update=fault)
                settled.add(number)
            elif answer.code.strip() in ("", codes[number].strip()):
                results[number] = results[number].model_copy(update={"repaired": True})
                settled.add(number)
            else:
                repaired[number] = codes[number] = answer.code
        runs = trial.run(repaired)
        results |= {attempt.number: attempt.model_copy(update={"repaired": True}) for attempt in runs}
    return results


def _problem(attempt: Attempt, facts: Facts, options: Options) -> str:
    """Return what a draft has to be repaired for, with the output of its run; empty if it can be used."""
    outcome = attempt.outcome
    output = outcome.output if outcome else ""
    if attempt.fate == "unusable":
        return f"{attempt.why}\n\n{output}".strip()
    if not options.match or attempt.fate != "failed" or outcome is None or attempt.flaky:
        return ""
    if match(outcome, facts).grade != "other":
        return ""
    return f"it fails with {outcome.kind or 'an error'}, not for the reason that is reported\n\n{output}".strip()


#: Texts for the faults that the model can name instead of a repair.
_FAULTS: Mapping[Fault, str] = {
    "the environment": "the environment that tests run in is at fault, not the report",
    "the interface": "the report does not determine the interface that a test would have to call",
}


def _explained(result: Reproduction) -> Reproduction:
    """Add the reason why no draft could be used: a fault that most replies name, the time, or the drafts."""
    faults = Counter(attempt.fault for attempt in result.attempts if attempt.fault)
    fault, count = max(faults.items(), key=lambda item: item[1], default=("", 0))
    if count * 2 > len(result.attempts):
        why = next(attempt.why for attempt in result.attempts if attempt.fault == fault)
        return result.model_copy(update={"state": "not run", "abstained": fault, "reason": why})
    fates = {attempt.fate for attempt in result.attempts}
    if fates == {"not run"}:
        return result.model_copy(update={"state": "not run", "reason": "the time for this report was used up"})
    if fates & {"passed", "failed"} or fates <= {"skipped"}:
        return result
    return result.model_copy(update={"reason": "no draft became a test that can be run"})


def _invert(trial: Trial, facts: Facts, attempts: dict[int, Attempt]) -> dict[int, Attempt]:
    """Invert drafts that passed and try them again. Return those that fail.

    Any passing test fails when it is inverted. If the report shows calls, only a draft with one of these counts:
    that draft probably asserts the wrong behaviour.
    """
    opposites: dict[int, str] = {}
    for attempt in attempts.values():
        candidate = attempt.candidate
        if attempt.fate != "passed" or candidate is None:
            continue
        code = normalise_code(candidate.draft)
        if not facts.calls or any(call in code for call in facts.calls):
            with suppress(DraftRejected):
                if opposite := trial.language.invert(candidate.draft):
                    opposites[attempt.number] = opposite
    return {
        attempt.number: attempt.model_copy(update={"repaired": attempts[attempt.number].repaired})
        for attempt in trial.run(opposites, inverted=True)
        if attempt.fate == "failed"
    }


def _choose(
    selection: Selection, drafts: int, drafting: Drafting, trial: Trial, options: Options
) -> tuple[tuple[OfferedTest, ...], str]:
    """Return the tests to offer, best first, and the reason if there are none."""
    tests = [
        test.model_copy(update={"command": command_line(trial.harness.command, test.candidate.target)})
        for test in selection.tests
    ]
    if options.patches and len(tests) > 1:
        tests[:TOP] = _confirmed(tests[:TOP], drafting.patches(options.patches), trial)
    if options.pick and len(tests) > 1:
        choices = []
        for test in tests[:TOP]:
            failure = f"{test.outcome.exception_type or ''}: {test.outcome.message}\n\n{test.outcome.output}"
            choices.append(Option(code=test.candidate.code, failure=failure[:MAX_FAILURE], agreeing=test.agreeing))
        index = drafting.pick(choices, drafts)
        if index is None:
            return (), "the drafts that fail were put before the model once more, and it found every one wrong"
        tests.insert(0, tests.pop(index))
    return tuple(tests), selection.reason


def _confirmed(tests: Sequence[OfferedTest], patches: Sequence[Patch], trial: Trial) -> list[OfferedTest]:
    """Return the tests, first those that pass with a drafted repair of the bug, else in their order."""
    patched = [_applied(patch, trial.checkout) for patch in patches]
    results = [
        test.model_copy(update={"repairs": sum(trial.passes(test.candidate, files) for files in patched if files)})
        for test in tests
    ]
    return sorted(results, key=lambda test: not test.repairs)


def _applied(patch: Patch, checkout: Checkout) -> dict[str, str]:
    """Return the new text of each changed file; nothing if an edit does not fit, or is of a test."""
    texts: dict[str, str] = {}
    for edit in patch.edits:
        text = texts.get(edit.path, checkout.sources.get(edit.path, ""))
        ends = "\r\n" if "\r\n" in text else "\n"
        old, new = (part.strip("\n").replace("\r\n", "\n").replace("\n", ends) for part in (edit.old, edit.new))
        if not old.strip() or edit.path in checkout.tests or text.count(old) != 1:
            return {}
        texts[edit.path] = text.replace(old, new)
    return texts
