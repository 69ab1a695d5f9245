"""What a reproduction leaves in the record, and how a stored test later speaks about a patch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.core.actions import Decision
from bot.core.errors import ForgeError, SandboxError
from bot.core.subjects import PullRequest
from bot.features.services import Services
from bot.features.shared.harness import prepared
from bot.features.shared.output_bouncer import ExecutedTest
from bot.features.shared.records import DraftRecord, ReproduceRecord, StoredTest
from bot.reproduction.attempt import Attempt, Reproduction
from bot.reproduction.command import Target, TestCommand
from bot.reproduction.execution import Harness
from bot.reproduction.outcome import TestOutcome
from bot.reproduction.setup import SetupFailed

#: Characters of a stored test file and of a stored output.
MAX_CONTENT = 400_000
MAX_OUTPUT = 4_000


def stored(result: Reproduction, command: TestCommand, branch: str, sha: str) -> StoredTest | None:
    """The best test of a result, ready for the record; None where there is none."""
    best = result.best
    if best is None or len(best.candidate.content) > MAX_CONTENT:
        return None
    return StoredTest(
        path=best.candidate.path,
        name=best.candidate.name,
        content=best.candidate.content,
        code=best.candidate.code,
        new_file=best.candidate.new_file,
        command=command.argv,
        branch=branch,
        sha=sha,
        exception_type=best.outcome.exception_type or "",
        message=best.outcome.message[:MAX_OUTPUT],
    )


def recall(past: Sequence[Decision]) -> StoredTest | None:
    """The test of the newest decision that reproduced the report; None where none did. Pure."""
    for decision in reversed(past):
        if isinstance(decision.record, ReproduceRecord) and decision.verdict == "reproduced":
            return decision.record.test
    return None


def record(result: Reproduction, test: StoredTest | None, prompt: str, config: str) -> ReproduceRecord:
    """Return what an attempt leaves; ``prompt`` and ``config`` are hashes."""
    return ReproduceRecord(
        state=result.state,
        test=test,
        agreeing=result.best.agreeing if result.best else 0,
        drafted=result.drafted,
        sandbox=result.sandbox,
        attempts=tuple(_summary(attempt) for attempt in result.attempts),
        prompt=prompt,
        config=config,
    )


def _summary(attempt: Attempt) -> DraftRecord:
    outcome = attempt.outcome
    return DraftRecord(
        number=attempt.number,
        fate=attempt.fate,
        why=attempt.why[:500],
        repaired=attempt.repaired,
        inverted=attempt.inverted,
        flaky=attempt.flaky,
        exception_type=outcome.exception_type if outcome else None,
        message=outcome.message[:500] if outcome else "",
        code=attempt.candidate.code[:4_000] if attempt.candidate else "",
    )


def run_stored(issues: Sequence[int], pull: PullRequest, services: Services) -> tuple[ExecutedTest, ...]:
    """Run each issue's stored test on a pull request's base, where it should fail, and on its head.

    Nothing where there is no sandbox or nothing can be run.
    """
    past = {
        each: services.history.decisions(f"{services.forge.repository}#{each}", "reproduce") for each in issues
    }
    tests = {issue: test for issue in issues if (test := recall(past[issue])) is not None}
    if not tests or services.sandbox is None:
        return ()
    with TemporaryDirectory(prefix="bouncer-") as folder:
        base, head = Path(folder, "base"), Path(folder, "head")
        try:
            for sha, place in ((pull.base_sha, base), (pull.head_sha, head)):
                place.mkdir()
                services.forge.checkout(sha, place)
            runs: list[ExecutedTest] = []
            for issue, test in tests.items():
                with prepared(services, base, test.test_command) as harness:
                    runs.append(check_patch(issue, test, base, head, harness))
            return tuple(runs)
        except (ForgeError, SandboxError, SetupFailed):
            # Reading alone then decides, as where there is no test; the check does not claim a run.
            return ()


def check_patch(issue: int, test: StoredTest, base: Path, head: Path, harness: Harness) -> ExecutedTest:
    """Run an issue's stored test on two checkouts: the patch's base and its head. Neither folder is changed.

    Where head brings its own version of the test's file, the stored one takes its place: the patch does not
    decide how it is judged. Raises SandboxError.
    """
    target, files = Target(path=test.path, name=test.name), {test.path: test.content}
    before, after = (_outcome(harness, folder, target, files) for folder in (base, head))
    # What people are shown: the run on head where it did not pass, else the run on base.
    shown = before if after.status == "passed" else after
    return ExecutedTest(
        issue=issue,
        test=f"{test.path}::{test.name}",
        command=harness.command.line(target),
        base=before.status,
        head=after.status,
        solved=_solved(before, after),
        output=(shown.output or shown.message)[:MAX_OUTPUT],
    )


def _solved(base: TestOutcome, head: TestOutcome) -> bool | None:
    """False: fails on both, strong evidence against the patch. True: passes on head: shown, never a verdict.

    None: it says nothing (it does not fail on base, or could not be run on head).
    """
    if not base.fails:
        return None
    if head.status == "passed":
        return True
    return False if head.fails else None


def _outcome(harness: Harness, folder: Path, target: Target, files: dict[str, str]) -> TestOutcome:
    """One run; where the test fails it has to do so twice, a flaky one says nothing."""
    first = harness.run(folder, [target], files).outcome
    if not first.fails:
        return first
    second = harness.run(folder, [target], files).outcome
    if second.fails:
        return first
    return first.model_copy(update={"status": "skipped", "message": "flaky: it failed in one of two runs only"})
