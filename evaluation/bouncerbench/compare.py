"""Two runs on the same tasks: what flipped, and whether the difference is more than chance (IV.E)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bot.errors import OperatorError
from evaluation import statistics
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.metrics import Figures, pair
from evaluation.bouncerbench.tasks import InputTask, OutputTask
from evaluation.compare import paired
from evaluation.statistics import Array, Counts, Estimate


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
        """Counts, the test, and every flip."""
        return {
            "tasks": self.tasks,
            "both_right": self.both_right,
            "only_first_right": self.only_first_right,
            "only_second_right": self.only_second_right,
            "both_wrong": self.both_wrong,
            "p_value": self.p_value,
            "differences": {name: [each.value, each.low, each.high] for name, each in self.differences.items()},
            "flips": [asdict(flip) for flip in self.flips],
        }

    @property
    def corrections(self) -> list[Flip]:
        return [flip for flip in self.flips if flip.corrected]

    @property
    def mistakes(self) -> list[Flip]:
        return [flip for flip in self.flips if not flip.corrected]


def used_tools(flips: Sequence[Flip]) -> int | None:
    """How many of these came with at least one tool call; None where calls were not recorded."""
    if any(flip.tool_calls is None for flip in flips):
        return None
    return sum((flip.tool_calls or 0) > 0 for flip in flips)


def compare(
    tasks: Sequence[InputTask | OutputTask],
    first: Mapping[str, Answer],
    second: Mapping[str, Answer],
    *,
    seed: int = 0,
    replicates: int = 2000,
) -> Comparison:
    """Flips, McNemar's test on who is right, and differences of every figure with paired bootstrap intervals.

    Raises OperatorError where the runs share no task that both answered.
    """
    shared = _both_answered(tasks, first, second)
    if not shared:
        raise OperatorError("the two runs share no task that both answered and whose truth is known")
    found = paired(
        *(
            {task.instance_id: answers[task.instance_id].bounce == task.bounce for task in shared}
            for answers in (first, second)
        )
    )
    calls = [second[task.instance_id].tool_calls for task in shared]
    return Comparison(
        tasks=len(shared),
        both_right=found.both,
        only_first_right=found.only_first,
        only_second_right=found.only_second,
        both_wrong=found.neither,
        p_value=found.p_value,
        differences=_differences(shared, first, second, seed, replicates),
        flips=tuple(_flips(shared, first, second)),
        with_tools=None if None in calls else sum((each or 0) > 0 for each in calls),
    )


def _both_answered(
    tasks: Sequence[InputTask | OutputTask], first: Mapping[str, Answer], second: Mapping[str, Answer]
) -> list[InputTask | OutputTask]:
    return [
        task
        for task in tasks
        if task.bounce is not None
        and all(
            task.instance_id in answers and answers[task.instance_id].bounce is not None
            for answers in (first, second)
        )
    ]


def _flips(
    tasks: Sequence[InputTask | OutputTask], first: Mapping[str, Answer], second: Mapping[str, Answer]
) -> list[Flip]:
    return [
        Flip(task.instance_id, bool(now.bounce), now.bounce == task.bounce, now.tool_calls)
        for task in tasks
        for now in (second[task.instance_id],)
        if now.bounce != first[task.instance_id].bounce
    ]


def _differences(
    tasks: Sequence[InputTask | OutputTask],
    first: Mapping[str, Answer],
    second: Mapping[str, Answer],
    seed: int,
    replicates: int,
) -> dict[str, Estimate]:
    figures = [Figures(pair(tasks, answers, "exclude")[0]) for answers in (first, second)]

    def differences(draws: Counts) -> dict[str, Array]:
        before, after = (each(draws) for each in figures)
        return {name: np.asarray(after[name] - before[name]) for name in before if name in after}

    return statistics.bootstrap(differences, len(tasks), seed=seed, replicates=replicates)
