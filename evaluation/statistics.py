"""The statistics that benchmarks share, each written once, for one sample and for thousands of resamples alike.

Nearly every figure here is a function of a contingency table. A table is an array ``(..., rows, columns)`` of
counts; leading axes are independent tables, so a bootstrap is one call on a stack of resampled tables. A value
that is not defined (0/0) is NaN in an array and None in an ``Estimate``: never an invented 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bot.features.feedback import signals as feedback

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
#: Values by name, one for each draw of task indices.
Statistics = Callable[[Counts], dict[str, Array]]

#: Index draws held in memory at once: 4 million are 32 MB.
_DRAWS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Estimate:
    """A figure and its confidence interval; all None if the figure is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def text(self, scale: float = 1.0, digits: int = 3) -> str:
        """``0.584 [0.552, 0.616]``; a dash where the figure is not defined."""
        if self.value is None:
            return "–"
        text = f"{scale * self.value:.{digits}f}"
        if self.low is None or self.high is None:
            return text
        return f"{text} [{scale * self.low:.{digits}f}, {scale * self.high:.{digits}f}]"

    def ends(self, scale: float, digits: int) -> str:
        """``0.552 to 0.616``, for a column of its own; empty without an interval."""
        return self.text(scale, digits).partition(" ")[2].strip("[]").replace(", ", " to ")

    def cells(self, scale: float, digits: int) -> tuple[str, str]:
        """``0.584`` and ``0.552 to 0.616``, for two columns."""
        return self.text(scale, digits).partition(" ")[0], self.ends(scale, digits)

    def percent(self) -> str:
        """A share in percent with its interval."""
        return self.text(100.0, 1)

    def as_json(self) -> list[float | None]:
        return [self.value, self.low, self.high]


class Resampling(NamedTuple):
    """How a bootstrap draws; without ``replicates`` there are no intervals."""

    seed: int = 0
    replicates: int = 2000


USUAL = Resampling()
#: Figures without intervals.
NO_INTERVALS = Resampling(replicates=0)


def ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Array:
    """``numerator / denominator``, NaN if the denominator is 0."""
    top, bottom = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bottom == 0, np.nan, top / bottom)


def resampled_mean(values: Array, draws: Counts) -> Array:
    """The mean of ``values`` over each draw of task indices; NaN without tasks."""
    return ratio(values[draws].sum(axis=1), draws.shape[1])


def contingency(rows: npt.ArrayLike, columns: npt.ArrayLike, shape: tuple[int, int], draws: Counts) -> Counts:
    """Tables of how often each (row, column) pair occurs in each draw.

    ``rows`` and ``columns`` are codes of ``n`` tasks; ``draws`` is ``(replicates, n)``, each line the indices of
    a sample. Returns ``(replicates, *shape)``.
    """
    size = shape[0] * shape[1]
    cells = np.asarray(rows, dtype=np.int64) * shape[1] + np.asarray(columns, dtype=np.int64)
    offsets = np.arange(len(draws), dtype=np.int64)[:, None] * size
    counts = np.bincount((cells[draws] + offsets).ravel(), minlength=len(draws) * size)
    return counts.reshape(len(draws), *shape)


def precision(table: Counts, label: int) -> Array:
    """Of those predicted ``label`` (columns), the share that is it (rows); 0 where none was predicted.

    The 0 is scikit-learn's ``zero_division=0`` and what the published figures use.
    """
    return np.nan_to_num(ratio(table[..., label, label], table[..., :, label].sum(-1)))


def recall(table: Counts, label: int) -> Array:
    """Of those that are ``label`` (rows), the share predicted as it; 0 if there is none."""
    return np.nan_to_num(ratio(table[..., label, label], table[..., label, :].sum(-1)))


def f_measure(table: Counts, label: int) -> Array:
    """Harmonic mean of precision and recall of ``label``, written over counts; 0 if both are 0.

    Rows may be fewer than columns: a column without a row is an answer that can never be right.
    """
    hits = table[..., label, label]
    return np.nan_to_num(ratio(2 * hits, table[..., label, :].sum(-1) + table[..., :, label].sum(-1)))


def macro_f(table: Counts) -> Array:
    """Unweighted mean of the F-measures of all rows' labels (BouncerBench, II.B)."""
    measures: list[Array] = [f_measure(table, label) for label in range(table.shape[-2])]
    return np.asarray(np.mean(measures, axis=0), dtype=float)


def raw_agreement(table: Counts) -> Array:
    """Share of tasks on the diagonal of a table of two raters with the same labels."""
    return ratio(np.trace(table, axis1=-2, axis2=-1), table.sum((-2, -1)))


def cohen_kappa(table: Counts) -> Array:
    """Agreement of two raters beyond chance: ``(p_o - p_e) / (1 - p_e)``; NaN if chance explains all.

    Cohen (1960). ``p_e`` is the agreement expected of two independent raters with these margins.
    """
    total = table.sum((-2, -1)).astype(float)
    expected = ratio((table.sum(-1) * table.sum(-2)).sum(-1), total**2)
    return ratio(raw_agreement(table) - expected, 1 - expected)


def fleiss_kappa(ratings: Counts) -> float | None:
    """Agreement of several raters beyond chance; ``ratings`` is (subjects, categories) of counts.

    Fleiss (1971). Every subject has the same number of ratings, at least 2 (ValueError otherwise). None if
    every rating is the same category, or without subjects.
    """
    if ratings.size == 0:
        return None
    raters = ratings.sum(1)
    if raters.min() != raters.max() or raters[0] < 2:
        raise ValueError("every subject needs the same number of ratings, at least 2")
    n = float(raters[0])
    within = ((ratings * (ratings - 1)).sum(1) / (n * (n - 1))).mean()
    chance = float(((ratings.sum(0) / ratings.sum()) ** 2).sum())
    return None if chance == 1.0 else float((within - chance) / (1 - chance))


