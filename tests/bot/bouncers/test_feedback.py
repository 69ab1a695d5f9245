"""What people's reactions add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from bot.bouncers.feedback import Outcome, Signal, count, muted, outcomes, rates, wilson


def sign(key: str, outcome: Outcome, category: str = "Security") -> Signal:
    return Signal(key=key, category=category, outcome=outcome, source="reaction")


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilson_s(pair: tuple[int, int]) -> None:
    count, of = pair
    rate = wilson(count, of)
    assert (rate.low, rate.high) == pytest.approx(proportion_confint(count, of, method="wilson"), abs=1e-9)


def test_nothing_counted_is_no_rate() -> None:
    assert wilson(0, 0).share == 0.0
    assert rates({}) == ()


def test_a_word_against_a_finding_outweighs_a_later_change() -> None:
    final = outcomes(
        [sign("a", "ignored"), sign("a", "dismissed"), sign("a", "addressed"), sign("b", "addressed")]
    )
    assert {key: each.outcome for key, each in final.items()} == {"a": "dismissed", "b": "addressed"}


def test_a_category_is_muted_only_on_enough_evidence() -> None:
    few = [sign(str(n), "dismissed") for n in range(7)]
    assert muted(count(few)) == frozenset()
    assert muted(count([*few, sign("7", "dismissed")])) == {"Security"}
    half = [sign(str(n), "dismissed" if n % 2 else "addressed") for n in range(100)]
    assert muted(count(half)) == frozenset()


def test_bounces_are_never_muted() -> None:
    assert muted(count([sign(str(n), "dismissed", "bounce") for n in range(50)])) == frozenset()


def test_rows_add_up() -> None:
    (row,) = rates(
        count([sign("a", "addressed"), sign("b", "dismissed"), sign("c", "ignored"), sign("d", "ignored")])
    )
    assert (row.addressed.count, row.dismissed.count, row.ignored.count, row.ignored.of) == (1, 1, 2, 4)
