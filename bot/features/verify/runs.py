"""Run tests on both sides of a pull request: its issues' stored reproducing tests, and the tests that it adds.

New tests are run without the rest of the change and with it. The files without the change are those of the head
with everything reverted that is not a test: the merge base with the pull request's tests on top.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from bot.code.change import file_classes
from bot.code.change.diff import Diff, FileDiff
from bot.code.parsing import syntax
from bot.core.errors import ForgeError, SandboxError
from bot.core.subjects import PullRequest
from bot.features.reproduce.record import StoredTest, stored_test
from bot.features.services import Services
from bot.features.shared.merge_base import BothSides, NotRunnable, both_sides, checkouts, inside, is_submodule
from bot.features.verify.record import ExecutedTest, NewTest, NewTests, TestState
from bot.github.protocol import as_source
from bot.reproduction.notation import command_line
from bot.reproduction.protocol import Harness, SetupFailed, Target, TestCommand, TestOutcome, TestReport, combine

#: Characters of an output that are recorded.
MAX_OUTPUT = 4_000
#: New tests that are run, and seconds after which no run begins.
MAX_TESTS, SECONDS = 50, 600.0
#: What makes a method a test in Java, and the package before the name of its class.
_ANNOTATION = re.compile(r"@(?:Test|ParameterizedTest|RepeatedTest)\b")
_PACKAGE = re.compile(r"^package\s+([\w.]+)\s*;", re.MULTILINE)
#: Names of test files, in any language that has a runner.
_TEST_FILE = re.compile(r"(?:test_[^/]*|tests?|[^/]*(?:[._-](?:tests?|specs?)|Tests?|IT))\.[A-Za-z]{1,4}")

FORK = "this is a fork's code; a maintainer who has read it can comment `/bouncer verify --run {sha}`"
ONLY_TESTS = "the pull request changes nothing but tests"
SUBMODULE = "a new test does not pass, and the submodule {name}, which changes, is not checked out"
OTHER_RUNNER = "the test command does not run such files"


def run_stored(issues: Sequence[int], pull: PullRequest, services: Services) -> tuple[ExecutedTest, ...]:
    """Run each issue's stored test on a pull request's base, where it should fail, and on its head.

    Return nothing if there is no sandbox or nothing can be run.
    """
    tests: dict[int, StoredTest] = {}
    for issue in issues:
        test = stored_test(services.history.decisions(f"{services.forge.repository}#{issue}", "reproduce"))
        if test is not None:
            tests[issue] = test
    if not tests or services.harnesses is None:
        return ()
    with TemporaryDirectory(prefix="bouncer-") as folder:
        base, head = Path(folder, "base"), Path(folder, "head")
        try:
            checkouts(pull, services, Path(folder))
            runs: list[ExecutedTest] = []
            for issue, test in tests.items():
                with services.prepared(base, test.test_command) as harness:
                    runs.append(check_patch(issue, test, base, head, harness))
            return tuple(runs)
        except (ForgeError, SandboxError, SetupFailed):
            # The verdict then rests on reading alone, and the check does not claim a run.
            return ()


def check_patch(issue: int, test: StoredTest, base: Path, head: Path, harness: Harness) -> ExecutedTest:
    """Run an issue's stored test on two checkouts, base and head of the patch. Neither folder is changed.

    The stored test replaces head's own version of its file: the patch does not decide how it is judged. Raises
    SandboxError.
    """
    target, files = Target(path=test.path, name=test.name), {test.path: test.content}
    before, after = (_stable_outcome(harness, folder, target, files) for folder in (base, head))
    # People are shown the run on head, or the run on base if head passed.
    shown_run = before if after.status == "passed" else after
    solved: bool | None = None
    if before.fails and (after.status == "passed" or after.fails):
        solved = not after.fails
    return ExecutedTest(
        issue=issue,
        test=f"{test.path}::{test.name}",
        command=command_line(harness.command, target),
        base=before.status,
        head=after.status,
        solved=solved,
        output=(shown_run.output or shown_run.message)[:MAX_OUTPUT],
    )


def _stable_outcome(harness: Harness, folder: Path, target: Target, files: dict[str, str]) -> TestOutcome:
    """Return the outcome of a test. A failure that does not repeat in a second run counts as skipped."""
    first = harness.run(folder, [target], files).outcome
    if not first.fails:
        return first
    second = harness.run(folder, [target], files).outcome
    if second.fails:
        return first
    return first.model_copy(update={"status": "skipped", "message": "flaky: it failed in one of two runs only"})


def run_new_tests(pull: PullRequest, diff: Diff, services: Services, no_run: str | None) -> NewTests:
    """Run the new tests of a pull request on both sides; ``no_run``: why its head may not be executed, or None."""
    files = [file for file in diff.files if file.change != "deleted" and file.hunks and _holds_tests(file.path)]
    if not files:
        return NewTests()
    result = NewTests(files=tuple(file.path for file in files))
    # Without the tests, and without fixtures, data and helpers beside them.
    others = (file for file in diff.files if not (_holds_tests(file.path) or file_classes.is_test(file.path)))
    rest = Diff(tuple(others), diff.flaws)
    if no_run is not None:
        return result.model_copy(update={"why": FORK.format(sha=pull.head_sha)})
    if not rest.files:
        return result.model_copy(update={"why": ONLY_TESTS})
    if services.harnesses is None:
        return result.model_copy(update={"why": "the sandbox is switched off"})
    try:
        with both_sides(pull, rest, services) as sides:
            targets = _targets(files, sides.head, sides.harness.command)
            tests = _run(targets[:MAX_TESTS], sides)
    except NotRunnable as error:
        return result.model_copy(update={"why": str(error)})
    why = "" if targets else OTHER_RUNNER
    changed_submodules = [file.path for file in diff.files if is_submodule(file)]
    if changed_submodules and any(test.after in ("failed", "cannot be loaded") for test in tests):
        return result.model_copy(update={"why": SUBMODULE.format(name=changed_submodules[0])})
    return result.model_copy(update={"tests": tests, "omitted": max(0, len(targets) - MAX_TESTS), "why": why})


def _holds_tests(path: str) -> bool:
    language = file_classes.language(path)
    has_test_name = bool(_TEST_FILE.fullmatch(path.rpartition("/")[2]))
    if language in ("python", "java"):
        return has_test_name
    return bool(language) and (has_test_name or file_classes.is_test(path))


def _targets(files: Sequence[FileDiff], head: Path, command: TestCommand) -> list[Target]:
    """Return the tests with added lines; the whole file if the lines are in no test that has a name here."""
    targets: list[Target] = []
    takes_files = command.naming == "files"
    language = "java" if command.runs_java else "python"
    for file in files:
        path = inside(head, file.path)
        text = as_source(path.read_bytes()) if path.is_file() else None
        if text is None or not (takes_files or file_classes.language(file.path) == language):
            continue
        names = () if takes_files else _changed_tests(file, text)
        targets += [Target(path=file.path, name=name) for name in names or (None,)]
    return targets


def _changed_tests(file: FileDiff, text: str) -> tuple[str, ...]:
    """Return the names of the tests with added lines, as the runners of Python and Java take them."""
    added = [line.new for hunk in file.hunks for line in hunk.lines if line.mark == "+" and line.new is not None]
    lines, package = text.split("\n"), _PACKAGE.search(text)
    names: dict[str, None] = {}
    separator = "$" if file_classes.language(file.path) == "java" else "::"
    definitions = syntax.definitions(text, file.path)
    functions = [definition for definition in definitions if definition.kind == "function"]
    outer_names = {function.qualified for function in functions}
    for function in functions:
        head = " ".join(lines[function.first - 1 : function.body])
        is_test = function.name.startswith("test") or _ANNOTATION.search(head)
        is_changed = any(function.first <= number <= function.last for number in added)
        if is_test and is_changed and function.within not in outer_names:
            within = function.within.replace(".", separator)
            name = f"{within}::{function.name}" if within else function.name
            names[f"{package[1]}.{name}" if package else name] = None
    return tuple(names)


def _run(targets: Sequence[Target], sides: BothSides) -> tuple[NewTest, ...]:
    """Run the targets file by file, because a file that cannot be loaded ends the run of all others."""
    deadline = time.monotonic() + SECONDS
    tests: list[NewTest] = []
    by_file: dict[str, list[Target]] = {}
    for target in targets:
        by_file.setdefault(target.path, []).append(target)
    for group in by_file.values():
        outcomes_before = _outcomes(group, sides.before, sides.harness, deadline)
        outcomes_after = _outcomes(group, sides.head, sides.harness, deadline)
        for target in group:
            outcome_before, outcome_after = outcomes_before[target], outcomes_after[target]
            shown_outcome = outcome_before if outcome_after.status == "passed" else outcome_after
            tests.append(
                NewTest(
                    test=f"{target.path}::{target.name}" if target.name else target.path,
                    before=_state(outcome_before),
                    after=_state(outcome_after),
                    output=(shown_outcome.output or shown_outcome.message)[:MAX_OUTPUT],
                )
            )
    return tuple(tests)


#: A test whose two runs differ, and one that was not run.
_FLAKY = TestOutcome(status="skipped", message="flaky")
_NOT_RUN = TestOutcome(status="skipped", message="not run")


def _outcomes(
    group: Sequence[Target], folder: Path, harness: Harness, deadline: float
) -> Mapping[Target, TestOutcome]:
    """Return the outcome of each target of one file, after two runs."""
    if time.monotonic() > deadline:
        return dict.fromkeys(group, _NOT_RUN)
    first, second = (harness.run(folder, group, {}) for _ in range(2))
    outcomes: dict[Target, TestOutcome] = {}
    for target in group:
        first_outcome, second_outcome = (_outcome_in(report, target, group) for report in (first, second))
        if first_outcome is None or second_outcome is None:
            # The report does not name it, as that of unittest for a test that passes.
            first_outcome, second_outcome = (harness.run(folder, [target], {}).outcome for _ in range(2))
        same = (first_outcome.status, first_outcome.phase) == (second_outcome.status, second_outcome.phase)
        outcomes[target] = first_outcome if same else _FLAKY
    return outcomes


def _outcome_in(report: TestReport, target: Target, group: Sequence[Target]) -> TestOutcome | None:
    """Return the outcome of a target in a run of its file, with all its parameters; None if it is not named."""
    if target.name is None or len(group) == 1:
        return report.outcome
    name, stem = target.name.replace("::", "."), PurePosixPath(target.path).stem
    ending = f".{name}" if stem in re.split(r"[.$]", name) else f".{stem}.{name}"
    runs = tuple(test for test in report.tests if f".{test.name.partition('[')[0]}".endswith(ending))
    if runs:
        return combine(runs)
    outcome = report.outcome
    return outcome if outcome.status in ("passed", "skipped") or outcome.phase == "load" else None


def _state(outcome: TestOutcome) -> TestState:
    if outcome is _FLAKY or outcome is _NOT_RUN:
        return "flaky" if outcome is _FLAKY else "not run"
    if outcome.status == "passed" or outcome.status == "skipped":
        return outcome.status
    return "cannot be loaded" if outcome.phase == "load" else "failed"
