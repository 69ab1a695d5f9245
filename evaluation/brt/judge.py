"""Judge if a candidate is a bug-reproducing test, by running it with the bug and without.

A bug-reproducing test (BRT) can be loaded, fails on the buggy version and passes on the fixed one (layer Remember
of the cognitive layered framework; LIBRO, section II). Loading is part of it: a file that cannot be imported on
the buggy version tells nothing about the bug. What looks like a BRT is run once more on both versions: a test that
does not agree with itself reproduces nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduction.execution import SandboxHarness
from bot.reproduction.java.language import tests_by_text
from bot.reproduction.protocol import Target, TestCommand, TestOutcome, TestReport
from bot.sandbox.protocol import Limits, Sandbox
from evaluation.brt.cases import Candidate, Case
from evaluation.brt.patching import PatchRejected, apply, is_inside, python_tree, read_text


class Judgement(Frozen):
    """The judgement of one candidate."""

    instance_id: str
    candidate_id: str
    applied: bool = Field(description="the change fits the buggy version and holds tests")
    tests: tuple[str, ...] = Field((), description="what was run, as path or path::test")
    base: TestOutcome | None = Field(None, description="outcome on the buggy version; None if it was not run")
    fixed: TestOutcome | None = Field(None, description="outcome on the fixed version; None if it was not run")
    flaky: bool = Field(False, description="a second run on either version came out differently")
    brt: bool
    reason: str = Field(description="why it is one, or why not, in one sentence")


@dataclass(frozen=True)
class KeepingHarness(SandboxHarness):
    """Keeps the reports of its runs, by what was run where."""

    reports: dict[object, list[TestReport]] = field(default_factory=dict)

    def run(self, workdir: Path, targets: Sequence[Target], files: Mapping[str, str]) -> TestReport:
        report = super().run(workdir, targets, files)
        self.reports.setdefault((workdir, *targets, *files.items()), []).append(report)
        return report


@dataclass(frozen=True)
class Judge:
    """Judges candidates in ``sandbox``, each run of a test command under ``limits``."""

    sandbox: Sandbox
    limits: Limits
    reports: Mapping[object, list[TestReport]] = field(default_factory=dict)
    """Reports of a KeepingHarness: what was run already is not run again."""

    def judge(self, case: Case, candidate: Candidate) -> Judgement:
        """Apply ``candidate`` to copies of both versions and run what it adds. Raises SandboxError."""
        try:
            files = _applied(case, candidate)
        except PatchRejected as error:
            return _not_applied(case, candidate.candidate_id, error)
        return self.judge_files(case, candidate.candidate_id, files)

    def judge_files(self, case: Case, candidate_id: str, files: Mapping[str, str]) -> Judgement:
        """Judge the whole texts of files that hold tests, by path. Raises SandboxError."""
        try:
            added = added_in(case, files)
        except PatchRejected as error:
            return _not_applied(case, candidate_id, error)
        command = TestCommand(argv=case.command)
        harness = SandboxHarness(self.sandbox, command, env=case.env, limits=self.limits, by_operator=True)

        def run(tree: Path) -> TestReport:
            # The same files on both versions: the one difference between the runs is the code under test.
            earlier = self.reports.get((tree, *added.targets, *files.items()))
            return earlier.pop(0) if earlier else harness.run(tree, added.targets, files)

        base, fixed = run(case.base), run(case.fixed)
        is_new = not any((case.base / path).exists() for path in files)
        alone = added.alone and (command.naming != "files" or is_new)
        brt, reason = verdict(base, fixed, alone)
        flaky = brt and not verdict(run(case.base), run(case.fixed), alone)[0]
        return Judgement(
            instance_id=case.instance_id,
            candidate_id=candidate_id,
            applied=True,
            tests=tuple(
                f"{target.path}::{target.name}" if target.name else target.path for target in added.targets
            ),
            base=base.outcome,
            fixed=fixed.outcome,
            flaky=flaky,
            brt=brt and not flaky,
            reason="flaky: a second run came out differently" if flaky else reason,
        )


def _not_applied(case: Case, candidate_id: str, why: PatchRejected) -> Judgement:
    return Judgement(
        instance_id=case.instance_id,
        candidate_id=candidate_id,
        applied=False,
        brt=False,
        reason=f"it cannot be applied: {why}",
    )


def verdict(base: TestReport, fixed: TestReport, alone: bool) -> tuple[bool, str]:
    """Decide if tests with these outcomes on the buggy and the fixed version reproduce the bug, and why.

    ``alone``: every test that was run belongs to the candidate, so all of them must pass on the fixed version.
    Otherwise one that fails before and passes after is enough. Pure.
    """
    buggy, mended = base.outcome, fixed.outcome
    if buggy.status == "error" and not buggy.fails:
        return False, f"it cannot be loaded on the buggy version: {_failure(buggy)}"
    if not buggy.fails:
        return False, f"it {_VERBS[buggy.status]} on the buggy version"
    if not alone:
        return _turned(base, fixed)
    if mended.status != "passed":
        before, after = _VERBS[buggy.status], _VERBS[mended.status]
        differs = f"it {before} on the buggy version but {after} on the fixed one"
        how = differs if before != after else f"it {after} on the fixed version too"
        return False, f"{how}: {_failure(mended)}".rstrip(": ")
    how = "does not end" if buggy.status == "timeout" else f"fails with {_failure(buggy)}"
    return True, f"it {how} on the buggy version and passes on the fixed one"


_VERBS = {
    "passed": "passes",
    "failed": "fails",
    "error": "fails",
    "skipped": "is skipped",
    "timeout": "does not end",
}


def _turned(base: TestReport, fixed: TestReport) -> tuple[bool, str]:
    before = {test.name: test for test in base.tests if test.fails}
    passed = {test.name for test in fixed.tests if test.status == "passed"}
    # A runner that names failing tests only: what ran and is not among them passed.
    silent = passed <= {""} and any(test.phase != "load" for test in fixed.tests)
    others = {test.name for test in fixed.tests if test.status != "passed"}
    turned = [name for name in before if name in passed or (silent and name not in others)]
    if not turned:
        return False, "no test that fails on the buggy version passes on the fixed one"
    return (
        True,
        f"{turned[0]} fails with {_failure(before[turned[0]])} on the buggy version and passes on the fixed one",
    )


def _failure(outcome: TestOutcome) -> str:
    first = outcome.message.strip().partition("\n")[0][:200]
    return ": ".join(part for part in (outcome.exception_type or "", first) if part)


def _applied(case: Case, candidate: Candidate) -> dict[str, str]:
    def read(path: str) -> str | None:
        return read_text(case.base, path)

    if candidate.patch is not None:
        return apply(candidate.patch, read)
    assert candidate.path is not None
    assert candidate.content is not None
    if not is_inside(candidate.path):
        raise PatchRejected(f"{candidate.path!r}: no path inside of the repository")
    return {str(PurePosixPath(candidate.path)): candidate.content}


def added_in(case: Case, files: Mapping[str, str]) -> Added:
    """Return the tests to run in a candidate's files. Raises PatchRejected if they hold no test."""
    additions = [
        added
        for path, after in files.items()
        if path.endswith((".py", ".java"))
        and (added := added_tests(path, read_text(case.base, path), after)) is not None
    ]
    if not additions:
        raise PatchRejected("no test in it")
    # A file without an added test of its own is only run where no other file has one.
    selection = [added for added in additions if added.alone] or additions
    targets: tuple[Target, ...] = tuple(target for added in selection for target in added.targets)
    return Added(targets, alone=all(added.alone for added in selection))


