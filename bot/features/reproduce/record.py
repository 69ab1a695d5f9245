"""The record of an attempt to reproduce a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import AliasChoices, Field

from bot.core.actions import Decision, Record
from bot.core.frozen import Frozen, Lenient
from bot.reproduction.protocol import TestCommand

#: The outcome of a stored test on a commit. ``not run``: it was not built or loaded, or fails in another way.
BuildState = Literal["passes", "fails", "flaky", "not run"]


class StoredTest(Frozen):
    """A test that reproduced a report, with everything that is needed to run it again on other code."""

    path: str
    name: str = Field(description="within the file: ``TestA::test_b``")
    content: str = Field(description="the whole file, as it was on the commit where the test was made")
    code: str = Field(description="the addition to the file, for people to read")
    new_file: bool
    command: tuple[str, ...] = Field(description="arguments with ``{tests}`` in them")
    branch: str
    sha: str = Field(description="the commit on which it failed")
    exception_type: str = ""
    message: str = ""

    @property
    def test_command(self) -> TestCommand:
        """The command for which the test was made; the repository may have another one by now."""
        return TestCommand(argv=self.command)


class DraftRecord(Lenient):
    """A drafted test and its fate."""

    number: int
    fate: str
    why: str = ""
    repaired: bool = False
    inverted: bool = False
    flaky: bool = False
    exception_type: str | None = None
    message: str = ""
    code: str = ""


class ReproduceRecord(Record):
    """An attempt to reproduce a report."""

    state: str = ""
    test: StoredTest | None = None
    agreeing: int = Field(0, description="drafts that fail alike")
    drafts: int = Field(
        0,
        validation_alias=AliasChoices("drafts", "drafted"),
        description="number of drafts; ``drafted`` in rows of version 0.2",
    )
    sandbox: str = ""
    attempts: tuple[DraftRecord, ...] = ()
    prompt: str = Field("", description="hash of the prompt's file")
    config: str = Field("", description="hash of the configuration")


def stored_test(past: Sequence[Decision]) -> StoredTest | None:
    """Return the test of the newest decision that reproduced the report."""
    for decision in reversed(past):
        if isinstance(decision.record, ReproduceRecord) and decision.verdict == "reproduced":
            return decision.record.test
    return None
