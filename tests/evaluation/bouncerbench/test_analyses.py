"""Lengths, lines, flips and the chain: small cases by hand, and the paper's own counts."""

from __future__ import annotations

import pytest

from bot.core.errors import OperatorError
from bot.models.protocol import Voice
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.chain import Tickets, chain, chain_section, with_annotations
from evaluation.bouncerbench.compare import compare, used_tools
from evaluation.bouncerbench.operating import (
    ISSUE_WORDS,
    PATCH_CHARACTERS,
    by_length,
    operating_points,
    risk_coverage,
)
from evaluation.bouncerbench.tasks import INPUT, InputTask, OutputTask
from evaluation.bouncerbench.voices import spread
from evaluation.statistics import Resampling, mcnemar


def issue(name: str, quality: int | None, words: int = 1) -> InputTask:
    return InputTask(instance_id=name, repo="o/n", quality=quality, problem_statement="word " * words)


def answer_of(
    level: int | None, p: float | None = None, calls: int | None = None, bounce: bool | None = None
) -> Answer:
    decided = bounce if bounce is not None or level is None else level >= 2
    return Answer(instance_id="x", level=level, bounce=decided, p_bounce=p, tool_calls=calls)


def test_rates_fall_into_the_bins_of_their_length() -> None:
    sizes = [1, 100, 101, 200, 201, 300, 301, 500, 501, 5000]
    tasks = [issue(str(n), 3 if n % 2 else 0, words) for n, words in enumerate(sizes)]
    answers = {str(n): answer_of(3) for n in range(10) if n != 9}
    bins = by_length(tasks, answers, ISSUE_WORDS)
    assert [(bin_.name, bin_.tasks, bin_.to_bounce) for bin_ in bins] == [
        ("≤ 100", 2, 1),
        ("101–200", 2, 1),
        ("201–500", 4, 2),
        ("> 500", 2, 1),
    ]
    assert [bin_.true_positive_rate.value for bin_ in bins] == [1, 1, 1, 0]
    assert [bin_.false_positive_rate.value for bin_ in bins] == [1, 1, 1, 1]


def test_patches_are_measured_in_characters_and_unlabelled_ones_left_out() -> None:
    tasks = [
        OutputTask(instance_id=str(n), repo="o/n", patch="x" * size, bounce=bounce)
        for n, (size, bounce) in enumerate([(1000, True), (1001, False), (2501, None)])
    ]
    assert [bin_.tasks for bin_ in by_length(tasks, {}, PATCH_CHARACTERS)] == [1, 1, 0]


def test_moving_the_line_costs_and_gains_as_counted_by_hand() -> None:
    tasks = [issue("a", 3), issue("b", 2), issue("c", 1), issue("d", 0)]
    answers = {"a": answer_of(2, 90), "b": answer_of(1, 45), "c": answer_of(1, 30), "d": answer_of(0, 5)}
    points = {point.name: point for point in operating_points(INPUT, tasks, answers)}
    at_reasonable, papers = points["at REASONABLY_SPECIFIED"], points["at VAGUE"]
    assert (at_reasonable.metrics.value("r_b"), at_reasonable.metrics.value("fnr_a")) == (1.0, 0.5)
    assert (at_reasonable.bounced, at_reasonable.wrong_share_passed) == (0.75, 0.0)
    assert papers.is_papers
    assert (papers.metrics.value("r_b"), papers.wrong_share_passed) == (0.5, pytest.approx(1 / 3))
    assert points["above 40 %"].metrics.value("f_m") == 1.0
    assert points["above 90 %"].bounced == 0.25


def test_operating_points_count_every_task_of_the_run() -> None:
    tasks = [issue("a", 3), issue("b", 2), issue("c", 0), issue("d", 0)]
    answers = {"a": answer_of(3), "c": answer_of(0)}
    [papers] = [point for point in operating_points(INPUT, tasks, answers) if point.is_papers]
    assert (papers.metrics.value("r_b"), papers.bounced, papers.wrong_share_passed) == (0.5, 0.25, 0.0)
    assert operating_points(INPUT, tasks, {**answers, "b": Answer(instance_id="b", bounce=True)}) == []


