"""``bouncer-eval calibrate``: lines proved on other repositories, the promise by simulation, voices, maps."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bot.calibration import risk
from bot.calibration.risk import Judged
from bot.models.wrappers import load_maps
from evaluation.bouncerbench.answers import Answer
from evaluation.bouncerbench.tasks import input_tasks
from evaluation.calibration import thresholds
from evaluation.calibration.report import _percents, models_as_cases
from tests.evaluation.running import command, read, write

LABELS = ("WELL_SPECIFIED", "REASONABLY_SPECIFIED", "VAGUE", "IMPOSSIBLE_TO_SOLVE")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Two repositories of 100 issues each, every fifth vague."""
    return write(
        tmp_path / "tasks.jsonl",
        [
            {
                "instance_id": f"o__{name}-{number}",
                "underspecified": 2 if number % 5 == 0 else 0,
                "problem_statement": f"{name} fails on {number}",
            }
            for name in ("a", "b")
            for number in range(1, 101)
        ],
    )


def replies(tmp_path: Path, **models: Any) -> Path:
    """Write each model's reply to each issue: a function of its number gives the percent."""
    return write(
        tmp_path / "replies.jsonl",
        [
            {
                "model": model,
                "instance_id": f"o__{name}-{number}",
                "explanation": "x",
                "p_bounce": say(number),
                "label": LABELS[2 if say(number) >= 50 else 0],
            }
            for model, say in models.items()
            for name in ("a", "b")
            for number in range(1, 101)
        ],
    )


def test_lines_are_fitted_on_one_repository_and_proved_on_the_other(tasks: Path, tmp_path: Path) -> None:
    predictions = replies(tmp_path, m=lambda number: 30 if number % 5 == 0 else number % 20)
    ran = command("calibrate", "bouncerbench-input", "--tasks", tasks, "--predictions", predictions, "--json")
    value = ran.json
    mine = value["lines"]["m"]
    assert mine["f_m_fitted_line"] == 1.0
    assert mine["f_m_usual_line"] < 0.5
    assert [score["line"] for score in mine["promise"]] == [20, 20]
    assert [score["caught"] for score in mine["promise"]] == [20, 20]
    assert value["coverage"]["m"][0]["promised"] == 1.0


def test_a_report_on_a_run_has_the_table_of_broken_promises(tasks: Path, tmp_path: Path) -> None:
    predictions = replies(tmp_path, m=lambda number: 30 if number % 5 == 0 else number % 20)
    folder = tmp_path / "run"
    command(f"replay bouncerbench-input --tasks {tasks} --model recorded:{predictions}#m --out {folder}")
    output = command("report", folder).out
    table = output[output.index("Coverage of the promise by simulation") :]
    row = table.splitlines()[4]
    assert row.count("100.0") == 6, "own, same and strict are given in every resample"
    assert "with 1 of them that promise is 50 % sure at most, 95 % takes 19" in output


def test_maps_are_written_where_the_models_read_them(tasks: Path, tmp_path: Path) -> None:
    predictions = replies(tmp_path, m=lambda number: 30 if number % 5 == 0 else 10)
    file = tmp_path / "maps.json"
    common = ("calibrate", "bouncerbench-input", "--tasks", tasks, "--predictions", predictions, "--maps", file)
    ran = command(*common)
    assert load_maps(file) == {"m": {"triage": ((10.0, 0.0), (30.0, 100.0))}}
    assert "error, isotonic" in ran.out


def test_a_mean_is_scored_voice_by_voice_with_its_disagreement(tasks: Path, tmp_path: Path) -> None:
    predictions = replies(
        tmp_path, good=lambda number: 90 if number % 5 == 0 else 10, poor=lambda number: 40 + number % 30
    )
    model = f"mean(recorded:{predictions}#good,recorded:{predictions}#poor)"
    folder = tmp_path / "run"
    command(f"replay bouncerbench-input --tasks {tasks} --model {model} --out {folder} --prompt careful")
    out = command("score", "bouncerbench-input", "--tasks", tasks, "--run", folder, "--replicates", 0).out
    assert "Voices, alone and together" in out
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.split()[:1] in (["good"], ["poor"])}
    assert rows["good"][1:4] == ["200", "0", "1.000"]
    assert float(rows["poor"][3]) < 0.9
    assert "Disagreement" in out
    assert "Brier score" in out
    assert "expected calibration" in out


