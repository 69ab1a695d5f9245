"""Put drafts into the repository's test files and run them there, in the sandbox."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bot.reproduce.attempt import Attempt, Fate
from bot.reproduce.checkout import Checkout
from bot.reproduce.command import Target
from bot.reproduce.execution import Execution, Harness
from bot.reproduce.failure import Failure
from bot.reproduce.inject import Candidate, inject
from bot.reproduce.language import DraftRejected, Language, Names
from bot.reproduce.outcome import TestOutcome

#: Sandboxes at a time: tests share the machine with the worker.
PARALLEL = 2
#: Characters of a run's output that go into a repair: the whole traceback of most.
PRINTED = 20_000


@dataclass(frozen=True)
class Trial:
    """One repository, one way to run its tests, one place for new ones."""

    checkout: Checkout
    language: Language
    harness: Harness
    host: str | None
    """The test file that drafts are added to; None = files of their own."""
    test_name: str | None
    names: Names
    deadline: float
    """On ``time.monotonic``: what has not begun by then is not run."""

    def attempts(self, drafts: Mapping[int, str], *, inverted: bool = False) -> tuple[Attempt, ...]:
        """What becomes of each draft; drafts that make the same file are run once for all."""
        placed = {number: self._placed(number, draft, inverted) for number, draft in drafts.items()}
        candidates = {(each.path, each.content): each for each in placed.values() if isinstance(each, Candidate)}
        with ThreadPoolExecutor(PARALLEL) as pool:
            runs = dict(zip(candidates, pool.map(self._run, candidates.values()), strict=True))
        return tuple(
            Attempt(number=number, fate="unusable", why=each, inverted=inverted)
            if isinstance(each, str)
            else _judged(each, runs[each.path, each.content])
            for number, each in placed.items()
        )

    def broken(self) -> str:
        """Why no test can be run here; empty where one can: an existing one, or else one that does nothing."""
        existing = self.language.tests_in(self.checkout.tests[self.host]) if self.host else ()
        if self.host and existing:
            found = self.harness.run(
                self.checkout.folder, [Target(path=self.host, name=existing[0][0])], {}
            ).outcome
            if found.status in ("passed", "failed", "skipped") or found.phase in ("setup", "call", "teardown"):
                return ""
        path = self.language.new_path(self.host, "test_bouncer_probe", self.checkout.sources)
        code, name = self.language.probe(path, self.names)
        probe = self.harness.run(self.checkout.folder, [Target(path=path, name=name)], {path: code}).outcome
        return (
            ""
            if probe.status == "passed"
            else probe.message or probe.output[-300:] or "a test that does nothing fails"
        )

    def _placed(self, number: int, draft: str, inverted: bool) -> Candidate | str:
        try:
            candidate = inject(
                number,
                draft,
                language=self.language,
                test_files=self.checkout.tests,
                host=self.host,
                test_name=self.test_name,
                names=self.names,
            )
        except DraftRejected as error:
            return str(error)
        except RecursionError:
            # It compiled, and is still too deep for those who walk through its tree.
            return "it is nested too deeply"
        return candidate.model_copy(update={"inverted": inverted})

    def _run(self, candidate: Candidate) -> Execution | None:
        if time.monotonic() > self.deadline:
            return None
        target = Target(path=candidate.path, name=candidate.name)
        return self.harness.run_twice(self.checkout.folder, [target], {candidate.path: candidate.content})


def failure_of(outcome: TestOutcome) -> Failure:
    """The failure of an outcome; one without an exception is named by the way it ended."""
    if outcome.exception_type:
        return outcome.failure
    if outcome.status == "timeout":
        return Failure(exception_type="timeout", message=outcome.message)
    if outcome.phase in ("crash", "limit"):
        return Failure(exception_type=outcome.phase, message=outcome.message)
    return outcome.failure


def _judged(candidate: Candidate, execution: Execution | None) -> Attempt:
    base = Attempt(number=candidate.number, fate="not run", candidate=candidate, inverted=candidate.inverted)
    if execution is None:
        return base.model_copy(update={"why": "the time for this report was used up"})
    outcome = execution.outcome
    fate, why = _fate(outcome)
    return base.model_copy(update={"fate": fate, "why": why, "outcome": outcome, "flaky": execution.flaky})


def _fate(outcome: TestOutcome) -> tuple[Fate, str]:
    if outcome.status == "passed":
        return "passed", "passes on the present code"
    if outcome.status == "skipped":
        return "skipped", f"is skipped: {outcome.message}"
    if outcome.fails:
        return "failed", ""
    return "unusable", _problem(outcome)


def _problem(outcome: TestOutcome) -> str:
    kind = f"{outcome.exception_type}: " if outcome.exception_type else ""
    if outcome.phase == "load":
        return f"it cannot be loaded: {kind}{outcome.message}"
    return f"it breaks in {outcome.phase}: {kind}{outcome.message}"


def repairable(attempts: Sequence[Attempt], drafts: Mapping[int, str]) -> dict[int, tuple[str, str]]:
    """The drafts that never ran, by number, with what was wrong with them and the end of what was printed."""
    return {each.number: (drafts[each.number], _trouble(each)) for each in attempts if each.fate == "unusable"}


def _trouble(attempt: Attempt) -> str:
    printed = attempt.outcome.output.strip()[-PRINTED:] if attempt.outcome else ""
    return f"{attempt.why}\n\n{printed}".strip()
