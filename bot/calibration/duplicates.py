"""Results of calibrating the suggestions of duplicates: the threshold and what it rests on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from bot.calibration.risk import RatedSuggestion, SuggestionPromise, suggestion_promise
from bot.core.frozen import Frozen


class PastSuggestion(Frozen):
    """A suggestion that would have been made on a past issue."""

    number: int
    title: str
    root: int = Field(description="the issue that would have been named")
    p: int = Field(description="percent")
    repeats: int | None = Field(description="the issue that it was closed as a duplicate of; None: it was not")

    @property
    def right(self) -> bool:
        """True if the named issue is the one that maintainers named."""
        return self.root == self.repeats


class DuplicateFindings(Frozen):
    """The suggestions on a repository's closed issues."""

    issues: int = Field(description="closed issues that were compared with earlier ones")
    duplicates: int = Field(description="of these, closed as a duplicate of a named issue")
    suggestions: tuple[PastSuggestion, ...]
    promise: SuggestionPromise

    @property
    def title(self) -> str:
        return f"Duplicates: {self.issues} closed issues, {self.duplicates} of them duplicates"

    @property
    def settings(self) -> str:
        above = self.promise.suggest_above
        if above is None:
            return "duplicates:\n  mode: shadow"
        return f"duplicates:\n  mode: comment\n  suggest_above: {above}"

    @property
    def mistakes(self) -> tuple[PastSuggestion, ...]:
        """The wrong suggestions at the threshold, or all without one, most confident first."""
        above = self.promise.suggest_above or 0
        wrong = [row for row in self.suggestions if not row.right and row.p >= above]
        return tuple(sorted(wrong, key=lambda row: (-row.p, row.number)))

    def sentences(self) -> list[str]:
        promise = self.promise
        share = f"{100 * promise.harm:g} %"
        if promise.suggest_above is None:
            why = (
                f"there are {promise.suggestions}, and it takes at least {promise.needed}"
                if promise.suggestions < promise.needed
                else f"{promise.wrong} of {promise.suggestions} are wrong"
            )
            return [
                f"No promise can be given that at most {share} of the suggestions are wrong: {why}.",
                "Stay in shadow mode: suggestions are recorded, nothing is written; then calibrate again.",
            ]
        right = sum(row.right and row.p >= promise.suggest_above for row in self.suggestions)
        return [
            f"Promise: at or above {promise.suggest_above} %, at most {share} of the suggestions are wrong (95 % "
            "sure, as long as the future resembles this past).",
            f"Here {promise.wrong} of {promise.suggestions} suggestions are wrong (at most "
            f"{100 * promise.bound:.1f} % in truth), and {right} of {self.duplicates} duplicates are named.",
            f"Such a promise takes at least {promise.needed} suggestions.",
        ]


def draw_threshold(
    issues: int, duplicates: int, suggestions: Sequence[PastSuggestion], harm: float
) -> DuplicateFindings:
    """Find the threshold for a share of wrong suggestions. Raises ValueError if it is not between 0 and 1."""
    return DuplicateFindings(
        issues=issues,
        duplicates=duplicates,
        suggestions=tuple(suggestions),
        promise=suggestion_promise([RatedSuggestion(p=row.p, right=row.right) for row in suggestions], harm),
    )
