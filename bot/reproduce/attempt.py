"""What became of every draft, and what all of them together come to. Values only."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.actions import Usage
from bot.core.frozen import Frozen
from bot.reproduce.inject import Candidate
from bot.reproduce.match import Grade
from bot.reproduce.outcome import TestOutcome

#: ``unusable``: it cannot be put into a file or loaded. The others are what its test did on the present code.
Fate = Literal["unusable", "passed", "failed", "skipped", "not run"]

#: The three states that people see.
State = Literal["reproduced", "not reproduced", "not run"]


class Attempt(Frozen):
    """One draft and what became of it."""

    number: int
    fate: Fate
    why: str = Field("", description="one sentence, where it did not simply fail as reported")
    repaired: bool = False
    fault: Literal["", "environment", "interface"] = Field("", description="what its author says it fails for")
    inverted: bool = False
    flaky: bool = False
    outcome: TestOutcome | None = Field(None, description="None where it was never run")
    candidate: Candidate | None = Field(None, description="None where it never found its place in a file")


class OfferedTest(Frozen):
    """A test that fails as reported, as it is offered."""

    candidate: Candidate
    outcome: TestOutcome
    agreeing: int = Field(ge=1, description="drafts that fail in the same way, this one included")
    grade: Grade
    command: str = Field(description="the command line that runs this test alone")


class Reproduction(Frozen):
    """The result for one report."""

    state: State
    reason: str = Field("", description="one sentence; why nothing is shown, where nothing is")
    environment: bool = Field(False, description="not one test can be run here; no model was asked")
    abstained: Literal["", "environment", "interface"] = Field(
        "", description="why no test can be drafted, where its author says so: the reason tells the rest"
    )
    shown: tuple[OfferedTest, ...] = Field((), description="best first; never empty where ``state`` is reproduced")
    attempts: tuple[Attempt, ...] = ()
    drafted: int = Field(0, ge=0, description="drafts that the model gave")
    failures: tuple[str, ...] = Field((), description="stable words for questions that the model did not answer")
    sandbox: str = Field("", description="the runner; empty where nothing was run")
    usage: Usage = Usage()
    model: str = ""

    @property
    def best(self) -> OfferedTest | None:
        """What is offered."""
        return self.shown[0] if self.shown else None
