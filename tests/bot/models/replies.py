"""A small reply type for these tests."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen
from bot.models.protocol import Prompt


class Verdict(Frozen):
    explanation: str = Field(description="why")
    open_points: tuple[str, ...] = Field((), max_length=3)
    p_bounce: int | None = Field(None, ge=0, le=100)
    label: Literal["CLEAR", "VAGUE"]


CLEAR = Verdict(explanation="Says what happens.", open_points=(), p_bounce=5, label="CLEAR")
PROMPT = Prompt(purpose="triage", system="You judge.", user="It crashes.", subject="o/r#1")
