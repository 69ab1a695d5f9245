"""A changed setting beside the baseline: %BRT of both, baseline consistency, McNemar. Pure.

Used by the layers Understand, Apply and Analyze (sections 3.2 to 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from bot.core.frozen import Frozen
from evaluation.brt.metrics import baseline_consistency, brt_share
from evaluation.statistics import mcnemar


class Comparison(Frozen):
    """Two settings, bug by bug."""

    bugs: int = Field(description="bugs that both settings tried; every figure is over these")
    only_one: int = Field(description="bugs that only one of the settings tried; left out, and shown")
    baseline: float | None = Field(description="%BRT of the baseline, 0 to 1")
    altered: float | None = Field(description="%BRT of the changed setting, 0 to 1")
    consistency: float | None = Field(description="baseline consistency rate, 0 to 1")
    lost: int = Field(description="reproduced under the baseline alone")
    gained: int = Field(description="reproduced under the changed setting alone")
    p: float = Field(description="exact two-sided p-value of McNemar's test")

    @property
    def change(self) -> float | None:
        """Relative change of %BRT: -0.6 = it fell by 60 %; None where the baseline is 0 or not defined."""
        if not self.baseline or self.altered is None:
            return None
        return self.altered / self.baseline - 1

    def as_json(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json"), "change": self.change}


def compare(baseline: Mapping[str, bool], altered: Mapping[str, bool]) -> Comparison:
    """Compare two settings over the bugs that both tried."""
    common = sorted(set(baseline) & set(altered))
    before = {bug: baseline[bug] for bug in common}
    after = {bug: altered[bug] for bug in common}
    lost = sum(before[bug] and not after[bug] for bug in common)
    gained = sum(after[bug] and not before[bug] for bug in common)
    return Comparison(
        bugs=len(common),
        only_one=len(set(baseline) ^ set(altered)),
        baseline=brt_share(before),
        altered=brt_share(after),
        consistency=baseline_consistency(before, after),
        lost=lost,
        gained=gained,
        p=mcnemar(lost, gained),
    )
