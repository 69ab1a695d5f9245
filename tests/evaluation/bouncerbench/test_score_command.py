"""``bouncer-eval score`` and ``list`` as they are typed: tables for people, one JSON object for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.running import command, refusal, write


@pytest.fixture
def tasks() -> Path:
    rows = [
        {"instance_id": name, "underspecified": quality}
        for name, quality in zip("abcd", (3, 2, 1, 0), strict=True)
    ]
    return write("tasks.jsonl.gz", rows)


@pytest.fixture
def answers() -> Path:
    replies = {"m": ("VAGUE", "REASONABLY_SPECIFIED", "WELL_SPECIFIED", "WELL_SPECIFIED"), "n": ("VAGUE",) * 4}
    rows = [
        {"instance_id": name, "model": model, "label": label}
        for model, labels in replies.items()
        for name, label in zip("abcd", labels, strict=True)
    ]
    return write("answers.jsonl", rows)


def test_one_model_gives_one_flat_object(tasks: Path, answers: Path) -> None:
    result = command(f"score bouncerbench-input --tasks {tasks} --predictions {answers} --model-name m --json")
    assert result.err == ""
    assert {"n": 4, "tp_bounce": 1, "fn_bounce": 1, "tn_bounce": 2, "fp_bounce": 0}.items() <= result.json.items()
    assert result.json["r_b"] == 0.5
    assert result.json["f_m"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    low, high = result.json["intervals"]["f_m"]
    assert low <= result.json["f_m"] <= high
    lines = {point["line"]: point for point in result.json["operating_points"]}
    assert lines["at REASONABLY_SPECIFIED"]["f_m"] == 1.0


def test_several_models_stand_side_by_side(tasks: Path, answers: Path) -> None:
    result = command("score", "bouncerbench-input", "--tasks", tasks, "--predictions", answers, "--json").json
    assert result["models"].keys() == {"m", "n"}
    output = command("score", "bouncerbench-input", "--tasks", tasks, "--predictions", answers).out
    assert "the paper, 1,699 tasks" in output
    assert "o4-mini" in output
    assert "m: 4 of 4 tasks scored, 4 answered, 0 missing" in output


def test_a_name_of_any_length_and_look_costs_no_number(tasks: Path) -> None:
    name = "[/bold] " + "a model with a long name " * 8
    answers = write("named.jsonl", [{"instance_id": "a", "model": name, "label": "VAGUE"}])
    output = command("score", "bouncerbench-input", "--tasks", tasks, "--predictions", answers).out
    assert "[/bold]" in output
    assert "…" not in output
    for figure in ("R_b %", "FNR_a %", "0.592"):
        assert figure in output


def test_the_line_can_be_moved_when_scoring(tasks: Path, answers: Path) -> None:
    moved = command(
        f"score bouncerbench-input --tasks {tasks} --predictions {answers} --model-name m --bounce-at "
        "REASONABLY_SPECIFIED --json"
    )
    assert moved.json["f_m"] == 1.0


def test_missing_answers_are_counted_and_shown(tasks: Path) -> None:
    few = write("few.jsonl", [{"instance_id": "a", "bounce": True}, {"instance_id": "z", "bounce": True}])
    output = command("score", "bouncerbench-input", "--tasks", tasks, "--predictions", few).out
    assert "4 of 4 tasks scored, 1 answered, 3 missing (counted as never right)" in output
    assert "1 answer to other instances, ignored" in output
    for how, n in (("count", 4), ("accept", 4), ("exclude", 1)):
        result = command(
            f"score bouncerbench-input --tasks {tasks} --predictions {few} --missing {how} --json"
        ).json
        assert (result["n"], result["missing"], result["missing_counts_as"]) == (n, 3, how)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of --run and --predictions is needed"),
        (["--predictions", "{answers}", "--run", "r"], "one of --run and --predictions is needed"),
        (["--run", "r"], "r is not a run"),
        (["--predictions", "none.jsonl"], "none.jsonl: No such file"),
        (["--predictions", "{answers}", "--model-name", "z"], "holds no model 'z'; it holds m, n"),
        (["--predictions", "{answers}", "--bounce-at", "AWFUL"], "--bounce-at: 'AWFUL' is none of"),
        (["--predictions", "{answers}", "--bounce-at", "WELL_SPECIFIED"], "'WELL_SPECIFIED' is none of"),
        (["--predictions", "{strangers}"], "none of the 1 answers is about one of the 4 tasks"),
        (["--predictions", "{empty}"], "empty.jsonl holds no answer"),
        (["--predictions", "{answers}", "--tasks", "{strangers}"], "none of the 1 tasks has a known label"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(
    tasks: Path, answers: Path, arguments: list[str], message: str
) -> None:
    strangers = write("strangers.jsonl", [{"instance_id": "z", "bounce": True}])
    empty = write("empty.jsonl", [])
    filled = [argument.format(answers=answers, strangers=strangers, empty=empty) for argument in arguments]
    assert message in refusal("score", "bouncerbench-input", "--tasks", tasks, *filled, "--json")


def test_the_two_bouncers_in_a_row_are_scored_from_files() -> None:
    sizes = {"a": 8, "b": 16, "c": 24, "d": 80}
    patches = [
        {"instance_id": name, "patch": "x" * size, "resolved": name in "cd"} for name, size in sizes.items()
    ]
    vague = [{"instance_id": name, "underspecified": 3 if name == "a" else 0} for name in "abcd"]
    inputs = [{"instance_id": name, "bounce": name == "a"} for name in "abcd"]
    outputs = [{"instance_id": name, "model": "m", "label": "INCORRECT"} for name in "bc"]
    arguments = (
        "score", "bouncerbench-chain",
        "--tasks", write("p.jsonl", patches), "--annotations", write("v.jsonl", vague),
        "--input", write("i.jsonl", inputs), "--output", f"{write('o.jsonl', outputs)}#m",
    )  # fmt: skip
    result = command(*arguments, "--json").json
    assert (result["tickets"], result["vague"], result["turned_away_vague"]) == (4, 1, 1)
    assert result["drafted"] == {"all": 3, "correct": 2, "wrong": 1}
    assert result["shown"] == {"all": 1, "correct": 1, "wrong": 0}
    assert (result["lost_share"], result["mean_characters"], result["unanswered_output"]) == (0.5, 40.0, 1)
    assert "shown: 1 instead of 4, wrong 0.0 % instead of 50.0 %" in command(*arguments).out


def test_incorrect_patches_are_told_apart_by_the_tests_that_fail() -> None:
    def status(broken: int, lost: int) -> dict[str, Any]:
        kinds = {"FAIL_TO_PASS": broken, "PASS_TO_PASS": lost}
        return {kind: {"success": ["ok"], "failure": ["t"] * count} for kind, count in kinds.items()}

    outcomes = {"a": (1, 0), "b": (0, 2), "c": (1, 1), "d": (0, 0), "e": (0, 1)}
    tasks = [
        {"instance_id": name, "patch": "x", "tests_status": status(*failures)}
        for name, failures in outcomes.items()
    ]
    answers = [{"instance_id": name, "bounce": name in "ab"} for name in outcomes]
    files = ("--tasks", write("p.jsonl", tasks), "--predictions", write("o.jsonl", answers), "--replicates", 0)
    output = [" ".join(line.split()) for line in command("score", "bouncerbench-output", *files).out.splitlines()]
    assert "o.jsonl both 1 0.0 [0.0, 79.3] 107" in output
    assert "o.jsonl fail-to-pass 1 100.0 [20.7, 100.0] 270" in output
    assert "o.jsonl pass-to-pass 2 50.0 [9.5, 90.5] 28" in output


def test_annotation_labels_stand_beside_table_i() -> None:
    rows = [
        {"instance_id": name, "underspecified": quality, "false_negative": 3 - quality, "other_major_issues": 0.0}
        for name, quality in zip("abcd", (0, 0, 2, 3), strict=True)
    ]
    answers = write("answers.jsonl", [{"instance_id": name, "bounce": True} for name in "abcd"])
    tasks = write("t.jsonl", rows)
    output = command("score", "bouncerbench-input", "--tasks", tasks, "--predictions", answers).out
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "issue specification: 0 2 50.0 396 23.3" in lines
    assert "test validity: 3 2 50.0 481 28.3" in lines
    assert "other issues: yes 0 0.0 135 7.9" in lines


def test_the_benchmarks_are_listed() -> None:
    result = {entry["name"]: entry["verbs"] for entry in command("list", "--json").json["benchmarks"]}
    assert result["bouncerbench-input"] == ["replay", "score", "calibrate"]
    assert result["bouncerbench"] == ["build"]
    assert "crbench" in command("list").out


def test_an_unknown_benchmark_or_option_ends_with_2() -> None:
    for arguments in (("score", "juggling"), ("score", "bouncerbench-input", "--loud"), ("fly",)):
        ran = command(*arguments, code=2)
        assert ran.out == ""
        assert len(ran.err.splitlines()) == 1
