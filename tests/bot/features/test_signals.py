"""Rates of people's reactions."""

from bot.features.feedback.record import Outcome, Signal
from bot.features.feedback.signals import Row, outcomes, rates


def sign(key: str, outcome: Outcome, category: str = "Security") -> Signal:
    return Signal(key=key, category=category, outcome=outcome, source="reaction")


def test_nothing_counted_is_no_rate() -> None:
    assert rates({}) == ()
    (row,) = rates({"Security": {}})
    assert (row.total, row.share, row.muted) == (0, 0.0, False)


def test_a_word_against_a_finding_outweighs_a_later_change() -> None:
    final = outcomes(
        [sign("a", "ignored"), sign("a", "dismissed"), sign("a", "addressed"), sign("b", "addressed")]
    )
    assert {key: signal.outcome for key, signal in final.items()} == {"a": "dismissed", "b": "addressed"}


def row(category: str = "Security", *, addressed: int = 0, dismissed: int = 0, ignored: int = 0) -> Row:
    (row,) = rates({category: {"addressed": addressed, "dismissed": dismissed, "ignored": ignored}})
    return row


def test_a_category_is_muted_only_on_enough_evidence() -> None:
    assert not row(dismissed=7).muted
    assert row(dismissed=8).muted
    assert not row(dismissed=50, addressed=50).muted


def test_bounces_are_never_muted() -> None:
    assert not row("bounce", dismissed=50).muted


def test_rows_add_up() -> None:
    assert row(addressed=1, dismissed=1, ignored=2).total == 4
