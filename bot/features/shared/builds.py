"""Run a stored test on commits of the default branch, and find the commit that changed its outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.core.frozen import Frozen
from bot.features.reproduce.record import BuildState, StoredTest
from bot.features.services import Services
from bot.reproduction.protocol import SetupFailed, Target, TestOutcome

#: Runs on a commit. A test whose runs differ is flaky.
RUNS = 3


@dataclass
class Builds:
    """The outcomes of a stored test by commit; each commit is built at most once."""

    test: StoredTest
    services: Services
    states: dict[str, BuildState] = field(default_factory=dict)

    def state(self, sha: str, expected: BuildState | None = None) -> BuildState:
        """Return the state of the test on a commit. One run is enough if it is ``expected``.

        Raises SandboxError if the sandbox fails.
        """
        if sha not in self.states:
            self.states[sha] = self._run(sha, expected)
        return self.states[sha]

    def _run(self, sha: str, expected: BuildState | None) -> BuildState:
        test, states = self.test, list[BuildState]()
        target, files = Target(path=test.path, name=test.name), {test.path: test.content}
        with TemporaryDirectory(prefix="bouncer-") as folder:
            self.services.forge.checkout(sha, Path(folder))
            try:
                with self.services.prepared(Path(folder), test.test_command) as harness:
                    while len(states) < RUNS:
                        states.append(state_of(harness.run(Path(folder), [target], files).outcome, test))
                        if states[-1] != states[0]:
                            return "flaky"
                        if states == [expected] or states == ["not run"]:
                            break
            except SetupFailed:
                return "not run"
        return states[0]


def state_of(outcome: TestOutcome, test: StoredTest) -> BuildState:
    """Return what one run says. A failure with another exception than the reported one says nothing."""
    if outcome.status == "passed":
        return "passes"
    as_reported = test.exception_type in ("", outcome.exception_type or "")
    return "fails" if outcome.fails and as_reported else "not run"


class FirstCommits(Frozen):
    """Commits one of which changed the outcome of a test, oldest first; ``flaky``: the test is, on that commit."""

    commits: tuple[str, ...] = ()
    flaky: str = ""


def find_change(
    commits: Sequence[str], state: Callable[[str], BuildState], after: BuildState, builds: Callable[[], bool]
) -> FirstCommits:
    """Return the first commit on which the test has the state ``after``. Pure but for ``state``.

    ``commits`` are ordered, oldest first; the last one has that state and the commit before the first one has not.
    Commits that cannot be run are skipped, and are part of the result if they may be the one. ``builds`` returns
    False when no further commit may be built.
    """
    low, high, skipped = -1, len(commits) - 1, set[int]()
    while builds():
        candidates = [index for index in range(low + 1, high) if index not in skipped]
        if not candidates:
            break
        middle = min(candidates, key=lambda index: abs(index - (low + high) // 2))
        outcome = state(commits[middle])
        if outcome == "flaky":
            return FirstCommits(flaky=commits[middle])
        if outcome == "not run":
            skipped.add(middle)
        elif outcome == after:
            high = middle
        else:
            low = middle
    return FirstCommits(commits=tuple(commits[low + 1 : high + 1]))
