"""All figures of one set of recorded outcomes, with bootstrap intervals over bugs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluation.brt.metrics import (
    acc_at_n,
    brt_share,
    found_at_n,
    suggestion_precision,
    suggestion_recall,
    wasted_at_n,
    wef_at_n,
)
from evaluation.brt.rankings import Ranking
from evaluation.statistics import Array, Counts, Estimate, bootstrap, ratio

#: How many suggestions a person looks at (LIBRO, section V.C).
NS = (1, 3, 5)


class RankingScores:
    """acc@n, wef@n and what they are made of."""

    def __init__(
        self,
        rankings: Sequence[Ranking],
        generated: Sequence[Ranking] | None = None,
        *,
        seed: int = 0,
        replicates: int = 2000,
    ) -> None:
        """``generated``: the rankings before selection left bugs out; without it there is no recall."""
        self.bugs = len(rankings)
        self.reproducible = sum(each.reproducible for each in rankings)
        self.acc = {n: acc_at_n(rankings, n) for n in NS}
        self.wef = {n: wef_at_n(rankings, n) for n in NS}
        self.precision = suggestion_precision(rankings)
        self.recall = None if generated is None else suggestion_recall(rankings, generated)
        self.intervals = _intervals(rankings, seed, replicates)

    def as_json(self) -> dict[str, Any]:
        """Counts as LIBRO prints them, and shares of bugs with their 95 % intervals."""
        return {
            "bugs": self.bugs,
            "reproducible": self.reproducible,
            **{f"acc@{n}": count for n, count in self.acc.items()},
            **{f"wef@{n}": count for n, count in self.wef.items()},
            "suggestion_precision": self.precision,
            "suggestion_recall": self.recall,
            "per_bug": {name: _plain(estimate) for name, estimate in self.intervals.items()},
        }


def _intervals(rankings: Sequence[Ranking], seed: int, replicates: int) -> dict[str, Estimate]:
    """Means over bugs: the share found (acc), the tests wasted (wef), the share with any right test."""
    columns: dict[str, Any] = {"suggestion_precision": [each.reproducible for each in rankings]}
    columns |= {f"acc@{n}": found_at_n(rankings, n) for n in NS}
    columns |= {f"wef@{n}": wasted_at_n(rankings, n) for n in NS}
    return means(columns, len(rankings), seed=seed, replicates=replicates)


def means(
    columns: Mapping[str, Sequence[float]], n: int, *, seed: int = 0, replicates: int = 2000
) -> dict[str, Estimate]:
    """The mean of each column over ``n`` tasks with its bootstrap interval."""
    arrays = {name: np.asarray(values, dtype=float) for name, values in columns.items()}

    def statistics(draws: Counts) -> dict[str, Array]:
        return {name: ratio(values[draws].sum(axis=1), draws.shape[1]) for name, values in arrays.items()}

    return bootstrap(statistics, n, seed=seed, replicates=replicates)


class RunScores:
    """%BRT over instances of a run, errors and missing ones counted as not reproduced."""

    def __init__(
        self, reproduced: Mapping[str, bool], failed: int, *, seed: int = 0, replicates: int = 2000
    ) -> None:
        self.instances = len(reproduced)
        self.reproduced = sum(reproduced.values())
        self.failed = failed
        self.share = brt_share(reproduced)
        columns = {"brt": [float(value) for value in reproduced.values()]}
        self.interval = means(columns, len(reproduced), seed=seed, replicates=replicates)["brt"]

    def as_json(self) -> dict[str, Any]:
        """Shares from 0 to 1; ``brt`` is %BRT as a fraction."""
        return {
            "instances": self.instances,
            "reproduced": self.reproduced,
            "without_answer": self.failed,
            "brt": self.share,
            "brt_interval": [self.interval.low, self.interval.high],
        }


def _plain(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
