"""What a data set is made of: the averages of CR-Bench's Table 3 and the shares of its figure 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from pydantic import Field

from bot.core.frozen import Frozen
from evaluation.crbench.build import tally
from evaluation.crbench.task import ReviewTask


class Averages(Frozen):
    """Means over the kept tasks; None where nothing is known to average."""

    tasks: int
    lines_fixed: float | None = Field(description="lines that the fix removes and adds")
    comments: float | None = Field(description="comments that the pull request got, over those where it is known")
    comments_known: int = Field(description="for how many tasks that is")
    description_length: float | None = Field(description="characters of the pull request's description")


class Statistics(Frozen):
    """A data set at a glance."""

    averages: Averages
    discarded: dict[str, int] = Field(description="kind of reason -> instances, most frequent first")
    categories: dict[str, int]
    impacts: dict[str, int]
    severities: dict[str, int]


#: CR-Bench, Table 3, and the sizes of section 7.1.
PAPER = {
    "CR-Bench": Averages(
        tasks=584, lines_fixed=10.28, comments=41.03, comments_known=584, description_length=906.63
    ),
    "CR-Bench-verified": Averages(
        tasks=174, lines_fixed=8.69, comments=35.83, comments_known=174, description_length=893.59
    ),
}


def statistics(built: Iterable[ReviewTask]) -> Statistics:
    """The averages of the kept tasks, and why the others were discarded."""
    every = list(built)
    kept = [task for task in every if task.kept]
    reasons = tally(every)
    del reasons["kept"]
    bugs = [bug for task in kept for bug in task.bugs]
    return Statistics(
        averages=averages(kept),
        discarded=dict(reasons.most_common()),
        categories=_shares(bug.category for bug in bugs),
        impacts=_shares(bug.impact for bug in bugs),
        severities=_shares(bug.severity for bug in bugs),
    )


def averages(kept: Sequence[ReviewTask]) -> Averages:
    """The row of Table 3."""
    pulls = [task.pull for task in kept if task.pull is not None]
    comments = [pull.comments for pull in pulls if pull.comments is not None]
    return Averages(
        tasks=len(kept),
        lines_fixed=_mean([task.fixed_lines for task in kept]),
        comments=_mean(comments),
        comments_known=len(comments),
        description_length=_mean([len(pull.body) for pull in pulls]),
    )


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _shares(values: Iterable[StrEnum | None]) -> dict[str, int]:
    return dict(Counter(value.value for value in values if value is not None).most_common())
