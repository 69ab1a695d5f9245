"""Lines and maps that are fitted on some repositories and proved on the others, and how often a promise is broken.

Scores are the probabilities where every answer has one, else the severities of the labels (0 to 3 as 0, 33, 66 and
100). Tasks of unknown truth and tasks without an answer are left out, and counted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bot.calibration import risk
from bot.calibration.risk import Judged
from evaluation import statistics
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.metrics import Tasks
from evaluation.statistics import Counts

#: Of a label's severity.
STEPS = 3
RESAMPLES = 1000


@dataclass(frozen=True)
class Cases:
    """One model's answers as cases, by the group (a repository) that each belongs to."""

    name: str
    by_label: bool
    groups: Mapping[str, tuple[Judged, ...]]
    left_out: int

    @property
    def every(self) -> tuple[Judged, ...]:
        return tuple(case for group in self.groups.values() for case in group)

    def others(self, held_out: str) -> tuple[Judged, ...]:
        return tuple(case for group in self.other_groups(held_out) for case in group)

    def other_groups(self, held_out: str) -> list[tuple[Judged, ...]]:
        return [group for name, group in self.groups.items() if name != held_out]


def cases(name: str, tasks: Tasks, answers: Mapping[str, Answer], by: Mapping[str, str] | None = None) -> Cases:
    """The answers that can be scored, beside what is true; grouped ``by`` task, else by repository."""
    labelled = [
        (task, answer) for task in tasks if task.bounce is not None if (answer := answers.get(task.instance_id))
    ]
    usable = [
        (task, answer) for task, answer in labelled if answer.level is not None or answer.p_bounce is not None
    ]
    by_label = any(answer.p_bounce is None for _, answer in usable)
    groups: dict[str, list[Judged]] = {}
    for task, answer in usable:
        score = (answer.level or 0) * 100 / STEPS if by_label or answer.p_bounce is None else answer.p_bounce
        case = Judged(subject=task.instance_id, p_bounce=int(score), good=not task.bounce)
        groups.setdefault(task.repo if by is None else by[task.instance_id], []).append(case)
    by_group = {group: tuple(groups[group]) for group in sorted(groups)}
    return Cases(name, by_label, by_group, len(tasks) - len(usable))


def mean(tasks: Tasks, voices: Sequence[Mapping[str, Answer]]) -> dict[str, Answer]:
    """The mean of several models' answers, as ``mean(...)`` gives it; only of tasks that each of them answered."""
    answers: dict[str, Answer] = {}
    for identity in (task.instance_id for task in tasks):
        own_answers = [voice[identity] for voice in voices if identity in voice]
        levels = [own_answer.level for own_answer in own_answers if own_answer.level is not None]
        if len(levels) < len(voices):
            continue
        percents = [own_answer.p_bounce for own_answer in own_answers if own_answer.p_bounce is not None]
        if len(percents) < len(own_answers):
            percents = [level * 100 / STEPS for level in levels]
        average = sum(levels) / len(levels)
        answers[identity] = Answer(
            instance_id=identity,
            level=round(average),
            bounce=average >= 1.5,
            p_bounce=sum(percents) / len(percents),
        )
    return answers


@dataclass(frozen=True)
class Proof:
    """A line fitted on all groups but one, and what it does on that one."""

    held_out: str
    line: int | None
    good: int
    harmed: int
    bad: int
    caught: int

    @property
    def harm(self) -> float | None:
        return self.harmed / self.good if self.good else None


#: Draws a line from groups of cases; None if it cannot.
Fit = Callable[[Sequence[Sequence[Judged]]], int | None]


def proved(all_cases: Cases, fit: Fit) -> list[Proof]:
    """Each group held out in turn; where no line can be drawn, nothing bounces."""
    proofs: list[Proof] = []
    for name, group in all_cases.groups.items():
        line = fit(all_cases.other_groups(name))
        at = risk.line_at(group, risk.NEVER if line is None else line)
        proofs.append(Proof(name, line, at.good, at.harmed, at.bad, at.caught))
    return proofs


