"""The record of the commands in a comment."""

from __future__ import annotations

from pydantic import Field

from bot.core.actions import Record


class CommandsRecord(Record):
    """Commands that were carried out."""

    done: tuple[str, ...] = ()
    by: str = Field("", description="login")
    comment: int | None = Field(None, description="id of the comment; None if it was no comment")
    at: float = Field(0.0, description="when it was written, seconds since 1970")
