"""Thresholds with a bound on the harm of bouncing, and a test that the bound still holds. Pure.

Harm is bouncing a subject that should have passed: an issue that was fixed later, a good patch. A threshold (in
the interface: a line) is a probability in percent; everything at or above it bounces, so a lower threshold does
more harm. The promise is *at most ``harm`` of the good subjects are bounced, with probability ``1 - DELTA`` over
the cases that the threshold was chosen from*.

It is chosen by Learn then Test (Angelopoulos, Bates, Candes, Jordan, Lei 2021, arXiv 2110.01052). The thresholds
are tested from the highest down: the hypothesis is that the harm exceeds the wanted share, with the exact binomial
p-value. The first that cannot be rejected ends the search (fixed-sequence testing, so no correction is needed).
This assumes that past and future good subjects are exchangeable, and nothing about the model or its answers.

A suggestion (duplicates) has another promise: *at most a share of the suggestions is wrong*. How many there are
depends on the threshold, and at the highest ones there are too few to reject anything, so the search begins at
each of ``STARTS``, which are fixed in advance and share the error ``DELTA`` (Learn then Test, fixed sequences with
several starts).

A promise can be checked every day. ``watch_promise`` bets against it: with every good subject, wealth is
multiplied by how much better a larger harm explains the outcome than the promised one does, averaged over an even
grid of larger harms. While the promise holds, wealth ever reaches ``1 / DELTA`` with probability at most ``DELTA``
(Ville's inequality), however often it is checked. Source: Waudby-Smith and Ramdas
2024, "Estimating means of bounded random variables by betting".

The last part compares probabilities with outcomes: bins, expected calibration error and Brier score.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from pydantic import Field

from bot.core.frozen import Frozen
from bot.core.subjects import KnownFate

#: How sure a promise is: it fails for one maintainer in twenty.
DELTA = 0.05
#: A threshold that nothing reaches.
NEVER = 101
#: Thresholds of suggestions at which a search begins, percent.
STARTS = (90, 70)
#: Larger harms that ``watch_promise`` bets on.
_ALTERNATIVES = 64


class Judged(Frozen):
    """One past subject: the model's probability and the true outcome."""

    subject: str = Field(description="``owner/name#number`` or a benchmark's instance id")
    p_bounce: int = Field(ge=0, le=100, description="the model's probability that it deserves to bounce, percent")
    good: bool = Field(description="it should have passed: it was fixed as it stood, or merged and kept")


def judged(fates: Iterable[KnownFate]) -> list[Judged]:
    """Return the subjects whose verdict carried a probability."""
    return [
        Judged(subject=fate.subject, p_bounce=fate.p_bounce, good=fate.good)
        for fate in fates
        if fate.p_bounce is not None
    ]


class OperatingPoint(Frozen):
    """A threshold with its effect on the cases at hand."""

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
    """The lowest threshold whose harm is bounded as wanted, or the number of cases that one needs."""

    harm: float = Field(gt=0, lt=1)
    delta: float = Field(gt=0, lt=1)
    line: OperatingPoint | None = Field(description="None: these cases allow no promise")
    needed: int = Field(description="good cases that the promise takes if none of them is harmed")


class SuggestionPromise(Frozen):
    """The lowest threshold at which few enough suggestions are wrong, or the number that one needs."""

    harm: float = Field(gt=0, lt=1, description="share of wrong suggestions that is wanted at most")
    suggest_above: int | None = Field(description="percent; None: these suggestions allow no promise")
    suggestions: int = Field(description="at the threshold; without one, all of them")
    wrong: int = Field(description="of these")
    bound: float = Field(description="upper limit of the true share at confidence ``1 - DELTA`` (Clopper-Pearson)")
    needed: int = Field(description="suggestions that the promise takes if none of them is wrong")


class PromiseRecord(Frozen):
    """The evidence against a promise from the good subjects since the threshold was chosen."""

    subjects: int = Field(description="good subjects")
    harmed: int = Field(description="good subjects that were bounced, or would have been")
    evidence: float = Field(description="against the promise: the largest wealth so far; 1 = none")
    broken: bool


def cases_needed(harm: float, delta: float = DELTA) -> int:
    """Return how many unharmed good cases a promise needs at least: ``(1 - harm)^n <= delta``."""
    return math.ceil(math.log(delta) / math.log1p(-harm))


@lru_cache(maxsize=4096)
def binomial_cdf(successes: int, trials: int, chance: float) -> float:
    """Return P(X <= successes) for X ~ Binomial(trials, chance). Sums logarithms so that nothing underflows."""
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
    """Return the exact one-sided upper limit of a share (Clopper and Pearson 1934); 1 without a case."""
    if harmed >= good:
        return 1.0
    low, high = harmed / good, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_cdf(harmed, good, middle) > DELTA else (low, middle)
    return high


def line_at(cases: Sequence[Judged], bounce_above: int) -> OperatingPoint:
    """Return the effect of a threshold on these cases."""
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
    """Choose the lowest threshold down to which every hypothesis of too much harm is rejected.

    All whole percents from 100 down are tested, so that their order does not depend on the data.
    """
    threshold = lowest_line([case.p_bounce for case in cases if case.good], harm)
    line = None if threshold is None else line_at(cases, threshold)
    return Promise(harm=harm, delta=DELTA, line=line, needed=cases_needed(harm))


