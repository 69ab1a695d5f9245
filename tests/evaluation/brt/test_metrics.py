"""A recorded ranking is scored as its authors scored it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import OperatorError
from bot.reproduction.protocol import TestOutcome
from evaluation.brt.libro import read_outcomes, read_rankings
from evaluation.brt.metrics import (
    Bug,
    Draft,
    Features,
    Ranking,
    baseline_consistency,
    brt_share,
    bugs_of,
    found_at_n,
    libro_order,
    precision_of_tests,
    ranking_of,
    rankings,
    suggestion_precision,
    suggestion_recall,
    wasted_at_n,
    wasted_where_found,
)
from evaluation.brt.report import swt_section
from evaluation.dataset import Row, read_rows
from evaluation.run.folder import Record
from tests.evaluation.running import printed


def test_the_selected_ghrb_bugs_give_the_printed_figures(shared_data: Path) -> None:
    ranked = read_rankings(shared_data / "brt" / "libro_ranking_ghrb_selected_th1.csv")

    assert len(ranked) == 21
    assert [sum(found_at_n(ranked, n)) for n in (1, 3, 5)] == [6, 7, 8]


def test_the_threshold_keeps_219_of_251_reproducible_bugs(shared_data: Path) -> None:
    generated = read_rankings(shared_data / "brt" / "libro_ranking_d4j.csv")
    suggested = read_rankings(shared_data / "brt" / "libro_ranking_d4j_selected_th1.csv")

    assert suggestion_precision(suggested) == pytest.approx(219 / 350)
    assert suggestion_recall(suggested, generated) == pytest.approx(219 / 251)


def test_a_reader_gives_up_after_n_tests_or_at_the_end_of_the_list() -> None:
    ranked = [
        Ranking(bug_id="first", first_success_rank=1, total_success_fibs=1, num_clusters=9),
        Ranking(bug_id="fourth", first_success_rank=4, total_success_fibs=1, num_clusters=9),
        Ranking(bug_id="never, long", first_success_rank=None, total_success_fibs=0, num_clusters=9),
        Ranking(bug_id="never, short", first_success_rank=None, total_success_fibs=0, num_clusters=2),
    ]

    assert wasted_at_n(ranked, 3) == (0, 3, 3, 2)
    assert wasted_at_n(ranked, 5) == (0, 3, 5, 2)


def test_precision_of_bugs_and_precision_of_tests_are_two_things() -> None:
    suggested = [
        Ranking(bug_id="a", first_success_rank=1, total_success_fibs=2, num_clusters=3),
        Ranking(bug_id="b", first_success_rank=None, total_success_fibs=0, num_clusters=5),
    ]

    assert suggestion_precision(suggested) == pytest.approx(1 / 2)
    assert precision_of_tests(suggested) == pytest.approx(2 / 8)


def test_swt_bench_counts_one_answer_that_applies_for_each_instance() -> None:
    failing = TestOutcome(status="failed")
    right = Draft(candidate_id="1", applied=True, brt=True, base=failing)
    passing = Draft(candidate_id="2", applied=True, base=TestOutcome(status="passed"))
    bugs = (
        Bug("right", (right,)),
        Bug("second", (passing, right)),
        Bug("unsuggested", (right, passing), (passing,), is_drafted=True),
        Bug("unfit", (Draft(candidate_id="3"),)),
        Bug("silent"),
    )
    counts = swt_section([("m", bugs)]).data["swt_bench"]["m"]
    assert counts == {"instances": 5, "answered": 3, "failing": 1, "reproduced": 1}


def test_shares_of_nothing_are_not_numbers() -> None:
    assert precision_of_tests([]) is None
    assert suggestion_precision([]) is None
    assert suggestion_recall([], []) is None
    assert brt_share({}) is None
    assert baseline_consistency({"a": False}, {"a": True}) is None


def test_baseline_consistency_looks_only_at_what_the_baseline_reproduced() -> None:
    baseline = {"kept": True, "lost": True, "gained": False, "not tried again": True}

    assert baseline_consistency(baseline, {"kept": True, "lost": False, "gained": True}) == pytest.approx(1 / 2)


COLUMNS = "bug_id,first_success_rank,total_success_fibs,num_clusters\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bug_id,first_success_rank\nA,1\n", "rankings.csv:2: total_success_fibs: Field required"),
        (COLUMNS, "no bug is listed"),
        (COLUMNS + "A,x,1,1\n", "rankings.csv:2: first_success_rank: "),
        (COLUMNS + "A,3,1,2\n", "behind the end"),
        (COLUMNS + "A,1,0,2\n", ":2: first_success_rank names a test, but total_success_fibs is 0"),
        (COLUMNS + "A,100000,2,3\n", ":2: total_success_fibs is 2, but first_success_rank names no test"),
        (
            COLUMNS + "A,2,3,3\n",
            "rankings.csv:2: total_success_fibs is 3, but from first_success_rank on there are 2",
        ),
        (COLUMNS + "A,-1,1,3\n", ":2: first_success_rank: "),
        (COLUMNS + "A,1,1,-3\n", ":2: num_clusters: "),
        (COLUMNS + "A,1,1,2\nA,1,1,2\n", "rankings.csv:3: A was given before"),
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


def test_wasted_effort_of_bloom_counts_only_bugs_found_in_time() -> None:
    ranks = {"first": 1, "third": 3, "fourth": 4, "never": None}
    ranked = [
        Ranking(bug_id=bug, first_success_rank=rank, total_success_fibs=int(rank is not None), num_clusters=9)
        for bug, rank in ranks.items()
    ]

    assert [wasted_where_found(ranked, n) for n in (1, 3, 5)] == [0, 2, 5]


def test_outcomes_and_features_of_libro_give_its_published_rankings(shared_data: Path) -> None:
    """Order, clusters, threshold and distinct tests are LIBRO's: every row of both files is equal."""
    folder = shared_data / "brt"
    bugs = read_outcomes(
        str(folder / "libro_example2_n50_GHRB.json.gz"), str(folder / "libro_ranking_features_ghrb.csv")
    )

    suggested, generated = rankings(bugs)

    assert sorted(generated, key=_name) == sorted(read_rankings(folder / "libro_ranking_ghrb.csv"), key=_name)
    published = read_rankings(folder / "libro_ranking_ghrb_selected_th1.csv")
    assert sorted(suggested, key=_name) == sorted(published, key=_name)


