"""The record of an issue that is ready for work, or not any more."""

from __future__ import annotations

from pydantic import Field

from bot.core.actions import Record


class ReadyRecord(Record):
    """The facts on which label and brief rest."""

    ready: bool = False
    accepted_by: str = Field("", description="login")
    request: str = Field("", description="what is asked for, in the model's words")
    sha: str = Field("", description="the commit at which the code was looked at")
    files: tuple[str, ...] = ()
    test: str = Field("", description="the reproducing test, as path and name; empty if reproduction is off")
