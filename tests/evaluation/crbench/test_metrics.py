"""The paper's equations, on counts that can be checked by hand and on the paper's own rows."""

from __future__ import annotations

import pytest

from evaluation.crbench.metrics import PAPER_ROWS, PaperRow, Tally, by_kind, score
from evaluation.crbench.sections import FIGURES
from evaluation.crbench.task import Known, ReviewTask
from evaluation.statistics import NO_INTERVALS


def test_the_equations_on_counts_that_fit_on_one_hand() -> None:
    tallies = [
        Tally("a", bugs=1, comments=4, hits=2, valid=1, noise=1, bugs_hit=frozenset({0})),
        Tally("b", bugs=1, comments=1, hits=0, valid=0, noise=1),
        Tally("c", bugs=1),
        Tally("d", bugs=1, comments=3, hits=1, valid=0, noise=1, bugs_hit=frozenset({0})),
    ]

    result = score(tallies)

    assert result.sums["unjudged"] == 1
    assert result.value("recall") == 3 / 4
    assert result.value("recall_per_bug") == 2 / 4
    assert result.value("precision") == 3 / 8
    assert result.value("f1") == pytest.approx(2 * (3 / 8) * (3 / 4) / (3 / 8 + 3 / 4))
    assert result.value("usefulness") == 4 / 8
    assert result.value("snr") == 4 / 3
    assert result.value("comments_per_pull") == 8 / 4


def test_figures_without_noise_or_comments_are_undefined() -> None:
    quiet = score([Tally("a", bugs=1, comments=1, hits=1, bugs_hit=frozenset({0}))])
    silent = score([Tally("a", bugs=1)])

    assert quiet.value("snr") is None
    assert quiet.value("usefulness") == 1.0
    assert {name: silent.value(name) for name in FIGURES} == {
        "recall": 0.0,
        "recall_per_bug": 0.0,
        "precision": None,
        "f1": None,
        "f1_per_bug": None,
        "usefulness": None,
        "snr": None,
        "comments_per_pull": 0.0,
    }


def test_no_tasks_at_all_give_no_figures_and_no_crash() -> None:
    assert set(score([]).estimates) == set(FIGURES)
    assert all(score([]).value(name) is None for name in FIGURES)


@pytest.mark.parametrize("row", PAPER_ROWS, ids=lambda row: row.name)
def test_the_papers_rows_agree_with_our_equations(row: PaperRow) -> None:
    """Recall (of 174 bugs), precision and usefulness give whole counts, and these give its F1 and SNR."""
    hits = round(row.recall * 174)
    comments = round(hits / row.precision)
    useful = round(row.usefulness * comments)
    per_task, rest = divmod(comments - hits, 174)
    tallies = [
        Tally(str(task), bugs=1, comments=per_task + (task < rest) + (task < hits), hits=int(task < hits))
        for task in range(174)
    ]
    extra = Tally("all the others", bugs=0, valid=useful - hits, noise=comments - useful)

    result = score([*tallies, extra], how=NO_INTERVALS)

    assert result.value("recall") == pytest.approx(row.recall, abs=0.00005)
    assert result.value("precision") == pytest.approx(row.precision, abs=0.00005)
    assert result.value("f1") == pytest.approx(row.f1, abs=0.00015)
    assert result.value("usefulness") == pytest.approx(row.usefulness, abs=0.0006)
    assert result.value("snr") == pytest.approx(row.snr, abs=0.02)


def test_every_bug_counts_once_for_its_own_kind() -> None:
    bugs = (
        Known(description="first", category="structural", severity="high"),
        Known(description="second", category="data", severity="low"),
        Known(description="third", category="data", severity="low"),
    )
    task = ReviewTask(instance_id="a", repo="o/n", kept=True, base_commit="", bugs=bugs)
    hit_twice = [Tally("a", bugs=3, comments=2, hits=2, bugs_hit=frozenset({1}))]

    def shares(dimension: str) -> list[tuple[str, int, float | None]]:
        return [(share.kind, share.bugs, share.recall.value) for share in by_kind([task], hit_twice, dimension)]

    assert shares("category") == [("data", 2, 0.5), ("structural", 1, 0.0)], "the most frequent kind first"
    assert shares("severity") == [("high", 1, 0.0), ("low", 2, 0.5)], "the most severe first"
