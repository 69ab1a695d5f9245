"""The record of how people reacted to a post."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.calibration.fates import KnownFate
from bot.core.actions import Record
from bot.core.frozen import Frozen

#: addressed: the line was changed or the thread resolved; dismissed: somebody said no; ignored: neither.
Outcome = Literal["addressed", "dismissed", "ignored"]


class Signal(Frozen):
    """One sign of what somebody made of one thing that was posted."""

    key: str = Field(description="what it is about: owner/name#number and, for a finding, its fingerprint")
    category: str = Field(description="a review category, or ``bounce``")
    outcome: Outcome
    source: str = Field(description="reaction, command, resolved, deleted, changed, not_planned or closed")
    by: str = Field("", description="login, where somebody did it")


class FeedbackRecord(Record):
    """What people made of what was posted, and how judged subjects ended."""

    signals: tuple[Signal, ...] = ()
    fates: tuple[KnownFate, ...] = ()