def test_a_cascade_tells_what_it_saved(tasks: Path, tmp_path: Path) -> None:
    predictions = replies(tmp_path, small=lambda number: 50 if number % 4 == 0 else 5, large=lambda number: 5)
    model = f"cascade(recorded:{predictions}#small@20-60,recorded:{predictions}#large)"
    folder = tmp_path / "run"
    command(f"replay bouncerbench-input --tasks {tasks} --model {model} --out {folder} --prompt careful")
    ran = command("score", "bouncerbench-input", "--tasks", tasks, "--run", folder, "--replicates", 0)
    assert "asked in 50 of 200 tasks: 150 questions saved" in ran.out


def test_one_repository_proves_nothing(tasks: Path, tmp_path: Path) -> None:
    predictions = replies(tmp_path, m=lambda number: 10)
    only = write(tmp_path / "one.jsonl", [json.loads(row) for row in tasks.read_text().splitlines()[:100]])
    common = ("calibrate", "bouncerbench-input", "--tasks", only, "--predictions", predictions)
    assert "of one repository" in command(*common, code=2).err
    command(*common, "--split", "random")
    lone = write(tmp_path / "lone.jsonl", [json.loads(tasks.read_text().splitlines()[0])])
    common = ("calibrate", "bouncerbench-input", "--tasks", lone, "--predictions", predictions)
    assert "too few for a random split" in command(*common, "--split", "random", code=2).err


def test_a_report_is_written_if_the_answers_are_of_one_repository(tasks: Path, tmp_path: Path) -> None:
    predictions = replies(tmp_path, m=lambda number: 10)
    mine = [row for row in read(predictions) if row["instance_id"].startswith("o__a-")]
    some = write(tmp_path / "some.jsonl", mine)
    command("report", f"bouncerbench-input={some}", "--tasks", tasks, "--out", tmp_path / "report.html")


def repositories(generator: random.Random, count: int) -> list[list[int]]:
    """Scores of good subjects in repositories of different sizes, each with a level of its own."""
    return [
        [min(100, max(0, round(generator.gauss(level, 12)))) for _ in range(generator.randint(40, 120))]
        for level in (generator.gauss(35, 10) for _ in range(count))
    ]


def too_much(scores: Sequence[int], line: int) -> bool:
    return sum(score >= line for score in scores) > 0.05 * len(scores)


@pytest.mark.parametrize(("others", "sure"), [(4, 0.8), (19, 0.95), (30, 0.95)])
def test_a_line_from_other_repositories_is_as_sure_as_it_says(others: int, sure: float) -> None:
    generator = random.Random(others)
    rounds, strict, pooled = 300, 0, 0
    for _ in range(rounds):
        *others_scores, new = repositories(generator, others + 1)
        line = thresholds.line_elsewhere(others_scores, 0.05)
        assert line is not None
        strict += too_much(new, line)
        together = risk.lowest_line([score for item in others_scores for score in item], 0.05)
        pooled += too_much(new, risk.NEVER if together is None else together)
    allowed = 1 - sure
    assert strict <= rounds * allowed + 3 * (rounds * allowed * sure) ** 0.5
    # One line for all cases together, as if they were of one repository, promises 95 % and breaks it.
    assert pooled > 0.2 * rounds


def test_a_threshold_elsewhere_takes_19_repositories_to_be_95_percent_sure() -> None:
    assert thresholds.repositories_needed() == 19
    assert thresholds.line_elsewhere([], 0.05) is None


def test_simulated_lines_are_those_of_the_promise() -> None:
    generator = np.random.default_rng(3)
    good = np.bincount(generator.integers(0, 101, 300), minlength=101).astype(np.int64)
    good[60:] //= 4
    drawn = thresholds.resampled_lines(good, 0.1, 200, np.random.default_rng(5))
    samples = np.random.default_rng(5).multinomial(int(good.sum()), good / good.sum(), size=200)
    for line, sample in zip(drawn, samples, strict=True):
        scores = [score for score, count in enumerate(sample) for _ in range(count)]
        expected = risk.lowest_line(scores, 0.1)
        assert line == (risk.NEVER if expected is None else expected)


