"""Attempts with drafts: put into a test file of the repository, run in the sandbox, with the result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from bot.reproduction.context import Checkout
from bot.reproduction.language import DraftRejected, Language, Names
from bot.reproduction.protocol import Attempt, Candidate, Execution, Fate, Harness, Target, run_twice
from bot.reproduction.select import FailingTest

#: Sandboxes at a time: tests share the machine with the worker.
PARALLEL = 2


@dataclass(frozen=True)
class Trial:
    """A repository, the way to run its tests, and the place for new ones."""

    checkout: Checkout
    language: Language
    harness: Harness
    host: str | None
    """The test file that drafts are added to; None = files of their own."""
    test_name: str | None
    names: Names
    deadline: float
    """On ``time.monotonic``: no run begins later."""

    def run(self, drafts: Mapping[int, str], *, inverted: bool = False) -> tuple[Attempt, ...]:
        """Run the drafts. Drafts that give the same file are run once."""
        placements = {number: self._place_or_reason(number, draft) for number, draft in drafts.items()}
        candidates = {
            (candidate.path, candidate.content): candidate
            for candidate in placements.values()
            if isinstance(candidate, Candidate)
        }
        with ThreadPoolExecutor(PARALLEL) as pool:
            runs = dict(zip(candidates, pool.map(self._run, candidates.values()), strict=True))
        return tuple(
            Attempt(number=number, fate="unusable", why=placement, inverted=inverted)
            if isinstance(placement, str)
            else _attempt(placement, runs[placement.path, placement.content], inverted)
            for number, placement in placements.items()
        )

    def passes(self, candidate: Candidate, patched: Mapping[str, str]) -> bool:
        """Return True if a test passes with ``patched``, new texts of files by path."""
        if time.monotonic() > self.deadline:
            return False
        files = {**patched, candidate.path: candidate.content}
        return self.harness.run(self.checkout.folder, [candidate.target], files).outcome.status == "passed"

    def broken(self) -> str:
        """Return why no test can be run here, or "". Tries an existing test, else one that does nothing."""
        existing = self.language.tests_in(self.checkout.tests[self.host]) if self.host else ()
        if self.host and existing:
            target = Target(path=self.host, name=existing[0][0])
            outcome = self.harness.run(self.checkout.folder, [target], {}).outcome
            if outcome.status in ("passed", "failed", "skipped") or outcome.phase in ("setup", "call", "teardown"):
                return ""
        path = self.language.new_path(self.host, "test_bouncer_probe", self.checkout.sources)
        code, name = self.language.probe(path, self.names)
        target = Target(path=path, name=name)
        probe = self.harness.run(self.checkout.folder, [target], {path: code}).outcome
        if probe.status == "passed":
            return ""
        return probe.message or probe.output[-300:] or "a test that does nothing fails"

    def place(self, number: int, draft: str) -> Candidate:
        """Put a draft into ``host``, or into a new file beside it if it does not fit there.

        Raises DraftRejected if the draft does not parse, contains no test, or uses an unknown name.
        """
        tests, path, injected = self.checkout.tests, self.host, None
        if path is not None:
            # A new file has fewer requirements; if the draft is refused there too, that reason counts.
            with suppress(DraftRejected):
                injected = self.language.inject(draft, tests[path], self.test_name, self.names)
        if path is None or injected is None:
            path = self.language.new_path(self.host, self.test_name or "test_reported_bug", tests)
            injected = self.language.new_file(draft, self.test_name, self.names, path)
        return Candidate(
            **dict(injected),
            number=number,
            draft=draft,
            path=path,
            new_file=path not in tests,
            syntax=self.language.syntax(draft),
            tokens=self.language.length(injected.code),
        )

    def _place_or_reason(self, number: int, draft: str) -> Candidate | str:
        try:
            return self.place(number, draft)
        except DraftRejected as error:
            return str(error)
        except RecursionError:
            # The draft compiles, and is still too deep for libraries that walk its tree recursively.
            return "it is nested too deeply"

    def _run(self, candidate: Candidate) -> Execution | None:
        if time.monotonic() > self.deadline:
            return None
        files = {candidate.path: candidate.content}
        return run_twice(self.harness, self.checkout.folder, candidate.target, files)


def _attempt(candidate: Candidate, execution: Execution | None, inverted: bool) -> Attempt:
    base = Attempt(number=candidate.number, fate="not run", candidate=candidate, inverted=inverted)
    if execution is None:
        return base.model_copy(update={"why": "the time for this report was used up"})
    outcome, flaky = execution.outcome, execution.flaky
    if outcome.fails:
        return FailingTest(
            number=candidate.number, candidate=candidate, outcome=outcome, inverted=inverted, flaky=flaky
        )
    fate: Fate = "unusable"
    if outcome.status == "passed":
        fate, why = "passed", "passes on the present code"
    elif outcome.status == "skipped":
        fate, why = "skipped", f"is skipped: {outcome.message}"
    else:
        how = "cannot be loaded" if outcome.phase == "load" else f"breaks in {outcome.phase}"
        exception = f"{outcome.exception_type}: " if outcome.exception_type else ""
        why = f"it {how}: {exception}{outcome.message}"
    return base.model_copy(update={"fate": fate, "why": why, "outcome": outcome, "flaky": flaky})