def promised(harm: float) -> Fit:
    """Draws the line that a promise for another group allows."""

    def fit(groups: Sequence[Sequence[Judged]]) -> int | None:
        scores = [[case.p_bounce for case in group if case.good] for group in groups]
        return line_elsewhere(scores, harm)

    return fit


def line_elsewhere(groups: Sequence[Iterable[int]], harm: float) -> int | None:
    """The line for another repository by the scores of the good subjects of several; None without any.

    Subjects of different repositories are not exchangeable. The repositories themselves are, whatever the
    subjects in one have in common (Dunn, Wasserman and Ramdas 2022, "Distribution-free prediction sets for
    two-layer hierarchical models"). Each has a lowest line at which it takes no more than ``harm``; of ``n + 1``
    exchangeable ones the new repository's is above the k-th highest of the others' with probability at most
    ``k / (n + 1)``. Where ``n`` is below ``repositories_needed``, the strictest line is taken, and it is only
    ``n / (n + 1)`` sure. It is never below the line of ``risk.lowest_line`` for all of them together.
    """
    scores = [sorted(group) for group in groups]

    def least(ascending: Sequence[int]) -> int:
        """The lowest line that bounces no more than ``harm`` of these scores."""
        allowed = harm * len(ascending) + 1e-9
        lines = range(risk.NEVER + 1)
        return next(line for line in lines if len(ascending) - bisect_left(ascending, line) <= allowed)

    strictest = sorted((least(ascending) for ascending in scores if ascending), reverse=True)
    pooled = risk.lowest_line((score for of_group in scores for score in of_group), harm)
    return max(strictest[_strict_rank(len(strictest)) - 1], pooled) if strictest and pooled is not None else None


def repositories_needed() -> int:
    """Repositories from which on a line drawn on them is ``1 - risk.DELTA`` sure on another one."""
    return math.ceil(1 / risk.DELTA) - 1


def _strict_rank(repositories: int) -> int:
    """Which of so many repositories' lines, highest first, is the one for another; 1 if they are too few."""
    return max(1, int(risk.DELTA * (repositories + 1) + 1e-9))


def best_f(groups: Sequence[Sequence[Judged]]) -> int | None:
    """The line with the best macro F; the highest among equals, None without both kinds."""
    some = [case for group in groups for case in group]
    if len({case.good for case in some}) < 2:
        return None
    points = [
        risk.line_at(some, threshold) for threshold in sorted({case.p_bounce for case in some} | {risk.NEVER})
    ]
    return max(
        points, key=lambda point: (macro_f(point.good, point.harmed, point.bad, point.caught), point.bounce_above)
    ).bounce_above


def macro_f(good: int, harmed: int, bad: int, caught: int) -> float:
    """The mean of the F-measures of bouncing and of passing (BouncerBench, II.B)."""
    table = np.array([[[good - harmed, harmed], [bad - caught, caught]]], dtype=np.int64)
    return float(statistics.macro_f(table)[0])


def pooled_f(proofs: Sequence[Proof]) -> float:
    """Macro F over all groups, each at the line that the others gave it."""
    return macro_f(
        *(sum(getattr(proof, name) for proof in proofs) for name in ("good", "harmed", "bad", "caught"))
    )


def ranking(all_cases: Cases) -> float | None:
    every = all_cases.every
    order = sorted({case.p_bounce for case in every})
    if not order:
        return None
    table = np.zeros((1, len(order), 2), dtype=np.int64)
    for case in every:
        table[0, order.index(case.p_bounce), int(not case.good)] += 1
    return statistics.defined(statistics.auc(table)[0])


@dataclass(frozen=True)
class Calibrated:
    """How far off probabilities are as said and after each map, the map fitted on the other groups."""

    error: Mapping[str, float | None]
    brier: Mapping[str, float | None]


