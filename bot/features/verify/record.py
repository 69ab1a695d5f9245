"""The record of a verdict on a patch."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field

from bot.core.actions import CodeContext
from bot.core.frozen import Frozen
from bot.features.shared.labels import BouncerRecord, ModelReply, OutputLabel

#: From this chance on, percent, the form counts as open.
OPEN_FORM = 40

#: What a demand rests on, and its grade.
Basis = Literal["stated", "implied", "guess"]
Grade = Literal["met", "not_met", "cannot_tell"]


class GradedDemand(Frozen):
    """Something that a correct patch has to do, and the grade of the patch."""

    text: str
    basis: Basis
    grade: Grade
    why: str = ""
    quote: str = ""
    missing: str = Field("", description="code that was not shown and that decides")

    @property
    def word(self) -> str:
        """The grade in words."""
        return {"met": "met", "not_met": "not met", "cannot_tell": "cannot tell"}[self.grade]


class OutputVerdict(Frozen):
    """The verdict on a patch for one linked issue, at the maintainers' threshold."""

    issue: int | None = Field(description="None: the pull request's own description")
    label: OutputLabel
    bounced: bool
    p_bounce: int | None
    p_objects: int | None = None
    line: Literal["label", "p_bounce"] = Field("label", description="which of the two decided")
    explanation: str
    covered: tuple[str, ...]
    missing: tuple[str, ...]
    regressions: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = Field((), description="behaviour that changes without the description saying so")
    remarks: tuple[str, ...] = ()
    demands: tuple[GradedDemand, ...] = Field((), description="only with `prompt: rubric`")
    p_form: int | None = Field(None, description="chance in percent that only an exact form is missed")

    @property
    def open_wording(self) -> bool:
        """True if the patch is right as far as stated, and the issue does not give an exact form."""
        is_right = self.label == OutputLabel.CORRECT_AND_PRECISE
        return is_right and not self.bounced and self.p_form is not None and self.p_form >= OPEN_FORM


class Unjudged(Frozen):
    """A linked issue without a verdict, and the reason."""

    issue: str = "the patch"
    why: str
    due: bool = Field(False, description="a verdict was due, and an error prevented it")


class ExecutedTest(Frozen):
    """The outcomes of an issue's stored reproducing test on base and head."""

    issue: int
    test: str
    command: str
    base: str
    head: str
    solved: bool | None = Field(
        description="True: fails on base and passes on head. False: fails on both. None: inconclusive"
    )
    output: str = ""


class Twin(Frozen):
    """An earlier open pull request for the same issue, or with the same change."""

    number: int
    closes: tuple[int, ...] = Field((), description="issues that both close")
    share: int = Field(0, description="of the newer one's changed lines, percent; 0: too few are the same")


class PullContent(Frozen):
    """The lines that a pull request changes and the issues that it closes, to compare later ones with it."""

    closes: tuple[int, ...] = Field((), description="issues of the same repository")
    lines: tuple[str, ...] = Field((), description="hashes of its changed lines")
    twins: tuple[Twin, ...] = ()


class Rival(Frozen):
    """Another open pull request for the same issue, and the outcome of the issue's stored test there."""

    issue: int
    pull: int
    head: str = Field("", description="as in ExecutedTest; empty if the test was not run there")


#: The outcome of a new test on one side of the change.
TestState = Literal["passed", "failed", "cannot be loaded", "skipped", "flaky", "not run"]


class NewTest(Frozen):
    """A test that a pull request adds or changes, run without the rest of the change and with it."""

    test: str = Field(description="``tests/test_a.py::test_b``, or a file if its tests have no names here")
    before: TestState = "not run"
    after: TestState = "not run"
    output: str = Field("", description="of the run with the change if it fails, else without")


class NewTests(Frozen):
    """The tests that a pull request adds or changes. No files: there are none."""

    files: tuple[str, ...] = ()
    tests: tuple[NewTest, ...] = ()
    omitted: int = Field(0, description="tests beyond the limit, which were not run")
    why: str = Field("", description="why nothing was run")

    @property
    def executed(self) -> bool:
        """True if a test was run with the change."""
        return any(test.after != "not run" for test in self.tests)

    @property
    def failing(self) -> int:
        """The number of tests that fail with the change."""
        return sum(test.after == "failed" for test in self.tests)

    @property
    def telling(self) -> int:
        """The number of tests that show the change: they fail without it and pass with it."""
        return sum(test.before in ("failed", "cannot be loaded") and test.after == "passed" for test in self.tests)


class VerifyRecord(BouncerRecord):
    """A verdict on a patch, for each issue that it says it solves."""

    verdicts: tuple[OutputVerdict, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    runs: tuple[ExecutedTest, ...] = ()
    rivals: tuple[Rival, ...] = ()
    new_tests: NewTests | None = Field(None, description="None if `verify.tests` is not set")
    note: str = Field("", description="the sentences that the check begins with")
    exempt: tuple[str, ...] = Field((), description="files that the change itself exempted from judgement")
    replies: tuple[ModelReply, ...] = ()
    tool_calls: int = 0
    context: CodeContext = CodeContext()
    omitted: tuple[str, ...] = Field((), description="changed files that were named and not judged")
    issue_revisions: dict[str, str] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("issue_revisions", "judged"),
        description="issue number -> its revision, and the base branch; ``judged`` in rows of version 0.2",
    )
    failure: str = Field("", description="why the model gave no answer")
    content: PullContent | None = Field(None, description="None if it was not compared with other pull requests")
