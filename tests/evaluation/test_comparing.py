"""``bouncer-eval compare``: an old prompt against a new one, on recorded answers."""

from __future__ import annotations

import pytest

from tests.evaluation.running import PATCH, command, read, refusal, replies, write

COUNT = 24


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second patch is wrong: under the old prompt all pass, under the new one every wrong one bounces."""
    names = [f"o__n-{number}" for number in range(COUNT)]
    tasks = [
        {"instance_id": name, "problem_statement": "T\nB", "patch": PATCH, "resolved": n % 2 == 0}
        for n, name in enumerate(names)
    ]
    write("tasks.jsonl", tasks)
    for prompt in ("paper", "careful"):
        label = {0: "CORRECT_AND_PRECISE", 1: "CORRECT_AND_PRECISE" if prompt == "paper" else "INCORRECT"}
        replies(f"{prompt}.jsonl", {name: label[n % 2] for n, name in enumerate(names)})
        model = f"recorded:{prompt}.jsonl#m"
        command(f"replay bouncerbench-output --tasks tasks.jsonl --prompt {prompt} --model {model} --out {prompt}")


def test_the_difference_is_paired_and_the_prompts_are_named(runs: None) -> None:
    result = command("compare", "paper", "careful", "--replicates", "300", "--json").json
    assert result["tasks"] == COUNT
    assert {"verify.paper", "verify.careful"} <= result["prompts"].keys()
    old, new, difference = (result["figures"]["r_b"][item] for item in ("old", "new", "difference"))
    assert (old[0], new[0], difference[0]) == (0.0, 1.0, 1.0)
    output = command("compare", "paper", "careful", "--replicates", "300").out
    assert "new - old, paired" in output
    assert "Prompts that differ: recognised: not asked to " in output


def test_only_tasks_of_both_runs_are_compared(runs: None) -> None:
    command(
        "replay bouncerbench-output --tasks tasks.jsonl --prompt paper --limit 7 --model "
        "recorded:paper.jsonl#m --out part"
    )
    for old, new in (("part", "careful"), ("careful", "part")):
        assert command("compare", old, new, "--replicates", "0", "--json").json["tasks"] == 7


def test_a_rubric_joins_the_chances_of_wrong_behaviour_and_a_missed_form(runs: None) -> None:
    names = [f"o__n-{number}" for number in range(COUNT)]
    demands = {"demands": [{"text": "It works", "basis": "stated"}]}
    grades = {"grades": [{"demand": 1, "grade": "met"}], "p_behaviour": 20}
    rows = [{"model": "m", "instance_id": name, "purpose": "verify.demands", **demands} for name in names]
    rows += [
        {"model": "m", "instance_id": name, "purpose": "verify", **grades, "p_form": 50 * (n % 2)}
        for n, name in enumerate(names)
    ]
    write("rubric.jsonl", rows)
    command(
        "replay bouncerbench-output --tasks tasks.jsonl --prompt rubric --model recorded:rubric.jsonl#m "
        "--out rubric"
    )
    records = read("rubric/records.jsonl")
    assert not any(record["decision"]["record"]["bounced"] for record in records), "20 % is below the threshold"
    result = command("compare", "careful", "rubric", "--replicates", "300", "--json").json
    assert {"verify.careful", "verify.demands", "verify.rubric"} <= result["prompts"].keys()
    assert result["figures"]["r_b"]["new"][0] == 1.0, "20 % and 50 % are 60 % together: every wrong patch bounces"


def test_runs_of_different_benchmarks_are_not_compared(runs: None) -> None:
    write("issues.jsonl", [{"instance_id": "o__n-1", "problem_statement": "T\nB", "underspecified": 0}])
    replies("r.jsonl", {"o__n-1": "VAGUE"})
    command("replay bouncerbench-input --tasks issues.jsonl --model recorded:r.jsonl#m --out in")
    assert "nothing to compare" in refusal("compare", "paper", "in")