def as_said(_some: Sequence[Judged]) -> statistics.Array:
    """The identity map: every probability is taken as it is."""
    return np.arange(101) / 100


def isotonic(some: Sequence[Judged]) -> statistics.Array:
    """The monotone map with the least squared error (Ayer et al. 1955), at each whole percent."""
    from sklearn.isotonic import IsotonicRegression

    percents, bad = [case.p_bounce for case in some], [not case.good for case in some]
    return np.asarray(IsotonicRegression(out_of_bounds="clip").fit(percents, bad).predict(np.arange(101)))


def platt(some: Sequence[Judged]) -> statistics.Array:
    """The logistic map of the log-odds (Platt 1999, with his smoothed targets), at each whole percent."""
    from sklearn.linear_model import LogisticRegression

    bad = np.array([not case.good for case in some])
    high, low = (bad.sum() + 1) / (bad.sum() + 2), 1 / ((~bad).sum() + 2)
    targets = np.where(bad, high, low)
    odds = _log_odds([case.p_bounce for case in some])
    # A target between 0 and 1 is a case of either kind, each with its share for a weight.
    kinds = np.repeat([1, 0], len(bad))
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    model.fit(np.concatenate([odds, odds]), kinds, sample_weight=np.concatenate([targets, 1 - targets]))
    return np.asarray(model.predict_proba(_log_odds(range(101)))[:, 1])


def _log_odds(percents: Sequence[int]) -> statistics.Array:
    shares = np.clip(np.array(percents) / 100, 0.005, 0.995)
    return np.asarray(np.log(shares / (1 - shares))).reshape(-1, 1)


#: Maps by name: what is true, 0 to 1, where so many percent are said. They are fitted on at least one case.
_MAPS: Mapping[str, Callable[[Sequence[Judged]], statistics.Array]] = {
    "as said": as_said,
    "isotonic": isotonic,
    "Platt": platt,
}


def calibrated(all_cases: Cases) -> Calibrated:
    """Each group through a map that was fitted on the others."""
    error: dict[str, float | None] = {}
    brier: dict[str, float | None] = {}
    for name, fit in _MAPS.items():
        mapped: list[Judged] = []
        for held_out, group in all_cases.groups.items():
            rest = all_cases.others(held_out)
            true = fit(rest) if rest else as_said(rest)
            mapped += (case.model_copy(update={"p_bounce": round(100 * true[case.p_bounce])}) for case in group)
        error[name] = risk.expected_calibration_error(mapped)
        brier[name] = risk.brier(mapped)
    return Calibrated(error, brier)


@dataclass(frozen=True)
class Coverage:
    """Of many resamples, the shares in which a promise was given, and was broken.

    ``elsewhere`` is the population that the resamples were drawn from (the future is like the past), ``here`` the
    group that was held out (it may not be), ``own`` the held-out group with lines drawn from resamples of itself.
    ``strict`` are lines for the held-out group that take the others as the exchangeable units.
    """

    held_out: str
    good_elsewhere: int
    good_here: int
    promised: float
    broken_elsewhere: float
    broken_here: float
    harm_here: float
    own_given: float
    own_broken: float
    strict_given: float
    strict_broken: float
    strict_harm: float


