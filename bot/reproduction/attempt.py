"""Attempts with drafts: put into a test file of the repository, run in the sandbox, with the result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from bot.core.actions import Usage
from bot.core.frozen import Frozen
from bot.reproduction.context import Checkout
from bot.reproduction.language import DraftRejected, Language, Names
from bot.reproduction.match import Grade
from bot.reproduction.protocol import Execution, Harness, Target, TestOutcome

#: Sandboxes at a time: tests share the machine with the worker.
PARALLEL = 2

#: ``unusable``: the draft cannot be put into a file or loaded. The others are its result on the present code.
Fate = Literal["unusable", "passed", "failed", "skipped", "not run"]

#: The three states that people see.
State = Literal["reproduced", "not reproduced", "not run"]


class Candidate(Frozen):
    """A draft in a test file, ready to run."""

    number: int = Field(description="which draft; unique among the drafts of a report")
    draft: str = Field(description="as the model wrote it")
    path: str = Field(description="the test file, relative to the repository")
    content: str = Field(description="the whole test file with the test in it")
    name: str = Field(description="the test within its file: ``TestA::test_b``")
    code: str = Field(description="what was added, for people to read")
    new_file: bool
    syntax: str = Field(description="normal form: equal for tests written alike")
    tokens: int = Field(ge=0, description="length of what was added, lexical tokens")

    @property
    def target(self) -> Target:
        """The target that runs this test alone."""
        return Target(path=self.path, name=self.name)


def inject(
    number: int,
    draft: str,
    *,
    language: Language,
    test_files: Mapping[str, str],
    host: str | None,
    test_name: str | None,
    names: Names,
) -> Candidate:
    """Put a draft into ``host``, or into a new file beside it if it does not fit there.

    ``test_files``: text by path of all files with tests. Raises DraftRejected if the draft does not parse,
    contains no test, or uses an unknown name.
    """
    path, injected = host, None
    if host is not None:
        # A new file has fewer requirements; if the draft is refused there too, that reason counts.
        with suppress(DraftRejected):
            injected = language.inject(draft, test_files[host], test_name, names)
    if path is None or injected is None:
        path = language.new_path(host, test_name or "test_reported_bug", test_files)
        injected = language.new_file(draft, test_name, names, path)
    return Candidate(
        number=number,
        draft=draft,
        path=path,
        content=injected.content,
        name=injected.test_id,
        code=injected.code,
        new_file=path not in test_files,
        syntax=language.syntax(draft),
        tokens=language.length(injected.code),
    )


class Attempt(Frozen):
    """One draft and its result."""

    number: int
    fate: Fate
    why: str = Field("", description="reason for the fate in one sentence; empty if it failed as reported")
    repaired: bool = False
    fault: Literal["", "environment", "interface"] = Field(
        "", description="the reason that the model gives for not repairing it"
    )
    inverted: bool = Field(False, description="it passed as drafted, and its last assertion was inverted")
    flaky: bool = False
    outcome: TestOutcome | None = Field(None, description="None if it was never run")
    candidate: Candidate | None = Field(None, description="None if it could not be put into a file")


class OfferedTest(Frozen):
    """A test that fails as reported, to be offered to people."""

    candidate: Candidate
    outcome: TestOutcome
    agreeing: int = Field(ge=1, description="drafts that fail in the same way, this one included")
    grade: Grade
    command: str = Field(description="the command line that runs this test alone")
    repairs: int = Field(0, ge=0, description="drafted repairs of the bug with which it passes")


class Reproduction(Frozen):
    """The result for one report."""

    state: State
    reason: str = Field("", description="one sentence; why no test is offered, if none is")
    environment: bool = Field(False, description="not one test can be run here; no model was asked")
    abstained: Literal["", "environment", "interface"] = Field(
        "", description="why no test can be drafted, if its author says so; the details are in the reason"
    )
    tests: tuple[OfferedTest, ...] = Field((), description="best first; never empty if ``state`` is reproduced")
    attempts: tuple[Attempt, ...] = ()
    drafts: int = Field(0, ge=0, description="drafts that the model gave")
    failures: tuple[str, ...] = Field((), description="error codes of questions that the model did not answer")
    sandbox: str = Field("", description="the runner; empty if nothing was run")
    usage: Usage = Usage()
    model: str = ""

    @property
    def best(self) -> OfferedTest | None:
        """The test that is offered."""
        return self.tests[0] if self.tests else None


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
        placements = {number: self._placed(number, draft) for number, draft in drafts.items()}
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

    def _placed(self, number: int, draft: str) -> Candidate | str:
        try:
            return inject(
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
            # The draft compiles, and is still too deep for libraries that walk its tree recursively.
            return "it is nested too deeply"

    def _run(self, candidate: Candidate) -> Execution | None:
        if time.monotonic() > self.deadline:
            return None
        files = {candidate.path: candidate.content}
        return self.harness.run_twice(self.checkout.folder, [candidate.target], files)


def _attempt(candidate: Candidate, execution: Execution | None, inverted: bool) -> Attempt:
    base = Attempt(number=candidate.number, fate="not run", candidate=candidate, inverted=inverted)
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
    how = "cannot be loaded" if outcome.phase == "load" else f"breaks in {outcome.phase}"
    exception = f"{outcome.exception_type}: " if outcome.exception_type else ""
    return "unusable", f"it {how}: {exception}{outcome.message}"
