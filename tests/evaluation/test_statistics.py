"""Our formulas against scikit-learn and scipy on 1,000 random label vectors, and their edges."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation import statistics as ours

if TYPE_CHECKING:
    from types import ModuleType

MANY = settings(max_examples=200, deadline=None)


def scipy_stats() -> ModuleType:
    """Import the library when a test uses it: at the top it would take every collection of tests half a second."""
    import scipy.stats

    return scipy.stats


def sklearn_metrics() -> ModuleType:
    import sklearn.metrics

    return sklearn.metrics


def unchecked() -> AbstractContextManager[None]:
    """Return a block in which scikit-learn does not validate parameters."""
    import sklearn

    return sklearn.config_context(skip_parameter_validation=True)


def pairs(labels: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    label = st.integers(0, labels - 1)
    return st.lists(st.tuples(label, label), min_size=1, max_size=60)


def table(rows: list[int], columns: list[int], shape: tuple[int, int]) -> ours.Counts:
    return ours.contingency(rows, columns, shape, np.arange(len(rows))[None, :])


def reference(function: Callable[..., float], *arguments: object, **keywords: object) -> float:
    """A library's value; NaN where it warns that there is none."""
    with warnings.catch_warnings(), unchecked():
        warnings.simplefilter("ignore")
        return float(function(*arguments, **keywords))


def same(mine: float, theirs: float) -> bool:
    return (math.isnan(mine) and math.isnan(theirs)) or math.isclose(mine, theirs, abs_tol=1e-9)


@MANY
@given(pairs(2))
def test_precision_recall_and_f_are_those_of_scikit_learn(given_pairs: list[tuple[int, int]]) -> None:
    truth, predicted = (list(side) for side in zip(*given_pairs, strict=True))
    counts = table(truth, predicted, (2, 2))
    with unchecked():
        theirs = sklearn_metrics().precision_recall_fscore_support(
            truth, predicted, labels=[0, 1], zero_division=0
        )
    for label in (0, 1):
        assert same(ours.precision(counts, label)[0], theirs[0][label])
        assert same(ours.recall(counts, label)[0], theirs[1][label])
        assert same(ours.f_measure(counts, label)[0], theirs[2][label])
    assert same(ours.macro_f(counts)[0], theirs[2].mean())


@MANY
@given(pairs(4))
def test_agreement_is_that_of_scikit_learn_and_scipy(given_pairs: list[tuple[int, int]]) -> None:
    first, second = (list(side) for side in zip(*given_pairs, strict=True))
    counts = table(first, second, (4, 4))
    assert same(ours.raw_agreement(counts)[0], reference(sklearn_metrics().accuracy_score, first, second))
    labels = sorted({*first, *second})
    kappa = reference(sklearn_metrics().cohen_kappa_score, first, second, labels=labels)
    assert same(ours.cohen_kappa(counts)[0], math.nan if len(labels) == 1 else kappa)
    rho = reference(lambda a, b: scipy_stats().spearmanr(a, b).statistic, first, second)
    assert same(ours.spearman_rho(counts)[0], rho)


@MANY
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 1)), min_size=1, max_size=60))
def test_auc_is_that_of_scikit_learn(given_pairs: list[tuple[int, int]]) -> None:
    scores, positive = (list(side) for side in zip(*given_pairs, strict=True))
    counts = table(scores, positive, (101, 2))
    if len(set(positive)) == 1:
        assert math.isnan(ours.auc(counts)[0])
    else:
        assert same(ours.auc(counts)[0], reference(sklearn_metrics().roc_auc_score, positive, scores))


def test_mcnemar_of_thousands_of_differences_does_not_overflow() -> None:
    assert 0 < ours.mcnemar(2600, 2900) < 1e-3
    assert ours.mcnemar(1, 3) == 2 * (1 + 4) / 2**4
    assert ours.mcnemar(0, 0) == 1.0


@MANY
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_fleiss_kappa_of_two_raters_is_cohens_on_both_orders(pairs: list[tuple[int, int]]) -> None:
    """Scott's pi: with two raters, chance is the pooled distribution, as in Cohen's kappa of both orders."""
    ratings = np.array([np.bincount(pair, minlength=4) for pair in pairs])
    mine = ours.fleiss_kappa(ratings)
    if (ratings.sum(0) > 0).sum() == 1:
        assert mine is None
    else:
        first, second = zip(*pairs, strict=True)
        assert mine is not None
        assert same(mine, reference(sklearn_metrics().cohen_kappa_score, first + second, second + first))


def test_fleiss_kappa_of_the_example_in_the_literature_is_0_21() -> None:
    """Fourteen raters, ten subjects, five categories."""
    ratings = np.array(
        [
            [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
            [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
        ]
    )  # fmt: skip
    assert ours.fleiss_kappa(ratings) == pytest.approx(0.210, abs=5e-4)


def test_fleiss_kappa_refuses_subjects_with_different_numbers_of_ratings() -> None:
    with pytest.raises(ValueError, match="same number of ratings"):
        ours.fleiss_kappa(np.array([[2, 0], [1, 2]]))
    with pytest.raises(ValueError, match="at least 2"):
        ours.fleiss_kappa(np.array([[1, 0], [0, 1]]))


@MANY
@given(st.integers(1, 500), st.data())
def test_wilson_is_that_of_scipy(total: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, total))
    low, high = scipy_stats().binomtest(successes, total).proportion_ci(method="wilson")
    mine = ours.wilson(successes, total)
    assert mine.low is not None
    assert mine.high is not None
    assert mine.low == pytest.approx(low, abs=1e-12)
    assert mine.high == pytest.approx(high, abs=1e-12)


def means(values: ours.Array) -> Callable[[ours.Counts], dict[str, ours.Array]]:
    return lambda draws: {"mean": values[draws].mean(axis=1)}


def test_bootstrap_intervals_agree_with_scipy() -> None:
    values = np.random.default_rng(5).normal(3.0, 2.0, size=400)
    mine = ours.bootstrap(means(values), 400, ours.Resampling(1, 4000))["mean"]
    theirs = (
        scipy_stats()
        .bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=np.random.default_rng(2))
        .confidence_interval
    )
    assert mine.value == pytest.approx(values.mean())
    assert mine.low == pytest.approx(theirs.low, abs=0.02)
    assert mine.high == pytest.approx(theirs.high, abs=0.02)


def test_bootstrap_is_repeatable_and_depends_on_its_seed() -> None:
    values = np.arange(50.0)
    first = ours.bootstrap(means(values), 50, ours.Resampling(3))
    assert first == ours.bootstrap(means(values), 50, ours.Resampling(3))
    assert first != ours.bootstrap(means(values), 50, ours.Resampling(4))


def test_bootstrap_in_blocks_is_bootstrap_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(40.0)
    at_once = ours.bootstrap(means(values), 40, ours.Resampling(replicates=100))
    monkeypatch.setattr(ours, "_DRAWS_AT_ONCE", 40 * 7)
    assert ours.bootstrap(means(values), 40, ours.Resampling(replicates=100)) == at_once


def test_nothing_to_estimate_gives_no_value_and_no_interval() -> None:
    def rates(draws: ours.Counts) -> dict[str, ours.Array]:
        counts = ours.contingency([], [], (2, 2), draws)
        return {"kappa": ours.cohen_kappa(counts), "auc": ours.auc(counts)}

    assert ours.bootstrap(rates, 0) == {"kappa": ours.Estimate(None), "auc": ours.Estimate(None)}
    assert ours.wilson(0, 0) == ours.Estimate(None)