def test_simulated_lines_for_another_repository_are_those_of_the_promise() -> None:
    generator = np.random.default_rng(4)
    groups = [np.bincount(generator.integers(0, 60 + 4 * number, 80), minlength=101) for number in range(5)]
    drawn = thresholds.resampled_lines_elsewhere(groups, 0.1, 50, np.random.default_rng(6))
    again = np.random.default_rng(6)
    samples = [again.multinomial(int(group.sum()), group / group.sum(), size=50) for group in groups]
    for number, line in enumerate(drawn):
        scores = [np.repeat(np.arange(101), sample[number]).tolist() for sample in samples]
        assert line == thresholds.line_elsewhere(scores, 0.1)


def test_the_promise_holds_on_recorded_answers_of_five_models(shared_data: Path) -> None:
    data = shared_data / "bouncerbench"
    ran = command(
        f"calibrate bouncerbench-input --tasks {data}/annotations.jsonl.gz --predictions "
        f"{data}/recorded_input_responses.jsonl.gz --json"
    )
    value = ran.json
    assert len(value["coverage"]) == 6
    for rows in value["coverage"].values():
        assert len(rows) == 5
        # Of 1,000 resamples; three standard errors of noise.
        assert max(row["broken_elsewhere"] for row in rows) <= 0.05 + 3 * 0.007
        assert max(row["own_broken"] for row in rows) <= 0.05 + 3 * 0.007
        # Drawn on four other repositories, a line is 80 % sure and no more.
        assert sum(row["strict_broken"] for row in rows) / len(rows) <= 0.2 + 3 * 0.007
    lines = value["lines"]
    together, best = lines["mean of 5"], max(lines.values(), key=lambda model_lines: model_lines["auc"])
    assert best is together
    # A fitted line beats the usual one for every model, on repositories that it was not fitted on.
    assert all(model_lines["f_m_fitted_line"] > model_lines["f_m_usual_line"] for model_lines in lines.values())
    assert f"{together['auc']:.3f}" == "0.694"


def test_coverage_tells_the_mean_over_repositories_and_the_highest() -> None:
    assert _percents([0.1, 0.4, 0.1]) == "20.0 [40.0]"


def test_maps_never_fall_and_lower_the_error_of_a_model_that_is_too_sure() -> None:
    generator = random.Random(5)
    cases = [
        Judged(subject=str(number), p_bounce=percent, good=generator.random() > 0.3 + 0.4 * percent / 100)
        for number in range(2000)
        for percent in [generator.choice([2, 10, 50, 90, 98])]
    ]
    for fit in (thresholds.isotonic, thresholds.platt):
        assert (np.diff(fit(cases)) >= 0).all()
    halves = {"a/a": tuple(cases[:1000]), "b/b": tuple(cases[1000:])}
    calibrated = thresholds.calibrated(thresholds.Cases("m", False, halves, 0))
    assert (calibrated.error["as said"] or 0) > 0.15
    for kind in ("isotonic", "Platt"):
        assert (calibrated.brier[kind] or 1) < (calibrated.brier["as said"] or 0) - 0.02
    assert thresholds.calibrated(thresholds.Cases("m", False, {}, 0)).error["as said"] is None


def test_a_map_has_an_answer_for_one_repeated_score() -> None:
    cases = [Judged(subject=str(number), p_bounce=50, good=number % 2 == 0) for number in range(10)]
    for fit in (thresholds.isotonic, thresholds.platt):
        assert fit(cases)[50] == pytest.approx(0.5, abs=0.01)


def test_probabilities_are_put_into_ten_bins_of_equal_width() -> None:
    """By hand: 9 and 11 lie apart, 90 and 100 together."""
    cases = [
        Judged(subject=str(percent), p_bounce=percent, good=good)
        for percent, good in ((9, True), (11, False), (90, False), (100, False), (100, True))
    ]

    bins = risk.bins(cases)

    assert [bin.cases for bin in bins] == [1, 1, 3]
    assert [bin.predicted for bin in bins] == pytest.approx([0.09, 0.11, 2.9 / 3])
    assert [bin.observed for bin in bins] == pytest.approx([0, 1, 2 / 3])
    assert risk.expected_calibration_error(cases) == pytest.approx((0.09 + 0.89 + 0.9) / 5)
    assert risk.brier(cases) == pytest.approx((0.09**2 + 0.89**2 + 0.1**2 + 0 + 1) / 5)


