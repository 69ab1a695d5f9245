"""Whether a promise still holds, asked as often as one likes: a test that may be looked at every day. Pure.

A bet against the promise: with every good subject that is seen, wealth is multiplied by how much better some
larger harm explains what happened than the promised one does, averaged over larger harms. While the promise
holds, wealth ever reaches ``1 / delta`` with probability at most ``delta`` (Ville's inequality), however often it
is looked at. Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting"; the
mixture is over an even grid of alternatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pydantic import Field

from bot.calibration.risk import DELTA
from bot.core.frozen import Frozen

_ALTERNATIVES = 64


class PromiseRecord(Frozen):
    """What the good subjects that were seen since the line was drawn say about the promise."""

    seen: int = Field(description="good subjects")
    harmed: int = Field(description="good subjects that were bounced, or would have been")
    evidence: float = Field(description="against the promise: the largest wealth so far; 1 = none")
    broken: bool


def held(harms: Iterable[bool], harm: float, delta: float = DELTA) -> PromiseRecord:
    """Look at good subjects in the order in which their fate became known; True = it was bounced.

    Raises ValueError for a harm or delta that is no share.
    """
    if not (0 < harm < 1 and 0 < delta < 1):
        raise ValueError(f"harm and delta must lie between 0 and 1, not {harm} and {delta}")
    rates = [harm + (1 - harm) * (index + 0.5) / _ALTERNATIVES for index in range(_ALTERNATIVES)]
    hit = [math.log(rate / harm) for rate in rates]
    miss = [math.log((1 - rate) / (1 - harm)) for rate in rates]
    logs = [0.0] * _ALTERNATIVES
    seen = harmed = 0
    largest = 0.0
    for was_bounced in harms:
        seen, harmed = seen + 1, harmed + was_bounced
        logs = [log + step for log, step in zip(logs, hit if was_bounced else miss, strict=True)]
        top = max(logs)
        wealth = top + math.log(math.fsum(math.exp(each - top) for each in logs) / _ALTERNATIVES)
        largest = max(largest, wealth)
    return PromiseRecord(
        seen=seen, harmed=harmed, evidence=math.exp(min(largest, 700.0)), broken=largest >= -math.log(delta)
    )
