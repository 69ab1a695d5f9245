"""The record of the comparison of a new issue with earlier ones."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen, Lenient
from bot.features.shared.history import SuggestionRecord
from bot.features.shared.labels import Percent

Relation = Literal["same cause", "same symptom", "different"]


class Comparison(Lenient):
    """A new issue beside an earlier one."""

    number: int = Field(description="the earlier issue's number")
    both: str = Field(description="completes the sentence 'both ...': what the two have in common, in a few words")
    relation: Relation
    p_same_cause: Percent = Field(description="chance in percent that one fix or one answer settles both")


class CrossRun(Frozen):
    """The drafted test of one issue, run on the commit where the other issue's test was drafted."""

    issue: int
    sha: str
    state: str = Field(description="a ``BuildState``")


class DuplicatesRecord(SuggestionRecord):
    """The comparisons, and the suggestion that they led to."""

    candidates: tuple[int, ...] = Field((), description="the issues that the model was shown")
    comparisons: tuple[Comparison, ...] = ()
    root: int | None = Field(None, description="the issue that was named, or would have been")
    p_same_cause: int | None = Field(None, description="of that issue, percent")
    runs: tuple[CrossRun, ...] = Field((), description="once both issues have a drafted test")
    same_failure: str = Field("", description="how both tests fail; empty if they do not fail in the same way")
    prompt_hash: str = ""
