"""Outcomes of tests, independent of the runner."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field

from bot.core.frozen import Frozen

#: Characters of a run's output that are kept.
MAX_OUTPUT = 20_000

Status = Literal["passed", "failed", "error", "skipped", "timeout"]

#: The phase in which a test that did not pass ended. ``load``: it could not be compiled, imported or found.
#: ``setup`` and ``teardown``: in a fixture. ``call``: in the test itself. ``limit``: a limit of the sandbox other
#: than time. ``crash``: the interpreter died.
Phase = Literal["load", "setup", "call", "teardown", "limit", "crash"]


class Frame(Frozen):
    """A place in the code that a traceback names."""

    path: str = Field(description="relative to the work folder if it lies inside")
    line: int = Field(ge=0, description="from 1; 0 if unknown")
    function: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + (f" in {self.function}" if self.function else "")


class TestOutcome(Frozen):
    """The outcome of one test, or of several together."""

    __test__: ClassVar[bool] = False  # not a test itself, for pytest

    status: Status
    phase: Phase | None = Field(None, description="None if it passed or was skipped, and for a timeout")
    exception_type: str | None = Field(None, description="as printed, with or without its module")
    message: str = Field("", description="the exception's text, or why there is no result")
    frame: Frame | None = Field(None, description="where the exception was raised")
    output: str = Field("", description="traceback, or the output if there is none; cut")
    name: str = Field("", description="the test as its runner names it; empty for several tests as one")
    path: str = Field("", description="its file relative to the work folder; empty if unknown")
    seconds: float = Field(0.0, ge=0)

    @property
    def fails(self) -> bool:
        """True if it ran and did not pass. False if it was skipped, could not be loaded, or broke in teardown."""
        if self.status == "error":
            return self.phase in ("setup", "call", "limit", "crash")
        return self.status in ("failed", "timeout")

    @property
    def kind(self) -> str:
        """The exception's name without package, as in a report; without an exception, the way it ended."""
        if self.exception_type:
            return re.split(r"[.$]", self.exception_type)[-1]
        if self.status == "timeout":
            return "timeout"
        return self.phase if self.phase in ("crash", "limit") else ""

    @property
    def in_test(self) -> bool:
        """True if the test's own lines raised the exception, not code that they called."""
        return self.frame is not None and bool(self.path) and self.frame.path == self.path


class TestReport(Frozen):
    """One run of a test command: its tests, and their combined outcome.

    A pass is reported by the process of the code under test, which could have forged it.
    """

    __test__: ClassVar[bool] = False

    outcome: TestOutcome
    tests: tuple[TestOutcome, ...] = ()
    seconds: float = Field(0.0, ge=0, description="wall time of the command")


_ORDER: tuple[Status, ...] = ("failed", "timeout", "error", "passed", "skipped")


def combine(tests: tuple[TestOutcome, ...]) -> TestOutcome:
    """Combine outcomes: the first of the worst status. No test at all is an error."""
    if not tests:
        return TestOutcome(status="error", phase="load", message="no test was run")
    return min(tests, key=lambda test: _ORDER.index(test.status))
