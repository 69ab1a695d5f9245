"""The record of a verdict on an issue."""

from __future__ import annotations

from pydantic import Field

from bot.features.shared.labels import BouncerRecord, ModelReply


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
