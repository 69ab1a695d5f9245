"""What stands between an operator and a working Bouncer: one diagnosis a line, with its remedy."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen


class Diagnosis(Frozen):
    """What was looked at, and how it stands."""

    subject: str
    state: Literal["ok", "note", "fail"] = Field(description="note: works, but worth knowing")
    message: str
    remedy: str = Field("", description="what to do about it")

    def __str__(self) -> str:
        """One line, whatever the message holds."""
        text = f"{self.message}; {self.remedy}" if self.remedy else self.message
        return f"{self.state:<4}  {self.subject}: {' '.join(text.split())}"


def ok(subject: str, message: str) -> Diagnosis:
    return Diagnosis(subject=subject, state="ok", message=message)


def note(subject: str, message: str, remedy: str = "") -> Diagnosis:
    return Diagnosis(subject=subject, state="note", message=message, remedy=remedy)


def fail(subject: str, message: str, remedy: str = "") -> Diagnosis:
    return Diagnosis(subject=subject, state="fail", message=message, remedy=remedy)
