"""Two systems on the same tasks: where each alone is right, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.statistics import mcnemar


@dataclass(frozen=True)
class Paired:
    """Tasks by who is right on them."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def tasks(self) -> int:
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def p_value(self) -> float:
        """McNemar's exact two-sided test that both err equally often."""
        return mcnemar(self.only_first, self.only_second)


def paired(first: Mapping[str, bool], second: Mapping[str, bool]) -> Paired:
    """Both systems over the tasks that both tried: task -> whether it was right."""
    outcomes = [(first[task], second[task]) for task in first if task in second]
    return Paired(*(outcomes.count(each) for each in ((True, True), (True, False), (False, True), (False, False))))
