"""The statistics of the layer Analyze, held against figures that were worked out apart from them."""

from __future__ import annotations

import math

import pytest

from evaluation.bloom.components import Presence, _cohens_d, analyze, scott_knott, scott_knott_esd

#: Ten measurements with mean 0 and variance 1.
_STEPS = [place - 4.5 for place in range(10)]
NOISE = [step / math.sqrt(sum(step**2 for step in _STEPS) / 9) for step in _STEPS]


@pytest.mark.parametrize(
    ("treatments", "critical"),
    [
        # Scott and Knott (1974): pi / (2 (pi - 2)) * B / s > chi2(0.95; k / (pi - 2)), where s pools the spread of
        # the k means with the error of a mean on k (n - 1) degrees of freedom; solved for the distance of the
        # upper mean from the k - 1 others, n = 10, variance 1.
        (2, 0.9484),
        (3, 0.9218),
    ],
)
def test_means_are_split_from_the_distance_on_that_the_source_gives(treatments: int, critical: float) -> None:
    def groups(distance: float) -> int:
        samples = {f"other {n}": list(NOISE) for n in range(treatments - 1)}
        return len(scott_knott({"upper": [distance + value for value in NOISE], **samples}))

    assert groups(critical * 0.998) == 1
    assert groups(critical * 1.002) == 2


def spread(mean: float, size: int) -> list[float]:
    """Measurements around ``mean`` with a deviation of 0.01: so little that ln(x + 1) hardly bends it."""
    half = size // 2
    unit = 0.01 * math.sqrt((size - 1) / size)
    return [mean + unit] * half + [mean - unit] * half


def test_a_difference_below_a_fifth_of_the_deviation_is_negligible() -> None:
    """With very many measurements the test itself tells both pairs apart; the effect size joins one of them."""
    clear = {"a": spread(0.0, 2000), "b": spread(0.0025, 2000)}
    slight = {"a": spread(0.0, 20000), "b": spread(0.001, 20000)}

    assert len(scott_knott(clear)) == len(scott_knott(slight)) == 2
    assert scott_knott_esd(clear) == {"b": 1, "a": 2}
    assert scott_knott_esd(slight) == {"b": 1, "a": 1}


def test_deviations_are_pooled_over_the_degrees_of_freedom() -> None:
    """Cohen (1988) by hand: both variances are 1 over 2 degrees of freedom each, the means are 1 apart."""
    assert _cohens_d([1, 2, 3], [2, 3, 4]) == pytest.approx(-1.0)


def test_measurements_are_ranked_by_their_logarithm() -> None:
    """One wild value makes the raw measurements too scattered to tell the means apart."""
    steady = [3.0, 3.01, 2.99, 3.0, 3.02, 2.98, 3.0, 3.01, 2.99, 3.0]
    wild = [0.2] * 9 + [12.0]

    assert len(scott_knott({"steady": steady, "wild": wild})) == 1
    assert scott_knott_esd({"steady": steady, "wild": wild}) == {"steady": 1, "wild": 2}


def test_a_fifth_of_the_reports_is_held_out() -> None:
    """Of 25 + 25 reports 5 + 5 are held out, so that an AUC is a multiple of 1/50 and its mean fall of 1/250."""
    names = ("test code", "stack trace", "developer's intent")
    reports = [
        Presence(bug_id=str(n), components={names[0]: n % 2 == 0, names[1]: n % 3 == 0, names[2]: n % 7 < 3})
        for n in range(50)
    ]

    success = {str(n): (n % 2 == 0) != (n % 9 == 0) for n in range(50)}
    analysis, later = analyze(reports, success), analyze(reports, success, seed=1)

    assert analysis.successes == 25
    values = [250 * value for importance in analysis.importances for value in importance.values]
    assert values == pytest.approx([round(value) for value in values])
    assert analysis.importances[0].component == "test code"
    assert analysis.importances[0].mean > 0.1
    # Ten forests from ten seeds in a row: a start one seed later drops the first and adds one.
    shifted = {importance.component: importance.values for importance in later.importances}
    assert all(importance.values[1:] == shifted[importance.component][:-1] for importance in analysis.importances)
    assert {len(importance.values) for importance in analysis.importances} == {10}
    assert len(set(analysis.importances[0].values)) > 1
