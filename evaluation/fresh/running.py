"""Run the tests of a fix to prove its bug, and then to label any patch for it.

Everything is run three times, and nothing counts that does not come out the same each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.core.errors import BouncerError
from bot.core.frozen import Frozen
from bot.reproduction.protocol import Harness, Target, TestReport, essence
from evaluation.bouncerbench.tasks import Failing
from evaluation.brt.cases import Case
from evaluation.brt.judge import Added, added_in, verdict
from evaluation.brt.patching import PatchRejected

#: How often tests are run before what they say counts.
RUNS = 3


class NotProven(BouncerError):
    """The tests of a fix do not show its bug; the message begins with the kind of reason."""


class Truth(Frozen):
    """The label of one patch, from its tests."""

    wrong: bool
    pass_fraction: float | None
    failing: Failing | None


@dataclass(frozen=True)
class Proof:
    """The tests of a fix fail before it and pass after it: they know right patches from wrong ones.

    ``mended`` are the tests that the fix turns, ``broken`` those that do not pass even with it.
    """

    case: Case
    harness: Harness
    files: Mapping[str, str]
    targets: tuple[Target, ...]
    tests: tuple[str, ...]
    mended: frozenset[str]
    broken: frozenset[str]
    reported: int

    def of(self, texts: Mapping[str, str], *, only_wrong: bool = False) -> Truth | None:
        """The truth about a patch by the texts that it leaves; None if the tests do not agree about it.

        ``only_wrong``: None, after one run, for a patch that no test finds wrong, too.
        """

        def run() -> TestReport:
            return self.harness.run(self.case.base, self.targets, {**texts, **self.files})

        first = run()
        lost = _broken(first) - self.broken
        if only_wrong and not lost:
            return None
        if not _agree(first, run):
            return None
        if not lost:
            return Truth(wrong=False, pass_fraction=1.0, failing=None)
        kinds = (bool(lost & self.mended), bool(lost - self.mended))
        failing: Failing = "both" if all(kinds) else "fail-to-pass" if kinds[0] else "pass-to-pass"
        share = max(0.0, 1 - len(lost) / self.reported) if self.reported else None
        return Truth(wrong=True, pass_fraction=share, failing=failing)


def prove(
    case: Case, harness: Harness, files: Mapping[str, str], test_files: Sequence[str], *, narrow: bool = False
) -> Proof:
    """That tests fail on the base of ``case`` and pass on the fixed version, three times each.

    ``files`` are the texts of the fix's tests by path, data included; ``test_files`` are run.
    ``narrow``: the other tests of their files are left out. Raises NotProven, and SandboxError as the sandbox
    does.
    """
    try:
        added = added_in(case, {path: files[path] for path in test_files if path in files})
    except PatchRejected as error:
        raise NotProven(f"no test to name: {error}") from None

    before, after = _turned(case, harness, added, files)
    mended = _broken(before) - _broken(after)
    whole = tuple(dict.fromkeys(Target(path=target.path) for target in added.targets))
    targets: tuple[Target, ...] = added.targets
    if targets != whole and harness.command.naming != "files" and not narrow:
        # The other tests of the same files, too: a patch may break what worked.
        wider = harness.run(case.fixed, whole, files)
        if wider.tests and _agree(wider, lambda: harness.run(case.fixed, whole, files)):
            after, targets = wider, whole
    return Proof(
        case=case,
        harness=harness,
        files=files,
        targets=targets,
        tests=tuple(f"{target.path}::{target.name}" if target.name else target.path for target in added.targets),
        mended=mended,
        broken=_broken(after),
        reported=sum(test.status == "passed" and bool(test.name) for test in after.tests),
    )


def _turned(case: Case, harness: Harness, added: Added, files: Mapping[str, str]) -> tuple[TestReport, TestReport]:
    """Return the outcomes before and after the fix. Raises NotProven unless every run shows the bug."""

    def on_base() -> TestReport:
        return harness.run(case.base, added.targets, files)

    def on_fixed() -> TestReport:
        return harness.run(case.fixed, added.targets, files)

    before = on_base()
    if before.outcome.status == "error" and not before.outcome.fails:
        raise NotProven(f"cannot be loaded before: {before.outcome.message}")
    if not before.outcome.fails:
        raise NotProven(f"does not fail before: {verdict(before, before, added.alone)[1]}")
    after = on_fixed()
    is_shown, why = verdict(before, after, added.alone)
    # A test that the environment does not let pass takes nothing from one that the fix turns.
    if not (is_shown or verdict(before, after, alone=False)[0]):
        raise NotProven(f"does not pass after: {why}")
    if not (_agree(before, on_base) and _agree(after, on_fixed)):
        raise NotProven(f"flaky: {RUNS} runs did not come out the same")
    return before, after


def _agree(first: TestReport, again: Callable[[], TestReport]) -> bool:
    return all(essence(again()) == essence(first) for _ in range(RUNS - 1))


def _broken(report: TestReport) -> frozenset[str]:
    """The names of the tests that do not pass; an empty name stands for the run as a whole."""
    names = {test.name for test in report.tests if test.status not in ("passed", "skipped")}
    if not report.tests and report.outcome.status not in ("passed", "skipped"):
        names.add("")
    return frozenset(names)
