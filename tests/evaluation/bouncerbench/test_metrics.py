"""The paper's metrics against formulas written apart, libraries, known figures, and at their edges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.errors import OperatorError
from evaluation.benchmark import Missing
from evaluation.bouncerbench.answers import Answer, read_answers
from evaluation.bouncerbench.metrics import Metrics, score
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, InputTask, OutputTask, input_tasks
from evaluation.statistics import NO_INTERVALS

MODELS = ("claude-3.7-sonnet", "gemma3_27b-it-q8_0", "gpt-4.1", "o4-mini", "qwen3_32b-q8_0")


def issue(name: str, quality: int | None) -> InputTask:
    return InputTask(instance_id=name, repo="o/n", quality=quality)


def patch(name: str, bounce: bool | None, fraction: float | None) -> OutputTask:
    return OutputTask(instance_id=name, repo="o/n", bounce=bounce, pass_fraction=fraction)


def labelled(levels: dict[str, int | None]) -> dict[str, Answer]:
    return {
        name: Answer(instance_id=name, level=level, bounce=None if level is None else level >= 2)
        for name, level in levels.items()
    }


def quick(tasks: list[InputTask], answers: dict[str, Answer], missing: str = "count") -> Metrics:
    return score(INPUT, tasks, answers, missing, how=NO_INTERVALS)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS)
def test_the_recorded_responses_give_the_expected_figures(shared_data: Path, model: str) -> None:
    folder = shared_data / "bouncerbench"
    expected = json.loads((folder / "expected_input_metrics.json").read_text())[model]
    answers = read_answers(str(folder / "recorded_input_responses.jsonl.gz"), INPUT)[model]
    tasks = list(input_tasks(str(folder / "annotations.jsonl.gz")))
    result = score(INPUT, tasks, answers, how=NO_INTERVALS).as_json()
    assert result["n"] == 1093
    assert {name: pytest.approx(result[name], abs=1e-6) for name in expected} == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 0.99), st.booleans()), min_size=1, max_size=50))
def test_o_score_is_the_papers_sum(rows: list[tuple[bool, float, bool]]) -> None:
    tasks = [patch(str(n), wrong, share if wrong else 1.0) for n, (wrong, share, _) in enumerate(rows)]
    answers = {str(n): Answer(instance_id=str(n), bounce=bounce) for n, (_, _, bounce) in enumerate(rows)}
    terms = [(-1) ** (bounce + wrong) * (share if wrong else 1.0) for wrong, share, bounce in rows]
    metrics = score(OUTPUT, tasks, answers, how=NO_INTERVALS)
    assert metrics.value("o_score") == pytest.approx(sum(terms) / len(terms))


def test_o_score_without_the_share_of_passing_tests_is_not_defined() -> None:
    tasks = [patch("a", True, None), patch("b", False, 1.0)]
    answers = {name: Answer(instance_id=name, bounce=True) for name in "ab"}
    assert score(OUTPUT, tasks, answers).value("o_score") is None


def test_a_missing_answer_stays_in_the_denominator_and_is_never_right() -> None:
    tasks = [issue("a", 3), issue("b", 2), issue("c", 0), issue("d", 0)]
    answers = labelled({"a": 3, "c": 0, "d": None})
    scores, accepted, left_out = (quick(tasks, answers, how) for how in ("count", "accept", "exclude"))
    assert (scores.n, accepted.n, left_out.n) == (4, 4, 2)
    assert (scores.value("r_b"), accepted.value("r_b"), left_out.value("r_b")) == (0.5, 0.5, 1.0)
    assert (scores.value("recall_accept"), accepted.value("recall_accept")) == (0.5, 1.0)
    assert (scores.value("fnr_a"), accepted.value("fpr_a")) == (0.0, 0.5)
    assert scores.value("i_score") == pytest.approx(2 / 3 * (1.5 + 1.5) / 4)
    assert accepted.value("i_score") == pytest.approx(2 / 3 * (1.5 + 1.5 - 0.5 + 1.5) / 4)
    assert scores.value("raw_agreement") == 0.5
    for metrics in (scores, accepted, left_out):
        assert (metrics.tally.tasks, metrics.tally.answered, metrics.tally.missing) == (4, 2, 2)


def test_unlabelled_tasks_and_answers_to_other_instances_are_counted() -> None:
    metrics = quick([issue("a", 3), issue("b", None)], labelled({"a": 3, "b": 0, "z": 1, "y": 1}))
    assert (metrics.n, metrics.tally.unlabelled_tasks, metrics.tally.unknown_instances) == (1, 1, 2)


def test_one_class_alone_gives_no_invented_rates() -> None:
    metrics = quick([issue("a", 0), issue("b", 1)], labelled({"a": 0, "b": 2}))
    assert metrics.value("r_b") is None
    assert metrics.value("fpr_a") is None
    assert metrics.value("auc_of_label") is None
    assert metrics.value("fnr_a") == 0.5
    assert metrics.value("f_m") == pytest.approx((2 / 3 + 0) / 2)
    assert "r_b" not in metrics.as_json()["intervals"]


def test_auc_uses_probabilities_if_every_answer_has_one_else_labels() -> None:
    tasks = [issue("a", 3), issue("b", 0), issue("c", 2), issue("d", 1)]
    with_p = {
        name: Answer(instance_id=name, level=level, bounce=level >= 2, p_bounce=p)
        for name, level, p in (("a", 2, 80), ("b", 2, 20), ("c", 0, 50), ("d", 0, 50))
    }
    assert quick(tasks, with_p).value("auc") == pytest.approx(3.5 / 4)
    without = {**with_p, "d": with_p["d"].model_copy(update={"p_bounce": None})}
    assert "auc" not in quick(tasks, without).estimates
    assert quick(tasks, without).value("auc_of_label") == pytest.approx(0.5)


@pytest.mark.parametrize("missing", ["count", "accept", "exclude"])
def test_a_missing_answer_leaves_the_auc_to_the_answered_tasks(missing: str) -> None:
    tasks = [issue("a", 3), issue("b", 0), issue("c", 2), issue("d", 1), issue("e", 3)]
    answers = {
        name: Answer(instance_id=name, level=2, bounce=True, p_bounce=p)
        for name, p in (("a", 80), ("b", 20), ("c", 50), ("d", 50))
    }
    result = quick(tasks, {**answers, "e": Answer(instance_id="e", error="no answer came")}, missing)
    assert result.value("auc") == pytest.approx(3.5 / 4)
    assert (result.auc_tasks, result.as_json()["auc_tasks"]) == (4, 4)
    assert "auc_of_label" not in result.estimates


@pytest.mark.parametrize(
    ("tasks", "answers", "message"),
    [
        ([], {"a": 1}, "there are no tasks"),
        ([issue("a", 1)], {}, "there are no answers"),
        ([issue("a", 1)], {"b": 1}, "none of the 1 answers is about one of the 1 tasks"),
    ],
)
def test_nothing_to_score_is_said(tasks: list[InputTask], answers: dict[str, int | None], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        quick(tasks, labelled(answers))


def test_figures_of_no_answer_are_not_invented() -> None:
    with pytest.raises(OperatorError, match="none of the 1 tasks has a known label and an answer"):
        quick([issue("a", 1)], labelled({"a": None}), "exclude")


@pytest.mark.parametrize("missing", ["count", "accept", "exclude"])
def test_brier_score_and_calibration_error_are_those_worked_out_by_hand(missing: Missing) -> None:
    """Over the answers: a task without one is no error of a probability. Bins are tenths, 100 % in the last."""
    percents = {"a": 95.0, "b": 100.0, "c": 40.0, "d": 49.0, "e": 50.0}
    truths = {"a": True, "b": False, "c": False, "d": True, "e": False, "f": True}
    tasks = [InputTask(instance_id=name, repo="o/n", input_bounce=truth) for name, truth in truths.items()]
    answers = {
        name: Answer(instance_id=name, level=2 if percent >= 50 else 0, bounce=percent >= 50, p_bounce=percent)
        for name, percent in percents.items()
    }

    measured = score(INPUT, tasks, answers, missing, how=NO_INTERVALS)

    assert measured.n == (5 if missing == "exclude" else 6)
    assert measured.value("brier") == pytest.approx((0.05**2 + 1 + 0.4**2 + 0.51**2 + 0.5**2) / 5)
    assert measured.value("calibration_error") == pytest.approx((abs(-0.05 + 1) + abs(0.4 - 0.51) + 0.5) / 5)


def test_a_single_answer_is_scored_without_a_warning() -> None:
    """Most resamples hold no answer: they are left out of the intervals."""
    tasks = [issue(f"i-{n}", 3) for n in range(20)]
    answers = {"i-0": Answer(instance_id="i-0", level=3, bounce=True, p_bounce=90.0)}
    measured = score(INPUT, tasks, answers).estimates["brier"]
    assert (measured.value, measured.low, measured.high) == pytest.approx((0.01, 0.01, 0.01))