def test_there_are_no_probability_lines_where_an_answer_has_none() -> None:
    points = operating_points(INPUT, [issue("a", 3), issue("b", 0)], {"a": answer_of(2, 90), "b": answer_of(0)})
    assert [point.name for point in points] == ["at REASONABLY_SPECIFIED", "at VAGUE", "at IMPOSSIBLE_TO_SOLVE"]


def test_the_risk_coverage_curve_lets_the_best_pass_first() -> None:
    tasks = [issue("a", 0), issue("b", 3), issue("c", 0), issue("d", 3)]
    curve = risk_coverage(
        tasks, {"a": answer_of(0, 10), "b": answer_of(2, 20), "c": answer_of(1, 20), "d": answer_of(3, 99)}
    )
    assert curve is not None
    assert curve.coverage == (0.25, 0.75, 1.0)
    assert curve.risk == pytest.approx((0, 1 / 3, 0.5))
    assert curve.area == pytest.approx((0 + 0.25 + 1 / 3 + 0.5) / 4)
    assert curve.by == "probability"
    assert risk_coverage(tasks, {"a": Answer(instance_id="a", bounce=True)}) is None
    assert risk_coverage(tasks, {}) is None


def test_flips_are_split_as_in_the_papers_output_experiment() -> None:
    """IV.E: 137 flips, 94 corrected (64 with tools), 43 now wrong (21 with tools), of 642 tasks."""
    kinds = [("fixed", 64, 1), ("fixed", 30, 0), ("broken", 21, 2), ("broken", 22, 0), ("same", 505, 0)]
    tasks: list[OutputTask] = []
    first: dict[str, Answer] = {}
    second: dict[str, Answer] = {}
    for kind, count, calls in kinds:
        for _ in range(count):
            name = str(len(tasks))
            tasks.append(OutputTask(instance_id=name, repo="o/n", bounce=True, pass_fraction=0.5))
            first[name] = answer_of(0 if kind == "fixed" else 3)
            second[name] = answer_of(3 if kind in ("fixed", "same") else 0, calls=calls)
    result = compare(tasks, first, second, how=Resampling(replicates=50))
    corrections = [flip for flip in result.flips if flip.corrected]
    mistakes = [flip for flip in result.flips if not flip.corrected]
    assert (len(result.flips), len(corrections), len(mistakes)) == (137, 94, 43)
    assert (used_tools(corrections), used_tools(mistakes), result.with_tools) == (64, 21, 85)
    assert (result.only_second_right, result.only_first_right, result.both_wrong) == (94, 43, 0)
    assert result.p_value == mcnemar(43, 94)
    assert result.p_value < 1e-4
    assert result.differences["r_b"].value == pytest.approx((94 - 43) / 642)


def test_two_equal_runs_do_not_differ() -> None:
    tasks = [issue(str(n), n % 4) for n in range(40)]
    answers = {str(n): answer_of(n % 3) for n in range(40)}
    result = compare(tasks, answers, answers, how=Resampling(replicates=50))
    assert result.flips == ()
    assert result.p_value == 1.0
    assert result.with_tools is None
    assert all(difference.value in (0.0, None) for difference in result.differences.values())


def test_runs_without_a_common_task_cannot_be_compared() -> None:
    with pytest.raises(OperatorError, match="share no task"):
        compare([issue("a", 0), issue("b", 0)], {"a": answer_of(0)}, {"b": answer_of(0)})


def test_a_missing_answer_is_no_flip() -> None:
    tasks = [issue("a", 0), issue("b", 3), issue("c", 3)]
    first = {"a": answer_of(0), "b": answer_of(None), "c": answer_of(3)}
    second = {"a": answer_of(3), "b": answer_of(3), "c": answer_of(None)}
    comparison = compare(tasks, first, second, Resampling(replicates=0))
    assert (comparison.tasks, len(comparison.flips), comparison.only_first_right) == (1, 1, 1)


