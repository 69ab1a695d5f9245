"""Run the stored reproducing tests of linked issues on a pull request's base and head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.core.errors import ForgeError, SandboxError
from bot.core.subjects import PullRequest
from bot.features.reproduce.record import StoredTest, stored_test
from bot.features.services import Services
from bot.features.shared.merge_base import checkouts
from bot.features.verify.record import ExecutedTest
from bot.reproduction.protocol import Harness, SetupFailed, Target, TestOutcome

#: Characters of an output that are recorded.
MAX_OUTPUT = 4_000


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
    before, after = (_outcome(harness, folder, target, files) for folder in (base, head))
    # People are shown the run on head, or the run on base if head passed.
    shown_run = before if after.status == "passed" else after
    solved: bool | None = None
    if before.fails and (after.status == "passed" or after.fails):
        solved = not after.fails
    return ExecutedTest(
        issue=issue,
        test=f"{test.path}::{test.name}",
        command=harness.command.line(target),
        base=before.status,
        head=after.status,
        solved=solved,
        output=(shown_run.output or shown_run.message)[:MAX_OUTPUT],
    )


def _outcome(harness: Harness, folder: Path, target: Target, files: dict[str, str]) -> TestOutcome:
    """Return the outcome of a test. A failure that does not repeat in a second run counts as skipped."""
    first = harness.run(folder, [target], files).outcome
    if not first.fails:
        return first
    second = harness.run(folder, [target], files).outcome
    if second.fails:
        return first
    return first.model_copy(update={"status": "skipped", "message": "flaky: it failed in one of two runs only"})
