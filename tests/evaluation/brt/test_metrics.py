"""A recorded ranking is scored as its authors scored it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.errors import OperatorError
from evaluation.brt.metrics import (
    Ranking,
    baseline_consistency,
    brt_share,
    found_at_n,
    precision_of_tests,
    read_rankings,
    suggestion_precision,
    suggestion_recall,
    wasted_at_n,
)


def test_the_selected_defects4j_bugs_give_the_printed_figures(shared_data: Path) -> None:
    rankings = read_rankings(shared_data / "brt" / "libro_ranking_d4j_selected_th1.csv")

    assert len(rankings) == 350
    assert [sum(found_at_n(rankings, n)) for n in (1, 3, 5)] == [149, 184, 199]
    assert [sum(wasted_at_n(rankings, n)) for n in (1, 3, 5)] == [201, 539, 797]


def test_the_selected_ghrb_bugs_give_the_printed_figures(shared_data: Path) -> None:
    rankings = read_rankings(shared_data / "brt" / "libro_ranking_ghrb_selected_th1.csv")

    assert len(rankings) == 21
    assert [sum(found_at_n(rankings, n)) for n in (1, 3, 5)] == [6, 7, 8]


def test_the_threshold_keeps_219_of_251_reproducible_bugs(shared_data: Path) -> None:
    generated = read_rankings(shared_data / "brt" / "libro_ranking_d4j.csv")
    suggested = read_rankings(shared_data / "brt" / "libro_ranking_d4j_selected_th1.csv")

    assert suggestion_precision(suggested) == pytest.approx(219 / 350)
    assert suggestion_recall(suggested, generated) == pytest.approx(219 / 251)


def test_a_reader_gives_up_after_n_tests_or_at_the_end_of_the_list() -> None:
    rankings = [
        Ranking(bug_id="first", first_success_rank=1, total_success_fibs=1, num_clusters=9),
        Ranking(bug_id="fourth", first_success_rank=4, total_success_fibs=1, num_clusters=9),
        Ranking(bug_id="never, long", first_success_rank=None, total_success_fibs=0, num_clusters=9),
        Ranking(bug_id="never, short", first_success_rank=None, total_success_fibs=0, num_clusters=2),
    ]

    assert wasted_at_n(rankings, 3) == (0, 3, 3, 2)
    assert wasted_at_n(rankings, 5) == (0, 3, 5, 2)


def test_precision_of_bugs_and_precision_of_tests_are_two_things() -> None:
    found = [
        Ranking(bug_id="a", first_success_rank=1, total_success_fibs=2, num_clusters=3),
        Ranking(bug_id="b", first_success_rank=None, total_success_fibs=0, num_clusters=5),
    ]

    assert suggestion_precision(found) == pytest.approx(1 / 2)
    assert precision_of_tests(found) == pytest.approx(2 / 8)


def test_shares_of_nothing_are_not_numbers() -> None:
    assert precision_of_tests([]) is None
    assert suggestion_precision([]) is None
    assert suggestion_recall([], []) is None
    assert brt_share({}) is None
    assert baseline_consistency({"a": False}, {"a": True}) is None


def test_a_bug_that_could_not_be_run_stays_in_the_denominator() -> None:
    assert brt_share({"a": True, "b": False, "could not be run": False}) == pytest.approx(1 / 3)


def test_baseline_consistency_looks_only_at_what_the_baseline_reproduced() -> None:
    baseline = {"kept": True, "lost": True, "gained": False, "not tried again": True}

    assert baseline_consistency(baseline, {"kept": True, "lost": False, "gained": True}) == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bug_id,first_success_rank\nA,1\n", "no column num_clusters, total_success_fibs"),
        ("bug_id,first_success_rank,total_success_fibs,num_clusters\n", "no bug is listed"),
        ("bug_id,first_success_rank,total_success_fibs,num_clusters\nA,x,1,1\n", "line 2: first_success_rank"),
        (
            "bug_id,first_success_rank,total_success_fibs,num_clusters\nA,,1,1\n",
            "line 2: first_success_rank: empty",
        ),
        ("bug_id,first_success_rank,total_success_fibs,num_clusters\nA,1\n", "line 2: total_success_fibs"),
        ("bug_id,first_success_rank,total_success_fibs,num_clusters\nA,3,1,2\n", "behind the end"),
        ("bug_id,first_success_rank,total_success_fibs,num_clusters\nA,1,1,2\nA,1,1,2\n", "A is listed twice"),
    ],
)
def test_a_malformed_ranking_is_refused_with_one_line_that_says_where(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "rankings.csv"
    path.write_text(text)

    with pytest.raises(OperatorError, match=complaint) as refusal:
        read_rankings(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_ranking_as_a_spreadsheet_saves_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rankings.csv"
    path.write_bytes(b"\xef\xbb\xbfbug_id,first_success_rank,total_success_fibs,num_clusters\r\nA,1,2,3\r\n")
    assert [ranking.bug_id for ranking in read_rankings(path)] == ["A"]
    with pytest.raises(OperatorError, match=r"none\.csv: No such file or directory$"):
        read_rankings(tmp_path / "none.csv")
