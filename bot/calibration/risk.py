"""Where the line may lie so that a promise holds, and whether one still does: bounds on bouncing's harm. Pure.

Harm is bouncing what should have passed: an issue that people went on to fix, a patch that was good. A line is
a probability in percent; everything at or above it bounces, so a lower line does more harm. The promise is *at
most ``harm`` of the good subjects are bounced, with probability ``1 - DELTA`` over the cases that the line was
drawn from*.

It is drawn by Learn then Test (Angelopoulos, Bates, Candes, Jordan, Lei 2021, arXiv 2110.01052): the lines are
tried from the highest down, each as the hypothesis that its harm is over the wanted share, with the exact binomial
p-value; the first that cannot be rejected ends the walk (fixed-sequence testing, so that no correction is due). It
assumes that past and future good subjects are exchangeable, and nothing about the model or its answers.

Whether a promise still holds may be asked every day. ``held`` bets against it: with every good subject that is
seen, wealth is multiplied by how much better some larger harm explains what happened than the promised one does,
averaged over an even grid of larger harms. While the promise holds, wealth ever reaches ``1 / DELTA`` with
probability at most ``DELTA`` (Ville's inequality), however often it is looked at. Source: Waudby-Smith and Ramdas
2024, "Estimating means of bounded random variables by betting".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pydantic import Field

from bot.core.frozen import Frozen

#: How sure a promise is: it fails for one maintainer in twenty.
DELTA = 0.05
#: A line that nothing reaches.
NEVER = 101
#: Larger harms that ``held`` bets on.
_ALTERNATIVES = 64


class Judged(Frozen):
    """One past subject: what the model said of it, and what it turned out to be."""

    subject: str = Field(description="``owner/name#number`` or a benchmark's instance id")
    p_bounce: int = Field(ge=0, le=100, description="the model's probability that it deserves to bounce, percent")
    good: bool = Field(description="it should have passed: it was fixed as it stood, or merged and kept")


class OperatingPoint(Frozen):
    """A line with what it would have done on the cases at hand."""

    bounce_above: int = Field(ge=0, le=NEVER, description="percent; 101 = nothing bounces")
    good: int = Field(description="good subjects in the cases")
    harmed: int = Field(description="good subjects that it bounces")
    bad: int = Field(description="subjects in the cases that deserved to bounce")
    caught: int = Field(description="bad subjects that it bounces")
    bound: float = Field(description="upper limit of the true harm at confidence ``1 - DELTA`` (Clopper-Pearson)")

    @property
    def harm(self) -> float | None:
        """Share of the good subjects that it bounces (BouncerBench: FNR_a); None without any."""
        return self.harmed / self.good if self.good else None

    @property
    def recall(self) -> float | None:
        """Share of the bad subjects that it bounces (BouncerBench's R_b); None without any."""
        return self.caught / self.bad if self.bad else None


class Promise(Frozen):
    """The lowest line whose harm is bounded as wanted, or why there is none."""

    harm: float = Field(gt=0, lt=1)
    delta: float = Field(gt=0, lt=1)
    line: OperatingPoint | None = Field(description="None: these cases bear no promise")
    needed: int = Field(description="good cases that the promise takes where not one of them is harmed")


class PromiseRecord(Frozen):
    """What the good subjects that were seen since the line was drawn say about the promise."""

    seen: int = Field(description="good subjects")
    harmed: int = Field(description="good subjects that were bounced, or would have been")
    evidence: float = Field(description="against the promise: the largest wealth so far; 1 = none")
    broken: bool


def cases_needed(harm: float) -> int:
    """Good cases without one harmed from which on a promise can be given: ``(1 - harm)^n <= DELTA``."""
    return math.ceil(math.log(DELTA) / math.log1p(-harm))


@lru_cache(maxsize=4096)
def binomial_cdf(successes: int, trials: int, chance: float) -> float:
    """P(X <= successes) for X ~ Binomial(trials, chance), summed in logarithms so that nothing underflows."""
    if successes >= trials or chance <= 0:
        return 1.0
    if successes < 0 or chance >= 1:
        return 0.0
    log_p, log_q, log_n = math.log(chance), math.log1p(-chance), math.lgamma(trials + 1)
    return min(
        1.0,
        math.fsum(
            math.exp(log_n - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * log_p + (trials - k) * log_q)
            for k in range(successes + 1)
        ),
    )


@lru_cache(maxsize=4096)
def upper_bound(harmed: int, good: int) -> float:
    """The exact one-sided upper limit of a share (Clopper and Pearson 1934); 1 without a case."""
    if harmed >= good:
        return 1.0
    low, high = harmed / good, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_cdf(harmed, good, middle) > DELTA else (low, middle)
    return high


def line_at(cases: Sequence[Judged], bounce_above: int) -> OperatingPoint:
    """What a line does on these cases."""
    good = [case for case in cases if case.good]
    bad = [case for case in cases if not case.good]
    harmed = sum(case.p_bounce >= bounce_above for case in good)
    return OperatingPoint(
        bounce_above=bounce_above,
        good=len(good),
        harmed=harmed,
        bad=len(bad),
        caught=sum(case.p_bounce >= bounce_above for case in bad),
        bound=upper_bound(harmed, len(good)),
    )


def promise(cases: Sequence[Judged], harm: float) -> Promise:
    """Draw the line: the lowest one down to which every hypothesis of too much harm is rejected.

    The lines that are tried are all whole percents from 100 down, whatever the cases hold, so that their order
    does not depend on the data.
    """
    found = lowest_line([case.p_bounce for case in cases if case.good], harm)
    line = None if found is None else line_at(cases, found)
    return Promise(harm=harm, delta=DELTA, line=line, needed=cases_needed(harm))


def lowest_line(good: Iterable[int], harm: float) -> int | None:
    """Where ``promise`` draws the line for these scores of good subjects; None where it cannot.

    Raises ValueError for a harm that is no share.
    """
    _check(harm)
    scores = sorted(good)
    found: int | None = None
    for candidate in range(100, -1, -1):
        harmed = len(scores) - bisect_left(scores, candidate)
        if binomial_cdf(harmed, len(scores), harm) > DELTA:
            break
        found = candidate
    return found


def held(harms: Iterable[bool], harm: float) -> PromiseRecord:
    """Look at good subjects in the order in which their fate became known; True = it was bounced.

    Raises ValueError for a harm that is no share.
    """
    _check(harm)
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
        seen=seen, harmed=harmed, evidence=math.exp(min(largest, 700.0)), broken=largest >= -math.log(DELTA)
    )


def _check(harm: float) -> None:
    if not 0 < harm < 1:
        raise ValueError(f"harm must lie between 0 and 1, not {harm}")


def curve(cases: Sequence[Judged]) -> tuple[OperatingPoint, ...]:
    """Every line that tells the cases apart, from the highest down: risk over coverage."""
    tried = sorted({case.p_bounce for case in cases}, reverse=True)
    return tuple(line_at(cases, each) for each in tried)


def instructive(cases: Iterable[Judged], bounce_above: int, most: int = 10) -> tuple[Judged, ...]:
    """The mistakes that a line makes: good ones bounced, then bad ones passed, the most confident first.

    Half are of each kind where there are so many of both.
    """
    wrong = [case for case in cases if (case.p_bounce >= bounce_above) == case.good]
    wrong.sort(key=lambda case: (-abs(case.p_bounce - bounce_above), case.subject))
    bounced, passed = ([case for case in wrong if case.good is good] for good in (True, False))
    half = max(most // 2, most - len(passed))
    bounced = bounced[:half]
    return (*bounced, *passed[: most - len(bounced)])
