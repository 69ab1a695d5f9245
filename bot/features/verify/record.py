"""The record of a verdict on a patch."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field

from bot.code.page import CodeContext
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

    issue: int
    label: OutputLabel
    bounced: bool
    p_bounce: int | None
    p_objects: int | None = None
    line: Literal["label", "p_bounce"] = Field("label", description="which of the two decided")
    explanation: str
    covered: tuple[str, ...]
    missing: tuple[str, ...]
    regressions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    demands: tuple[GradedDemand, ...] = Field((), description="only with `prompt: rubric`")
    p_form: int | None = Field(None, description="chance in percent that only an exact form is missed")

    @property
    def open_wording(self) -> bool:
        """True if the patch is right as far as stated, and the issue does not give an exact form."""
        return not self.bounced and self.p_form is not None and self.p_form >= OPEN_FORM


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

    @property
    def is_one(self) -> bool:
        """True if it is worth naming."""
        return bool(self.closes or self.share)


class PullContent(Frozen):
    """The lines that a pull request changes and the issues that it closes, to compare later ones with it."""

    closes: tuple[int, ...] = Field((), description="issues of the same repository")
    lines: tuple[str, ...] = Field((), description="hashes of its changed lines")
    twins: tuple[Twin, ...] = ()


class VerifyRecord(BouncerRecord):
    """A verdict on a patch, for each issue that it says it solves."""

    verdicts: tuple[OutputVerdict, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    runs: tuple[ExecutedTest, ...] = ()
    replies: tuple[ModelReply, ...] = ()
    tool_calls: int = 0
    context: CodeContext = CodeContext()
    omitted: tuple[str, ...] = Field((), description="changed files that were named and not judged")
    issue_revisions: dict[str, str] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("issue_revisions", "judged"),
        description="issue number -> its revision; ``judged`` in rows of version 0.2",
    )
    failure: str = Field("", description="why the model gave no answer")
    content: PullContent | None = Field(None, description="None if it was not compared with other pull requests")