def test_voices_are_as_far_apart_as_the_outermost() -> None:
    voices = [Voice(model=str(n), probabilities={"p_bounce": n}) for n in (50, 20, 80)]
    assert (spread(voices), spread(voices[:1])) == (60, None)


def test_the_chain_gives_the_papers_lite_figures() -> None:
    """V.B: of 642 tickets 103 vague; 20 + 22 turned away, 229 wrong and 38 correct patches held back."""
    tasks: list[OutputTask] = []
    inputs: dict[str, Answer] = {}
    outputs: dict[str, Answer] = {}

    def add(count: int, vague: bool, correct: bool, away: bool = False, withheld: bool = False) -> None:
        for _ in range(count):
            name = str(len(tasks))
            tasks.append(
                OutputTask(instance_id=name, repo="o/n", patch="x" * 10, bounce=not correct, quality=2 * vague)
            )
            inputs[name] = answer_of(3 if away else 0)
            outputs[name] = answer_of(3 if withheld else 0)

    add(20, vague=True, correct=False, away=True)
    add(14, vague=False, correct=False, away=True)
    add(8, vague=False, correct=True, away=True)
    add(83, vague=True, correct=False, withheld=True)
    add(146, vague=False, correct=False, withheld=True)
    add(38, vague=False, correct=True, withheld=True)
    add(142, vague=False, correct=False)
    add(191, vague=False, correct=True)
    result = chain(tasks, inputs, outputs)
    assert (result.tickets, result.turned_away) == (Tickets(103, 539, 0), Tickets(20, 22, 0))
    assert (result.submitted.all, result.submitted.wrong, result.let_through.all) == (642, 405, 600)
    assert (result.held_back.wrong, result.held_back.correct) == (229, 38)
    assert (result.visible.all, result.visible.wrong, result.visible.correct) == (333, 142, 191)
    assert (result.submitted.wrong_share, result.visible.wrong_share) == (
        pytest.approx(0.631, abs=5e-4),
        pytest.approx(0.426, abs=5e-4),
    )
    assert result.submitted.correct_share == pytest.approx(0.369, abs=5e-4)
    assert result.visible.correct_share == pytest.approx(0.574, abs=5e-4)
    assert result.lost_share == pytest.approx(0.194, abs=5e-4)
    assert result.mean_characters == 10


def test_tickets_without_an_annotation_are_neither_vague_nor_clear() -> None:
    tasks = [OutputTask(instance_id=str(n), repo="o/n", bounce=True) for n in range(14)]
    result = chain(tasks, {"0": answer_of(3)}, {})
    assert result.as_json().items() >= {"vague": 0, "clear": 0, "unknown": 14, "turned_away_unknown": 1}.items()
    [figure] = chain_section("a", "b", result).figures
    assert figure.caption.startswith("14 tickets (14 not annotated). The input bouncer turns away 1 ticket (1 not")
    assert "vague" not in figure.caption


def test_annotations_of_the_issues_stand_in_where_a_task_has_none() -> None:
    issues = [InputTask(instance_id=name, repo="o/n", quality=3) for name in "abc"]
    tasks = [
        OutputTask(instance_id="a", repo="o/n", bounce=True, quality=0),
        OutputTask(instance_id="b", repo="o/n", bounce=True),
        OutputTask(instance_id="d", repo="o/n", bounce=True),
    ]
    result = chain(with_annotations(tasks, issues), {}, {})
    assert result.tickets == Tickets(vague=1, clear=1, unknown=1), "what a task says itself comes first"


def test_a_missing_answer_bounces_nothing_unknown_outcomes_are_left_out() -> None:
    tasks = [
        OutputTask(instance_id="a", repo="o/n", bounce=True),
        OutputTask(instance_id="b", repo="o/n", bounce=None),
    ]
    result = chain(tasks, {}, {"a": Answer(instance_id="a", bounce=None)})
    assert (result.visible.all, result.unanswered_input, result.unanswered_output, result.unlabelled) == (
        1,
        1,
        1,
        1,
    )
    assert result.lost_share is None
    with pytest.raises(OperatorError, match="no output task with a known outcome"):
        chain(tasks[1:], {}, {})
