"""The Scott-Knott test, and its ESD variant that joins groups with a negligible difference. Pure.

Sources: Scott and Knott, A Cluster Analysis Method for Grouping Means in the Analysis of Variance (1974);
Tantithamthavorn et al., An Empirical Comparison of Model Validation Techniques (2017), for the effect size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

#: Cohen's d below which a difference is negligible (Cohen, 1988; the ESD test's own choice).
NEGLIGIBLE = 0.2


def scott_knott_esd(samples: Mapping[str, Sequence[float]], alpha: float = 0.05) -> dict[str, int]:
    """Rank of each treatment: 1 holds the greatest means; treatments of one rank do not differ noticeably.

    ``samples``: for each treatment its measurements, equally many each. First the means are split where that
    explains most variance, again and again, as long as a likelihood-ratio test is significant; then neighbouring
    groups whose difference is negligible are joined. Raises ValueError for fewer than two measurements each.
    """
    groups = scott_knott(samples, alpha)
    joined: list[list[str]] = []
    for group in groups:
        if joined and abs(_cohens_d(_pooled(joined[-1], samples), _pooled(group, samples))) < NEGLIGIBLE:
            joined[-1].extend(group)
        else:
            joined.append(list(group))
    return {name: rank for rank, group in enumerate(joined, 1) for name in group}


def scott_knott(samples: Mapping[str, Sequence[float]], alpha: float = 0.05) -> list[list[str]]:
    """Groups of treatments, greatest means first, by the Scott-Knott test."""
    sizes = {len(values) for values in samples.values()}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError("each treatment needs the same number of measurements, two at least")
    means = {name: float(np.mean(values)) for name, values in samples.items()}
    order = sorted(samples, key=lambda name: (-means[name], name))
    replicates = sizes.pop()
    freedom = len(samples) * (replicates - 1)
    error = sum(float(np.var(values, ddof=1)) for values in samples.values()) / len(samples)
    return _split(order, means, error / replicates, freedom, alpha)


def _split(
    order: list[str], means: Mapping[str, float], variance_of_mean: float, freedom: int, alpha: float
) -> list[list[str]]:
    if len(order) < 2:
        return [order]
    values = [means[name] for name in order]
    at, between = max(((i, _between(values, i)) for i in range(1, len(values))), key=lambda each: each[1])
    k = len(values)
    spread = sum((value - sum(values) / k) ** 2 for value in values)
    sigma = (spread + freedom * variance_of_mean) / (k + freedom)
    if sigma <= 0:
        return [order]
    statistic = math.pi / (2 * (math.pi - 2)) * between / sigma
    # A second to import: not for who only asks for --help.
    from scipy import stats

    if stats.chi2.sf(statistic, k / (math.pi - 2)) >= alpha:
        return [order]
    left, right = order[:at], order[at:]
    return [
        *_split(left, means, variance_of_mean, freedom, alpha),
        *_split(right, means, variance_of_mean, freedom, alpha),
    ]


def _between(values: Sequence[float], at: int) -> float:
    """Sum of squares between the first ``at`` values and the others."""
    left, right, total = sum(values[:at]), sum(values[at:]), sum(values)
    return left**2 / at + right**2 / (len(values) - at) - total**2 / len(values)


def _pooled(group: Sequence[str], samples: Mapping[str, Sequence[float]]) -> list[float]:
    return [value for name in group for value in samples[name]]


def _cohens_d(left: Sequence[float], right: Sequence[float]) -> float:
    n, m = len(left), len(right)
    pooled = ((n - 1) * np.var(left, ddof=1) + (m - 1) * np.var(right, ddof=1)) / (n + m - 2)
    difference = float(np.mean(left) - np.mean(right))
    if pooled == 0:
        return 0.0 if difference == 0 else math.inf
    return difference / math.sqrt(float(pooled))
