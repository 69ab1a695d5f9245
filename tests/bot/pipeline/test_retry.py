"""When a job that failed is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.pipeline.runner import LONGEST_ASKED_SECONDS, MAX_TRIES, pause


@pytest.mark.parametrize(("tries", "seconds"), [(1, 2), (2, 4), (3, 8), (9, 512), (10, 900), (40, 900)])
def test_pauses_double_up_to_a_quarter_of_an_hour(tries, seconds):
    assert pause(tries, None, 0.0) == seconds


def test_an_unreachable_github_is_tried_for_about_an_hour():
    assert 45 * 60 < sum(pause(tries, None, 0.0) for tries in range(1, MAX_TRIES)) < 75 * 60


def test_what_the_other_side_asks_for_is_honoured():
    assert pause(1, 60.0, 0.0) == 60.0
    assert pause(12, 60.0, 0.0) == 900.0


@given(st.integers(1, 100), st.none() | st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_a_pause_is_never_shorter_than_asked_nor_without_end(tries, retry_after, jitter):
    wait = pause(tries, retry_after, jitter)
    assert min(retry_after or 0.0, LONGEST_ASKED_SECONDS) <= wait <= LONGEST_ASKED_SECONDS + 15