@dataclass(frozen=True)
class Added:
    """The tests to run for one changed file.

    ``alone``: the targets are the added or altered tests and nothing else. Where a change touches data or
    helpers but no test, the whole file is the target, with tests in it that may fail for reasons of their own.
    """

    targets: tuple[Target, ...]
    alone: bool


def added_tests(path: str, before: str | None, after: str) -> Added | None:
    """Return the tests to run in ``path``, whose text was ``before`` (None = a new file); None if it has none."""
    tests = tests_by_text if path.endswith(".java") else _tests
    old = {} if before is None else tests(before)
    new = tests(after)
    if new is None:  # it does not parse: running it is what says so
        return Added((Target(path=path),), alone=True)
    if not new:
        return None
    if before is None or old is None:
        return Added((Target(path=path),), alone=before is None)
    names = tuple(name for name, text in new.items() if old.get(name) != text)
    if not names:
        return Added((Target(path=path),), alone=False)
    return Added(tuple(Target(path=path, name=name) for name in names), alone=True)


def _tests(text: str) -> dict[str, str] | None:
    """Tests by name (``TestC::test_d``) with their syntax; None if ``text`` does not parse."""
    tree = python_tree(text)
    return None if tree is None else dict(_tests_in(tree.body, ""))


def _tests_in(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield prefix + node.name, ast.dump(node)
        elif isinstance(node, ast.ClassDef):
            yield from _tests_in(node.body, f"{prefix}{node.name}::")
