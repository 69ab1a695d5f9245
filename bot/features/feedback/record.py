"""The record of how people reacted to a post."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.actions import Record
from bot.core.frozen import Frozen
from bot.core.subjects import KnownFate

#: addressed: the line was changed or the thread resolved; dismissed: a person rejected it; ignored: neither.
Outcome = Literal["addressed", "dismissed", "ignored"]


class Signal(Frozen):
    """A person's reaction to one post."""

    key: str = Field(description="owner/name#number, and for a finding its fingerprint")
    category: str = Field(description="a review category, or ``bounce``")
    outcome: Outcome
    source: str = Field(description="reaction, command, resolved, deleted, edited, changed, not_planned or closed")
    by: str = Field("", description="login of the person, if there was one")


class FeedbackRecord(Record):
    """Reactions to posts, and outcomes of judged subjects."""

    signals: tuple[Signal, ...] = ()
    fates: tuple[KnownFate, ...] = ()
