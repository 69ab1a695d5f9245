"""What came of running a test, whatever ran it."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field

from bot.core.frozen import Frozen

#: Characters that are kept of what a run printed.
MAX_OUTPUT = 20_000

Status = Literal["passed", "failed", "error", "skipped", "timeout"]

#: Where a test that did not pass came to its end. ``load``: it could not be compiled, imported or found. ``setup``
#: and ``teardown``: in a fixture. ``call``: in the test itself. ``limit``: a limit of the sandbox other than time.
#: ``crash``: the interpreter died.
Phase = Literal["load", "setup", "call", "teardown", "limit", "crash"]


class Frame(Frozen):
    """A place in the code that a traceback names."""

    path: str = Field(description="relative to the work folder where it lies inside")
    line: int = Field(ge=0, description="from 1; 0 where none is known")
    function: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + (f" in {self.function}" if self.function else "")


class TestOutcome(Frozen):
    """What came of one test, or of several as one."""

    __test__: ClassVar[bool] = False  # not a test itself, for pytest

    status: Status
    phase: Phase | None = Field(None, description="None where it passed or was skipped, and for a timeout")
    exception_type: str | None = Field(None, description="as printed, with or without its module")
    message: str = Field("", description="the exception's text, or why there is no result")
    frame: Frame | None = Field(None, description="where the exception was raised")
    output: str = Field("", description="traceback, or what was printed where there is none; cut")
    name: str = Field("", description="the test as its runner names it; empty for several tests as one")
    path: str = Field("", description="its file relative to the work folder; empty where it is not known")
    seconds: float = Field(0.0, ge=0)

    @property
    def fails(self) -> bool:
        """It ran and did not pass: neither skipped, nor impossible to load, nor broken while cleaning up."""
        if self.status == "error":
            return self.phase in ("setup", "call", "limit", "crash")
        return self.status in ("failed", "timeout")

    @property
    def kind(self) -> str:
        """The exception's name without package, as people write it in a report; without one, the way it ended."""
        if self.exception_type:
            return re.split(r"[.$]", self.exception_type)[-1]
        if self.status == "timeout":
            return "timeout"
        return self.phase if self.phase in ("crash", "limit") else ""

    @property
    def in_test(self) -> bool:
        """The exception was raised by the test's own lines, not by code that they called."""
        return self.frame is not None and bool(self.path) and self.frame.path == self.path


class TestReport(Frozen):
    """One run of a test command: every test that it told of, and all of them as one.

    A pass is told by the process that the code under test ran in, which could have written the same by itself.
    """

    __test__: ClassVar[bool] = False

    outcome: TestOutcome
    tests: tuple[TestOutcome, ...] = ()
    seconds: float = Field(0.0, ge=0, description="wall time of the command")


_ORDER: tuple[Status, ...] = ("failed", "timeout", "error", "passed", "skipped")


def combined(tests: tuple[TestOutcome, ...]) -> TestOutcome:
    """Several tests as one: the first that failed, else the first of the next worst; none at all is an error."""
    if not tests:
        return TestOutcome(status="error", phase="load", message="no test was run")
    return min(tests, key=lambda test: _ORDER.index(test.status))
