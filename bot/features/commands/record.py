"""The record of the commands in a comment, and the pause that they leave."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from bot.core.actions import Decision, Record


class CommandsRecord(Record):
    """Commands that were carried out."""

    done: tuple[str, ...] = ()
    by: str = Field("", description="login")
    comment: int | None = Field(None, description="id of the comment; None if it was no comment")
    at: float = Field(0.0, description="when it was written, seconds since 1970")


def is_paused(past: Sequence[Decision]) -> bool:
    """Return True if the newest of ``pause`` and ``resume`` was ``pause``; deliveries arrive in any order."""
    records = sorted((decision.record_of(CommandsRecord) for decision in past), key=lambda record: record.at)
    words = [word for record in records for word in record.done]
    return next((word == "pause" for word in reversed(words) if word in ("pause", "resume")), False)
