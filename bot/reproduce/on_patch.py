"""An issue's stored reproducing test on a pull request: on its base, where it should fail, and on its head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.bouncers.output import ExecutedTest
from bot.core.model import PullRequest
from bot.errors import ForgeError, NotRecorded, SandboxError
from bot.reproduce import evidence
from bot.reproduce.evidence import StoredTest
from bot.reproduce.harness import prepared
from bot.reproduce.setup import SetupFailed
from bot.services import Services


def run_stored(issues: Sequence[int], pull: PullRequest, services: Services) -> tuple[ExecutedTest, ...]:
    """One run for each issue that has a stored test; none where there is no sandbox or nothing can be run."""
    tests = {number: test for number in issues if (test := _stored(number, services)) is not None}
    if not tests or services.sandbox is None:
        return ()
    with TemporaryDirectory(prefix="bouncer-") as folder:
        base, head = Path(folder, "base"), Path(folder, "head")
        try:
            for sha, place in ((pull.base_sha, base), (pull.head_sha, head)):
                place.mkdir()
                services.forge.checkout(sha, place)
            return tuple(_run(number, test, base, head, services) for number, test in tests.items())
        except NotRecorded:
            raise
        except (ForgeError, SandboxError, SetupFailed):
            # Reading alone then decides, as where there is no test; the check does not claim a run.
            return ()


def _stored(number: int, services: Services) -> StoredTest | None:
    return evidence.recall(services.history.decisions(f"{services.forge.repository}#{number}", "reproduce"))


def _run(number: int, test: StoredTest, base: Path, head: Path, services: Services) -> ExecutedTest:
    with prepared(services, base, test.test_command) as harness:
        seen = evidence.check_patch(test, base, head, harness)
    return ExecutedTest(
        issue=number,
        test=seen.test,
        command=seen.command,
        base=seen.base.status,
        head=seen.head.status,
        solved=seen.solved,
        output=seen.output,
    )
