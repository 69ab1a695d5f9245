"""The record of runs of a stored test on the default branch."""

from __future__ import annotations

from pydantic import Field

from bot.core.actions import Record
from bot.features.reproduce.record import BuildState


class WatchRecord(Record):
    """The state of an issue's stored test on the default branch, or the result of a bisection."""

    state: BuildState | None = Field(None, description="None if nothing was run")
    sha: str = Field("", description="the head of the default branch with that state")
    change: tuple[str, ...] = Field((), description="commits one of which changed the state, oldest first")
    builds: int = 0
