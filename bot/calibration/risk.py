"""Where the line may lie so that a promise holds: finite-sample bounds on the harm that bouncing does. Pure.

Harm is bouncing what should have passed: an issue that people went on to fix, a patch that was good. A line is
a probability in percent; everything at or above it bounces, so a lower line does more harm. The promise is *at
most ``harm`` of the good subjects are bounced, with probability ``1 - delta`` over the cases that the line was
drawn from*.

It is drawn by Learn then Test (Angelopoulos, Bates, Candes, Jordan, Lei 2021, arXiv 2110.01052): the lines are
tried from the highest down, each as the hypothesis that its harm is over the wanted share, with the exact binomial
p-value; the first that cannot be rejected ends the walk (fixed-sequence testing, so that no correction is due). It
assumes that past and future good subjects are exchangeable, and nothing about the model or its answers.

Subjects of different repositories are not exchangeable: a line drawn elsewhere promises less (``line_elsewhere``).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pydantic import Field

from bot.core.frozen import Frozen

#: How sure a promise is, unless somebody asks for another: it fails for one maintainer in twenty.
DELTA = 0.05
#: A line that nothing reaches.
NEVER = 101


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
    bound: float = Field(description="upper limit of the true harm at confidence ``1 - delta`` (Clopper-Pearson)")

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


def cases_needed(harm: float, delta: float = DELTA) -> int:
    """Good cases without one harmed from which on a promise can be given: ``(1 - harm)^n <= delta``."""
    return math.ceil(math.log(delta) / math.log1p(-harm))


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
def _p_value(harmed: int, good: int, harm: float) -> float:
    """How likely so few harmed are where the true harm is ``harm``."""
    return binomial_cdf(harmed, good, harm)


@lru_cache(maxsize=4096)
def upper_bound(harmed: int, good: int, delta: float = DELTA) -> float:
    """The exact one-sided upper limit of a share (Clopper and Pearson 1934); 1 without a case."""
    if harmed >= good:
        return 1.0
    low, high = harmed / good, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_cdf(harmed, good, middle) > delta else (low, middle)
    return high


def line_at(cases: Sequence[Judged], bounce_above: int, delta: float = DELTA) -> OperatingPoint:
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
        bound=upper_bound(harmed, len(good), delta),
    )


def promise(cases: Sequence[Judged], harm: float, delta: float = DELTA) -> Promise:
    """Draw the line: the lowest one down to which every hypothesis of too much harm is rejected.

    The lines that are tried are all whole percents from 100 down, whatever the cases hold, so that their order
    does not depend on the data. Raises ValueError for a harm or delta that is no share.
    """
    if not (0 < harm < 1 and 0 < delta < 1):
        raise ValueError(f"harm and delta must lie between 0 and 1, not {harm} and {delta}")
    found = lowest_line([case.p_bounce for case in cases if case.good], harm, delta)
    line = None if found is None else line_at(cases, found, delta)
    return Promise(harm=harm, delta=delta, line=line, needed=cases_needed(harm, delta))


def lowest_line(good: Iterable[int], harm: float, delta: float = DELTA) -> int | None:
    """Where ``promise`` draws the line for these scores of good subjects; None where it cannot."""
    scores = sorted(good)
    found: int | None = None
    for candidate in range(100, -1, -1):
        harmed = len(scores) - bisect_left(scores, candidate)
        if _p_value(harmed, len(scores), harm) > delta:
            break
        found = candidate
    return found


class ElsewhereLine(Frozen):
    """A line for a repository of which nothing is known but that it is like the others."""

    bounce_above: int = Field(ge=0, le=NEVER)
    sure: float = Field(description="probability that the new repository's harm is at most the wanted one")


def repositories_needed(delta: float = DELTA) -> int:
    """Repositories from which on a line drawn on them is ``1 - delta`` sure on another one."""
    return math.ceil(1 / delta) - 1


def line_elsewhere(groups: Sequence[Iterable[int]], harm: float, delta: float = DELTA) -> ElsewhereLine | None:
    """The line for another repository by the scores of the good subjects of several; None without any.

    The repositories themselves are the exchangeable units, whatever the subjects in one have in common (Dunn,
    Wasserman and Ramdas 2022, "Distribution-free prediction sets for two-layer hierarchical models"). Each has a
    lowest line at which it takes no more than ``harm``; of ``n + 1`` exchangeable ones the new repository's is
    above the k-th highest of the others' with probability at most ``k / (n + 1)``. Where ``n`` is below
    ``repositories_needed``, the strictest line is taken, and it is only ``n / (n + 1)`` sure. It is never below
    the line of ``lowest_line`` for all of them together.
    """
    scores = [sorted(each) for each in groups]
    strictest = sorted((_least(each, harm) for each in scores if each), reverse=True)
    if not strictest:
        return None
    rank = strict_rank(len(strictest), delta)
    pooled = lowest_line((score for each in scores for score in each), harm, delta)
    if pooled is None:
        return None
    return ElsewhereLine(
        bounce_above=max(strictest[rank - 1], pooled), sure=min(1 - delta, 1 - rank / (len(strictest) + 1))
    )


def strict_rank(repositories: int, delta: float = DELTA) -> int:
    """Which of so many repositories' lines, highest first, is the one for another; 1 where they are too few."""
    return max(1, int(delta * (repositories + 1) + 1e-9))


def _least(scores: Sequence[int], harm: float) -> int:
    """The lowest line that bounces no more than ``harm`` of these ascending scores."""
    return next(
        line for line in range(NEVER + 1) if len(scores) - bisect_left(scores, line) <= harm * len(scores) + 1e-9
    )


def curve(cases: Sequence[Judged], delta: float = DELTA) -> tuple[OperatingPoint, ...]:
    """Every line that tells the cases apart, from the highest down: risk over coverage."""
    tried = sorted({case.p_bounce for case in cases}, reverse=True)
    return tuple(line_at(cases, each, delta) for each in tried)


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