def coverage(all_cases: Cases, harm: float, seed: int) -> list[Coverage]:
    """Each group held out in turn; a promise that is not given is not broken."""
    generator = np.random.default_rng(seed)
    rows: list[Coverage] = []
    for name, group in all_cases.groups.items():
        rest, here = _good(all_cases.others(name)), _good(group)
        lines = resampled_lines(rest, harm, RESAMPLES, generator)
        own = resampled_lines(here, harm, RESAMPLES, generator)
        strict = resampled_lines_elsewhere(
            [_good(group_cases) for group_cases in all_cases.other_groups(name)], harm, RESAMPLES, generator
        )
        harms, strict_harms = _harms(here, lines), _harms(here, strict)
        rows.append(
            Coverage(
                held_out=name,
                good_elsewhere=int(rest.sum()),
                good_here=int(here.sum()),
                promised=float((lines <= 100).mean()),
                broken_elsewhere=float((_harms(rest, lines) > harm).mean()),
                broken_here=float((harms > harm).mean()),
                harm_here=float(harms.mean()),
                own_given=float((own <= 100).mean()),
                own_broken=float((_harms(here, own) > harm).mean()),
                strict_given=float((strict <= 100).mean()),
                strict_broken=float((strict_harms > harm).mean()),
                strict_harm=float(strict_harms.mean()),
            )
        )
    return rows


def resampled_lines(good: Counts, harm: float, resamples: int, generator: np.random.Generator) -> Counts:
    """``risk.lowest_line`` of so many resamples of as many cases; 101 where there is none.

    ``good`` are the numbers of good cases at each score from 0 to 100.
    """
    return _lowest(_resampled(good, resamples, generator), harm)


def resampled_lines_elsewhere(
    groups: Sequence[Counts], harm: float, resamples: int, generator: np.random.Generator
) -> Counts:
    """``line_elsewhere`` of so many resamples of each group; 101 where there is none."""
    resamples_of = [_resampled(group, resamples, generator) for group in groups if group.sum()]
    if not resamples_of:
        return np.full(resamples, risk.NEVER, dtype=np.int64)
    # Harm falls as the line rises: the lowest line that is allowed comes after all that are not.
    least = [
        (_tails(resampled) > harm * resampled.sum(axis=1, keepdims=True) + 1e-9).sum(axis=1)
        for resampled in resamples_of
    ]
    strict = np.sort(np.array(least), axis=0)[::-1][_strict_rank(len(resamples_of)) - 1]
    return np.asarray(np.maximum(strict, _lowest(np.sum(resamples_of, axis=0), harm)), dtype=np.int64)


def _resampled(good: Counts, resamples: int, generator: np.random.Generator) -> Counts:
    total = int(good.sum())
    return (
        generator.multinomial(total, good / max(1, total), size=resamples)
        if total
        else np.tile(good, (resamples, 1))
    )


def _tails(resampled: Counts) -> Counts:
    """How many cases of each resample lie at each score or above it."""
    return np.asarray(np.cumsum(resampled[:, ::-1], axis=1)[:, ::-1], dtype=np.int64)


def _lowest(resampled: Counts, harm: float) -> Counts:
    total = int(resampled[0].sum())
    allowed = -1
    while allowed < total and risk.binomial_cdf(allowed + 1, total, harm) <= risk.DELTA:
        allowed += 1
    if total == 0 or allowed < 0:
        return np.full(len(resampled), risk.NEVER, dtype=np.int64)
    return np.asarray((_tails(resampled) > allowed).sum(axis=1), dtype=np.int64)


def _good(some: Sequence[Judged]) -> Counts:
    return np.bincount([case.p_bounce for case in some if case.good], minlength=risk.NEVER).astype(np.int64)


def _harms(good: Counts, lines: Counts) -> statistics.Array:
    """The harm that each line does to a population; 0 if it has no good case."""
    tail = np.concatenate([np.cumsum(good[::-1])[::-1], [0]]).astype(float)
    return np.asarray(tail[lines] / max(1, good.sum()), dtype=float)


def points(some: Sequence[Judged], kind: str) -> list[tuple[float, float]]:
    """A map as points (said percent, true percent), as ``BOUNCER_MAPS_FILE`` holds them."""
    true = (isotonic if kind == "isotonic" else platt)(some)
    places = sorted({case.p_bounce for case in some}) if kind == "isotonic" else range(0, 101, 5)
    return [(float(place), round(100 * float(true[place]), 2)) for place in places]