def _name(ranking: Ranking) -> str:
    return ranking.bug_id


def test_libro_reproduces_10_of_31_bugs_with_50_tests_each(shared_data: Path) -> None:
    outcomes = str(shared_data / "brt" / "libro_example2_n50_GHRB.json.gz")

    scores = printed("score", "brt", "--outcomes", outcomes, "--replicates", "0")

    assert (scores["instances"], scores["reproduced"]) == (31, 10)
    assert round(100 * scores["brt"], 1) == 32.3  # as the layered framework prints it for Codex
    assert scores["suggestions"]["bugs"] == 0  # without features nothing is ranked


@pytest.mark.parametrize(("bugs", "total", "share"), [("750", 750, 33.5), ("reports", 756, 33.2)])
def test_a_ranking_and_all_bugs_give_the_share_reproduced(
    bugs: str, total: int, share: float, shared_data: Path
) -> None:
    """LIBRO prints 33.5 % of 750 bugs; the list has 814 reports, 58 of which are marked invalid and left out."""
    folder = shared_data / "brt"
    source = str(folder / "defects4j_bug_reports.jsonl.gz") if bugs == "reports" else bugs
    arguments = ("score", "brt", "--rankings", str(folder / "libro_ranking_d4j.csv"), "--replicates", "0")

    scores = printed(*arguments, "--bugs", source)

    assert (scores["instances"], round(100 * scores["brt"], 1)) == (total, share)


def test_the_order_gives_the_published_ranks_of_188_defects4j_bugs(shared_data: Path) -> None:
    """The features name no clusters. Where every size has as many tests as one cluster, a size is a cluster."""
    published = {ranking.bug_id: ranking for ranking in read_rankings(shared_data / "brt/libro_ranking_d4j.csv")}
    bugs: dict[str, list[Row]] = {}
    for row in read_rows(str(shared_data / "brt/libro_ranking_features_d4j.csv.gz")):
        bugs.setdefault(row.data["bug_id"], []).append(row)

    ranks: dict[str, Ranking] = {}
    for name, rows in bugs.items():
        sizes: Counter[str] = Counter()
        for row in rows:
            sizes[row.data["clus_size_output_fib"]] += int(row.data["num_fib_tests"])
        if all(int(size) == count for size, count in sizes.items()):
            tests = [
                test
                for row in rows
                for test in [
                    Draft(
                        candidate_id=row.data["test_path"],
                        brt=row.data["success"] == "True",
                        features=Features(
                            signature=row.data["clus_size_output_fib"], syntax=row.data["test_path"], **flags(row)
                        ),
                    )
                ]
                * int(row.data["num_fib_tests"])
            ]
            ranks[name] = ranking_of(name, libro_order(tests))

    assert len(ranks) == 188
    assert ranks == {name: published[name] for name in ranks}


def flags(row: Row) -> dict[str, Any]:
    names = ("is_crash", "actual_value_match", "exception_type_match", "test_exception_type_match", "test_length")
    return {name: row.data[name] for name in names}


@pytest.mark.parametrize(
    ("crash", "exception", "value", "matches"),
    [
        (True, True, False, True),
        (True, False, True, False),
        (False, True, False, False),
        (False, False, True, True),
    ],
)
def test_a_crash_matches_by_its_exception_and_a_result_by_its_value(
    crash: bool, exception: bool, value: bool, matches: bool
) -> None:
    features = Features(
        signature="", syntax="", test_length=1, is_crash=crash, actual_value_match=value,
        exception_type_match=exception, test_exception_type_match=False,
    )  # fmt: skip

    assert features.match is matches


def test_recall_needs_a_right_test_among_the_suggested_ones() -> None:
    generated = [Ranking(bug_id=bug, first_success_rank=1, total_success_fibs=1, num_clusters=2) for bug in "abc"]
    wrong = Ranking(bug_id="b", first_success_rank=None, total_success_fibs=0, num_clusters=1)

    assert suggestion_recall([generated[0], wrong], generated) == pytest.approx(1 / 3)


def test_drafted_bugs_that_failed_are_counted_one_by_one() -> None:
    records = [Record(task_id=f"psf/requests-{number}", error="not run") for number in (1, 2)]
    assert [bug.bug_id for bug in bugs_of(records, are_drafts=True)] == ["psf/requests-1", "psf/requests-2"]
    given_tests = [Record(task_id=f"requests-1/{number}", error="not run") for number in (1, 2)]
    assert [bug.bug_id for bug in bugs_of(given_tests, are_drafts=False)] == ["requests-1"]


def test_a_given_test_that_failed_belongs_to_the_bug_of_the_others() -> None:
    details = {"instance_id": "psf/requests-1", "candidate_id": "1", "brt": True}
    records = [
        Record(task_id="psf/requests-1/2", error="not run"),
        Record(task_id="psf/requests-1/1", details=details),
    ]
    (bug,) = bugs_of(records, are_drafts=False)
    assert (bug.bug_id, bug.reproduced, bug.error) == ("psf/requests-1", True, "not run")
