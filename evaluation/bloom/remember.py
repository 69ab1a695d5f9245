"""Remember: does a solution reproduce its own results under identical conditions? (section 3.1) Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.brt.metrics import brt_share
from evaluation.brt.scores import means
from evaluation.statistics import Estimate


class Remembered:
    """%BRT of one run, and how far repeated runs agree bug by bug."""

    def __init__(self, runs: Sequence[Mapping[str, bool]], *, seed: int = 0, replicates: int = 2000) -> None:
        """``runs``: for each run whether each bug was reproduced; the first is the one that is reported.

        Raises ValueError where there is no run.
        """
        if not runs:
            raise ValueError("no run to remember")
        self.bugs = len(runs[0])
        self.share = brt_share(runs[0])
        values = [float(value) for value in runs[0].values()]
        self.interval: Estimate = means({"brt": values}, len(values), seed=seed, replicates=replicates)["brt"]
        self.repeats = tuple(brt_share(run) for run in runs[1:])
        self.agreement = agreement(runs)

    def as_json(self) -> dict[str, Any]:
        """Shares from 0 to 1."""
        return {
            "bugs": self.bugs,
            "brt": self.share,
            "brt_interval": [self.interval.low, self.interval.high],
            "brt_of_repeats": list(self.repeats),
            "agreement": self.agreement,
        }


def agreement(runs: Sequence[Mapping[str, bool]]) -> float | None:
    """Of the bugs that all runs tried, the share on which all came to the same; None with fewer than two runs."""
    common = set(runs[0]).intersection(*runs[1:]) if len(runs) > 1 else set()
    if not common:
        return None
    return sum(len({run[bug] for run in runs}) == 1 for bug in common) / len(common)
