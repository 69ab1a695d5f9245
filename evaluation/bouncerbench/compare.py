"""Two runs on the same tasks: what flipped, and whether the difference is more than chance (IV.E)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bot.core.errors import OperatorError
from bot.core.text import amount
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.metrics import FIGURES, Figures, Scored, Tasks, as_cell, pair, title_of
from evaluation.report.page import Section, Table, percentage
from evaluation.statistics import USUAL, Estimate, Resampling, bootstrap, paired, paired_difference

#: Of the flips of a comparison, how many are listed.
LISTED = 40


@dataclass(frozen=True)
class Flip:
    """A task on which the second run decided otherwise than the first."""

    instance_id: str
    to_bounce: bool
    corrected: bool
    tool_calls: int | None


@dataclass(frozen=True)
class Comparison:
    """The second run against the first, over the tasks that both answered and whose truth is known."""

    tasks: int
    both_right: int
    only_first_right: int
    only_second_right: int
    both_wrong: int
    p_value: float
    differences: dict[str, Estimate]
    flips: tuple[Flip, ...]
    with_tools: int | None

    def as_json(self) -> dict[str, Any]:
        plain = {name: value for name, value in vars(self).items() if name != "with_tools"}
        differences = {name: difference.as_json() for name, difference in self.differences.items()}
        return {**plain, "differences": differences, "flips": [asdict(flip) for flip in self.flips]}


def used_tools(flips: Sequence[Flip]) -> int | None:
    """How many of these came with at least one tool call; None if calls were not recorded."""
    if any(flip.tool_calls is None for flip in flips):
        return None
    return sum((flip.tool_calls or 0) > 0 for flip in flips)


def compare(
    tasks: Tasks, first: Mapping[str, Answer], second: Mapping[str, Answer], how: Resampling = USUAL
) -> Comparison:
    """Flips, McNemar's test on who is right, and differences of every figure with paired bootstrap intervals.

    Raises OperatorError if the runs share no task that both answered.
    """
    common = [
        task
        for task in tasks
        if task.bounce is not None
        and all(
            task.instance_id in answers and answers[task.instance_id].bounce is not None
            for answers in (first, second)
        )
    ]
    if not common:
        raise OperatorError("the two runs share no task that both answered and whose truth is known")
    pairs = paired(
        *(
            {task.instance_id: answers[task.instance_id].bounce == task.bounce for task in common}
            for answers in (first, second)
        )
    )
    figures = (Figures(pair(common, answers, "exclude")[0]) for answers in (first, second))
    calls = [second[task.instance_id].tool_calls for task in common]
    return Comparison(
        tasks=len(common),
        both_right=pairs.both,
        only_first_right=pairs.only_first,
        only_second_right=pairs.only_second,
        both_wrong=pairs.neither,
        p_value=pairs.p_value,
        differences=bootstrap(paired_difference(*figures), len(common), how),
        flips=tuple(
            Flip(task.instance_id, bool(now.bounce), now.bounce == task.bounce, now.tool_calls)
            for task in common
            if (now := second[task.instance_id]).bounce != first[task.instance_id].bounce
        ),
        with_tools=None if None in calls else sum((count or 0) > 0 for count in calls),
    )


def comparison_section(before: str, second: Scored, comparison: Comparison) -> Section:
    """Return the flips from the first run to the second, and the test for a difference."""
    total = len(comparison.flips)
    odds = (
        f"Against {before}: {amount(total, 'flip')} on {comparison.tasks:,} tasks that both answered. "
        f"Both right on {comparison.both_right:,}, both wrong on {comparison.both_wrong:,}, only {before} "
        f"right on {comparison.only_first_right:,}, only {second.name} right on {comparison.only_second_right:,}. "
        f"McNemar's exact test: p = {comparison.p_value:.3g}."
    )
    kinds: dict[str, Sequence[Flip]] = {
        "corrected": [flip for flip in comparison.flips if flip.corrected],
        "now wrong": [flip for flip in comparison.flips if not flip.corrected],
        "all flips": comparison.flips,
    }
    note = "Tool calls of the second run; a dash if they were not recorded."
    if comparison.with_tools is not None:
        note += f" Over all tasks: {comparison.with_tools} with at least one call."
    flips = Table(
        ("flips", "number", "of all flips %", "with tool calls"),
        tuple(
            (name, len(flips), percentage(len(flips) / total if total else None), used_tools(flips))
            for name, flips in kinds.items()
        ),
        note=note,
    )
    differences = Table(
        ("figure", f"{second.name} minus {before}"),
        tuple(
            (FIGURES[figure][0], as_cell(figure, estimate))
            for figure, estimate in comparison.differences.items()
            if figure in FIGURES
        ),
        note="Paired bootstrap over the same tasks: an interval without 0 is a difference at 95 %.",
    )
    title = f"{title_of(second.benchmark)}: {second.name} against {before}"
    tables = (flips, differences, *_listed(comparison.flips))
    return Section(title, (odds,), tables, data={"comparison": comparison.as_json()})


def _listed(flips: Sequence[Flip]) -> Iterator[Table]:
    rows = tuple(
        (flip.instance_id, "bounce" if flip.to_bounce else "pass", "corrected" if flip.corrected else "now wrong")
        for flip in flips[:LISTED]
    )
    if rows:
        more = len(flips) - len(rows)
        yield Table(
            ("instance", "now", ""),
            rows,
            title=f"What flipped, the first of {len(flips)}" if more else "What flipped",
            note=f"{more} more." if more else "",
            folded=True,
        )