def spearman_rho(table: Counts) -> Array:
    """Rank correlation of rows with columns, both ordered, ties sharing their mean rank.

    The Pearson correlation of mid-ranks, which tables give directly: the mid-rank of a row is the number of
    tasks in earlier rows plus half of its own. NaN if one side is constant.
    """
    row_total, column_total = table.sum(-1), table.sum(-2)
    total = row_total.sum(-1)[..., None]
    x = _mid_ranks(row_total) - (total + 1) / 2
    y = _mid_ranks(column_total) - (total + 1) / 2
    covariance = np.einsum("...i,...ij,...j->...", x, table.astype(float), y)
    spread = (row_total * x**2).sum(-1) * (column_total * y**2).sum(-1)
    return ratio(covariance, np.sqrt(spread))


def _mid_ranks(totals: Counts) -> Array:
    return np.cumsum(totals, axis=-1) - (totals - 1) / 2


def auc(table: Counts) -> Array:
    """Chance that a positive scores above a negative, ties counting half (Mann and Whitney, 1947).

    Rows are the distinct scores in ascending order, columns are (negatives, positives). NaN if one class is
    absent.
    """
    negatives, positives = table[..., 0], table[..., 1]
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    return ratio((positives * below).sum(-1), negatives.sum(-1) * positives.sum(-1))


def mcnemar(first_only: int, second_only: int) -> float:
    """Exact two-sided p-value that two systems err equally often (McNemar, 1947); 1 if they never differ.

    The arguments count the tasks that only the first, and only the second, got right.
    """
    from scipy.stats import binomtest  # takes half a second to import

    differing = first_only + second_only
    return float(binomtest(first_only, differing).pvalue) if differing else 1.0


@dataclass(frozen=True)
class Paired:
    """The tasks that two systems tried, by which of the two is right."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def p_value(self) -> float:
        """McNemar's exact two-sided test that both err equally often."""
        return mcnemar(self.only_first, self.only_second)


def paired(first: Mapping[str, bool], second: Mapping[str, bool]) -> Paired:
    """Compare two systems over the tasks that both tried: task -> whether the system was right."""
    outcomes = [(first[task], second[task]) for task in first if task in second]
    return Paired(*(outcomes.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))))


def wilson(successes: int, total: int) -> Estimate:
    """A share with its 95 % Wilson score interval; all None if ``total`` is 0."""
    return Estimate(successes / total, *feedback.wilson(successes, total)) if total else Estimate(None)


def bootstrap(statistics: Statistics, n: int, how: Resampling = USUAL) -> dict[str, Estimate]:
    """Percentile bootstrap over tasks (Efron, 1979) of any number of statistics at once.

    ``statistics`` maps draws ``(replicates, n)`` of task indices to ``(replicates,)`` values per name; it is
    called once with every task in order for the value itself. All names see the same draws. Replicates in
    which a statistic is not defined are left out of its interval. Without tasks or replicates there is none.
    """
    observed = statistics(np.arange(n, dtype=np.int64)[None, :])
    if n == 0 or how.replicates == 0:
        return {name: Estimate(defined(values[0])) for name, values in observed.items()}
    samples = _replicated(
        statistics, np.arange(n, dtype=np.int64), np.random.default_rng(how.seed), how.replicates
    )
    return {name: _interval(observed[name][0], samples[name]) for name in observed}


def paired_difference(first: Statistics, second: Statistics) -> Statistics:
    """Second minus first of the statistics that both have, on the same draws."""

    def difference(draws: Counts) -> dict[str, Array]:
        before, after = first(draws), second(draws)
        return {name: after[name] - value for name, value in before.items() if name in after}

    return difference


def unpaired(statistics: Statistics, first: Counts, second: Counts, how: Resampling) -> dict[str, Estimate]:
    """Second minus first of each statistic, for two groups of tasks (indices, not empty) resampled apart."""
    generator = np.random.default_rng(how.seed)
    before, after = (statistics(group[None, :]) for group in (first, second))
    observed = {name: float(after[name][0] - before[name][0]) for name in before}
    if how.replicates == 0:
        return {name: Estimate(defined(value)) for name, value in observed.items()}
    low, high = (_replicated(statistics, group, generator, how.replicates) for group in (first, second))
    return {name: _interval(value, high[name] - low[name]) for name, value in observed.items()}


def _replicated(
    statistics: Statistics, indices: Counts, generator: np.random.Generator, replicates: int
) -> dict[str, Array]:
    """Each statistic on ``replicates`` samples of ``indices`` with replacement."""
    n = len(indices)
    at_once = max(1, min(replicates, _DRAWS_AT_ONCE // n))
    parts: dict[str, list[Array]] = {}
    for start in range(0, replicates, at_once):
        draws = generator.integers(0, n, size=(min(at_once, replicates - start), n), dtype=np.int64)
        for name, values in statistics(indices[draws]).items():
            parts.setdefault(name, []).append(values)
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _interval(observed: float, replicated: Array) -> Estimate:
    values = replicated[~np.isnan(replicated)]
    if np.isnan(observed) or values.size == 0:
        return Estimate(defined(observed))
    low, high = np.quantile(values, [0.025, 0.975])
    return Estimate(float(observed), float(low), float(high))


def defined(value: float) -> float | None:
    """A plain float; None for NaN, so that it can be written as JSON."""
    return None if math.isnan(value) else float(value)
