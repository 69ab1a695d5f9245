"""The record of a verdict on an issue."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen
from bot.core.text import show
from bot.features.shared.labels import BouncerRecord, ModelReply

_SENTENCES = {
    "file": "The repository has no file {}.",
    "name": "No file of the repository contains the name {}.",
    "option": "No file of the repository contains the option {}.",
    "version": "No tag of the repository is named after version {}.",
}


class Claim(Frozen):
    """Something that an issue names and the repository does not have."""

    type: Literal["file", "name", "option", "version"]
    text: str

    @property
    def sentence(self) -> str:
        """The claim in words."""
        return _SENTENCES[self.type].format(show(self.text))


class TriageRecord(BouncerRecord, ModelReply):
    """A verdict on an issue."""

    label: str = ""
    explanation: str = ""
    questions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    language: str = Field("", description="what the author is answered in")
    marked_by: str = Field("", description="the maintainer who asked for details by setting the label")
    answers: tuple[int, ...] = Field((), description="ids of the comments that were read")
    reopened: bool = False
    request: str = Field("", description="what is asked for, only with `triage.brief`")
    sha: str = Field("", description="the commit at which the code was looked at")
    files: tuple[str, ...] = Field((), description="files of that commit that the model read or named")
    absent: tuple[Claim, ...] = Field((), description="what the issue names and that commit does not have")