def lowest_line(good: Iterable[int], harm: float) -> int | None:
    """Return the threshold of ``promise`` for these scores of good subjects, or None if there is none.

    Raises ValueError if ``harm`` is not between 0 and 1.
    """
    _check(harm)
    scores = sorted(good)
    threshold: int | None = None
    for candidate in range(100, -1, -1):
        harmed = len(scores) - bisect_left(scores, candidate)
        if binomial_cdf(harmed, len(scores), harm) > DELTA:
            break
        threshold = candidate
    return threshold


def suggestion_promise(suggestions: Sequence[tuple[int, bool]], harm: float) -> SuggestionPromise:
    """Choose the lowest threshold at which at most ``harm`` of the suggestions are wrong, if there is one.

    A suggestion is the model's probability in percent, and True if it was right. Raises ValueError if ``harm`` is
    not between 0 and 1.
    """
    _check(harm)
    delta = DELTA / len(STARTS)

    everything = sorted(percent for percent, _ in suggestions)
    mistakes = sorted(percent for percent, right in suggestions if not right)

    def count(above: int) -> tuple[int, int]:
        wrong, total = (len(scores) - bisect_left(scores, above) for scores in (mistakes, everything))
        return wrong, total

    thresholds: list[int] = []
    for start in STARTS:
        rejected = list(takewhile(lambda above: binomial_cdf(*count(above), harm) <= delta, range(start, -1, -1)))
        if rejected:
            # Below the least suggestion nothing was seen, so the threshold stays there.
            thresholds.append(min(start, everything[bisect_left(everything, rejected[-1])]))
    # Of thresholds that suggest the same, the highest one.
    threshold = max(thresholds, key=lambda above: (count(above)[1], above), default=None)
    wrong, total = count(threshold or 0)
    return SuggestionPromise(
        harm=harm,
        suggest_above=threshold,
        suggestions=total,
        wrong=wrong,
        bound=upper_bound(wrong, total),
        needed=cases_needed(harm, delta),
    )


def watch_promise(harms: Iterable[bool], harm: float) -> PromiseRecord:
    """Test a promise against good subjects in the order in which their outcome became known; True = bounced.

    Raises ValueError if ``harm`` is not between 0 and 1.
    """
    _check(harm)
    rates = [harm + (1 - harm) * (index + 0.5) / _ALTERNATIVES for index in range(_ALTERNATIVES)]
    hit = [math.log(rate / harm) for rate in rates]
    miss = [math.log((1 - rate) / (1 - harm)) for rate in rates]
    logs = [0.0] * _ALTERNATIVES
    subjects = harmed = 0
    largest = 0.0
    for was_bounced in harms:
        subjects, harmed = subjects + 1, harmed + was_bounced
        logs = [log + step for log, step in zip(logs, hit if was_bounced else miss, strict=True)]
        top = max(logs)
        wealth = top + math.log(math.fsum(math.exp(value - top) for value in logs) / _ALTERNATIVES)
        largest = max(largest, wealth)
    return PromiseRecord(
        subjects=subjects,
        harmed=harmed,
        evidence=math.exp(min(largest, 700.0)),
        broken=largest >= -math.log(DELTA),
    )


def _check(harm: float) -> None:
    if not 0 < harm < 1:
        raise ValueError(f"harm must lie between 0 and 1, not {harm}")


def curve(cases: Sequence[Judged]) -> tuple[OperatingPoint, ...]:
    """Return the operating points of all thresholds that separate the cases, from the highest down."""
    thresholds = sorted({case.p_bounce for case in cases}, reverse=True)
    return tuple(line_at(cases, threshold) for threshold in thresholds)


def instructive(cases: Iterable[Judged], bounce_above: int, most: int = 10) -> tuple[Judged, ...]:
    """Return the mistakes at a threshold: good cases bounced, then bad cases passed, most confident first.

    Half are of each kind if there are enough of both.
    """
    wrong = [case for case in cases if (case.p_bounce >= bounce_above) == case.good]
    wrong.sort(key=lambda case: (-abs(case.p_bounce - bounce_above), case.subject))
    bounced, passed = ([case for case in wrong if case.good is good] for good in (True, False))
    half = max(most // 2, most - len(passed))
    bounced = bounced[:half]
    return (*bounced, *passed[: most - len(bounced)])


#: Bins of the reliability diagram and of the expected calibration error, equally wide (Guo et al. 2017).
BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases with similar probabilities: the mean prediction and the observed share, both 0 to 1."""

    cases: int
    predicted: float
    observed: float


def bins(cases: Sequence[Judged]) -> tuple[Bin, ...]:
    """Return the bins that hold a case, lowest first."""
    grouped: dict[int, list[Judged]] = {}
    for case in cases:
        grouped.setdefault(min(BINS - 1, case.p_bounce * BINS // 100), []).append(case)
    return tuple(
        Bin(
            len(group),
            sum(case.p_bounce for case in group) / (100 * len(group)),
            sum(not case.good for case in group) / len(group),
        )
        for _, group in sorted(grouped.items())
    )


def expected_calibration_error(cases: Sequence[Judged]) -> float | None:
    """Return the mean distance of predicted from observed shares, weighted by cases (Guo et al. 2017, eq. 3)."""
    if not cases:
        return None
    return sum(bin.cases * abs(bin.predicted - bin.observed) for bin in bins(cases)) / len(cases)


def brier(cases: Sequence[Judged]) -> float | None:
    """Return the mean squared distance between probability and outcome, 0 to 1 (Brier 1950)."""
    if not cases:
        return None
    return sum((case.p_bounce / 100 - (not case.good)) ** 2 for case in cases) / len(cases)