def test_of_two_thresholds_with_an_equal_f_the_higher_one_is_taken() -> None:
    """Bouncing from 20 on harms one good subject, from 40 on it misses one bad subject: the F is the same."""
    cases = [
        Judged(subject=str(percent), p_bounce=percent, good=good)
        for percent, good in ((10, True), (20, False), (30, True), (40, False))
    ]

    assert thresholds.macro_f(2, 1, 2, 2) == thresholds.macro_f(2, 0, 2, 1)
    assert thresholds.best_f([cases]) == 40


def test_a_map_is_fitted_on_the_other_repositories_alone() -> None:
    """One says 50 % of bad subjects only, the other of good ones only: each map is as wrong as it can be."""
    groups = {
        name: tuple(Judged(subject=f"{name}{number}", p_bounce=50, good=good) for number in range(20))
        for name, good in (("a/a", True), ("b/b", False))
    }

    calibrated = thresholds.calibrated(thresholds.Cases("m", False, groups, 0))

    assert (calibrated.brier["as said"], calibrated.brier["isotonic"]) == (0.25, 1.0)


def test_targets_of_platts_map_are_smoothed() -> None:
    """Of three bad cases the target is 4/5 (Platt 1999), not 1."""
    cases = [Judged(subject=str(number), p_bounce=50, good=False) for number in range(3)]

    assert thresholds.platt(cases)[50] == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(("repositories", "line"), [(19, 20), (38, 39), (39, 39)])
def test_the_line_elsewhere_is_the_highest_or_from_39_on_the_second(repositories: int, line: int) -> None:
    """Repository i allows no line below i + 1. With 39 of them the second strictest is 95 % sure."""
    groups = [[number] * 40 for number in range(1, repositories + 1)]

    assert thresholds.line_elsewhere(groups, 0.5) == line


def answer_of(name: str, level: int | None, p_bounce: float | None = None) -> Answer:
    return Answer(instance_id=name, level=level, bounce=(level or 0) >= 2, p_bounce=p_bounce)


def test_a_mean_bounces_from_the_middle_on_and_needs_every_voice(tasks: Path) -> None:
    items = list(input_tasks(str(tasks)))
    first = {"o__a-1": answer_of("o__a-1", 1, 40), "o__a-2": answer_of("o__a-2", 3, 90)}
    second = {"o__a-1": answer_of("o__a-1", 2, 60)}

    mean = thresholds.mean(items, [first, second])

    assert list(mean) == ["o__a-1"]
    assert (mean["o__a-1"].bounce, mean["o__a-1"].p_bounce) == (True, 50)


def test_one_answer_without_a_probability_makes_all_cases_labels(tasks: Path) -> None:
    items = list(input_tasks(str(tasks)))
    answers = {
        "o__a-1": answer_of("o__a-1", 1, 40),
        "o__a-2": answer_of("o__a-2", 2),
        "o__a-3": answer_of("o__a-3", None),
    }

    cases = thresholds.cases("m", items, answers)

    assert (cases.by_label, cases.left_out) == (True, 198)
    assert [case.p_bounce for case in cases.every] == [33, 66]


def test_labels_bounce_at_vague_by_the_usual_line(tasks: Path) -> None:
    """Every vague issue is called vague, every other reasonably specified."""
    rows = read(tasks)
    label = {2: "VAGUE", 0: "REASONABLY_SPECIFIED"}
    predictions = write(
        tasks.with_name("labels.jsonl"),
        [{"instance_id": row["instance_id"], "model": "m", "label": label[row["underspecified"]]} for row in rows],
    )

    ran = command("calibrate", "bouncerbench-input", "--tasks", tasks, "--predictions", predictions, "--json")

    model = ran.json["lines"]["m"]
    assert (model["by_label"], model["f_m_usual_line"], model["left_out"]) == (True, 1.0, 0)
    assert [proof["line"] for proof in model["promise"]] == [34, 34]


def test_the_seed_draws_the_parts_of_a_random_split(tasks: Path) -> None:
    items = list(input_tasks(str(tasks)))
    answers = {task.instance_id: answer_of(task.instance_id, 1, 10) for task in items}

    splits = [models_as_cases(items, {"m": answers}, "random", seed)[0].groups for seed in (0, 1, 1)]

    assert splits[0] != splits[1] == splits[2]
    assert len(splits[0]) == 5
