"""The record of an explanation."""

from __future__ import annotations

from pydantic import Field

from bot.core.actions import Record


class WhyRecord(Record):
    """An explanation that was asked for."""

    grounded: bool = Field(False, description="all that it quotes stands in what the model was given")
    reply: str = ""
    prompt_hash: str = ""
