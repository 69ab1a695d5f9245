"""The record of an evaluation by the gate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.actions import Record


class GateRecord(Record):
    """The issues that a pull request links, and what became of its draft state."""

    issues: tuple[int, ...] = Field((), description="linked issues of the same repository")
    elsewhere: tuple[str, ...] = Field((), description="``owner/name#12``: linked issues of other repositories")
    ready: bool = False
    draft: Literal["", "converted", "returned"] = Field(
        "", description="converted: it is a draft because of the gate; returned: it was one, and is not any more"
    )

    @property
    def claims(self) -> tuple[int | str, ...]:
        """All linked issues."""
        return (*self.issues, *self.elsewhere)
