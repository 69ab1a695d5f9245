"""The record of a step towards closing an unanswered issue."""

from __future__ import annotations

from pydantic import Field

from bot.core.actions import Record


class ClosingRecord(Record):
    """A warning, a closing, or an answer that took either back."""

    about: str = Field("", description="tells the comments of several warnings apart")
    taken_up_by: str = Field("", description="login of a person whose comment was deleted before the time was up")
