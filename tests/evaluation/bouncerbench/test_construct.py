"""The benchmark is built from raw material as the paper says (BouncerBench, II.A), and every step is counted."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import OperatorError
from evaluation.bouncerbench.construct import Patch, applies, build, read_annotations, read_instances, read_patches
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import command, read, refusal, write

DIFF = "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-a\n+{}\n"


def annotation(name: str, quality: int, validity: int = 0, other: float = 0.0) -> dict[str, Any]:
    return {
        "instance_id": name,
        "underspecified": quality,
        "false_negative": validity,
        "other_major_issues": other,
    }


def instance(name: str) -> dict[str, Any]:
    return {"instance_id": name, "problem_statement": f"Title of {name}\nText.", "base_commit": "c0ffee"}


def submitted(name: str, text: str, resolved: bool, by: str = "agent", **more: Any) -> dict[str, Any]:
    return {"instance_id": name, "submission": by, "model_patch": text, "resolved": resolved, **more}


@pytest.fixture
def material() -> dict[str, Path]:
    annotations = [
        annotation("o__n-1", 0),
        annotation("o__n-2", 2),
        annotation("o__n-3", 3),
        annotation("o__n-4", 1, validity=2),
        annotation("o__n-5", 1, other=1.0),
        annotation("o__n-6", 1),
        annotation("o__n-7", 2),
    ]
    patches = [
        submitted("o__n-1", DIFF.format("right"), True),
        submitted("o__n-1", DIFF.format("right"), True, by="copier"),
        submitted("o__n-1", DIFF.format("wrong"), False, pass_frac=0.5),
        submitted("o__n-2", DIFF.format("right"), True),
        submitted("o__n-2", DIFF.format("wrong"), False),
        submitted("o__n-3", DIFF.format("right"), True),
        submitted("o__n-4", DIFF.format("wrong"), False),
        submitted("o__n-6", "", False),
        submitted("o__n-6", DIFF.format("odd"), False, patch_successfully_applied=False),
        submitted("o__n-8", DIFF.format("x"), False),
    ]
    return {
        "annotations": write("a.jsonl", annotations),
        "instances": write("i.jsonl.gz", [instance(f"o__n-{n}") for n in (1, 2, 3, 4, 5, 6)]),
        "patches": write("p.jsonl", patches),
    }


def test_a_patch_that_did_not_apply_elsewhere_is_no_duplicate() -> None:
    """The same text, recorded as not applying (or refused by git) for one agent and as applied for another."""
    text = DIFF.format("same")
    failed = submitted("o__n-1", text, False, by="a", patch_successfully_applied=False)
    unknown = submitted("o__n-1", text, False, by="b")
    applied = submitted("o__n-1", text, False, by="c", patch_successfully_applied=True)
    annotations = read_annotations(str(write("a.jsonl", [annotation("o__n-1", 0)])))
    instances = read_instances(str(write("i.jsonl", [instance("o__n-1")])))
    for rows in ([failed, applied], [failed, unknown, applied], [applied, unknown, failed]):
        patches = list(read_patches(str(write("p.jsonl", rows))))
        built = build(annotations, instances, patches, seed=0, fits=lambda *_: False)
        assert [row["submission"] for row in built.output] == ["c"]
        assert built.steps["patches that do not apply, removed"] == 1


def test_equal_patches_with_contradicting_outcomes_are_left_out() -> None:
    text = DIFF.format("same")
    rows = [submitted("o__n-1", text, resolved, by=f"agent-{resolved}") for resolved in (True, False)]
    annotations = read_annotations(str(write("a.jsonl", [annotation("o__n-1", 0)])))
    instances = read_instances(str(write("i.jsonl", [instance("o__n-1")])))
    built = build(annotations, instances, read_patches(str(write("p.jsonl", rows))), seed=0)
    assert built.output == []
    assert built.steps["equal patches with contradicting outcomes, removed"] == 2
    assert built.steps["duplicate patches, removed"] == 0


def test_every_step_is_counted_and_vague_issues_get_wrong_patches_only(
    material: dict[str, Path], tmp_path: Path
) -> None:
    arguments = [part for name, file in material.items() for part in (f"--{name}", file)]
    ran = command("build", "bouncerbench", *arguments, "--seed", 7, "--out", tmp_path / "built", "--json")
    assert ran.json["steps"] == {
        "annotated instances": 7,
        "of these with the issue's text (input tasks)": 6,
        "input tasks to bounce": 2,
        "evaluable instances (valid tests, no other major issue)": 4,
        "of these vague": 2,
        "patches submitted": 10,
        "patches that do not apply, removed": 2,
        "equal patches with contradicting outcomes, removed": 0,
        "duplicate patches, removed": 1,
        "patches for annotated instances": 6,
        "of these incorrect": 3,
        "evaluable instances without any patch, removed": 1,
        "vague instances with correct patches only, removed": 1,
        "output tasks": 2,
        "output tasks to bounce": ran.json["steps"]["output tasks to bounce"],
        "Lite: tasks in both": 2,
        "Lite: issues to bounce": 1,
    }
    outputs = {row["instance_id"]: row for row in read(tmp_path / "built" / "output.jsonl.gz")}
    assert outputs.keys() == {"o__n-1", "o__n-2"}
    assert outputs["o__n-2"]["output_bounce"] is True
    assert outputs["o__n-2"]["base_commit"] == "c0ffee"
    lite = read(tmp_path / "built" / "lite.jsonl.gz")
    assert {(row["instance_id"], row["input_bounce"]) for row in lite} == {("o__n-1", False), ("o__n-2", True)}
    again = command("build", "bouncerbench", *arguments, "--seed", 7, "--out", tmp_path / "again")
    assert "output tasks" in again.out
    assert (tmp_path / "built/lite.jsonl.gz").read_bytes() == (tmp_path / "again/lite.jsonl.gz").read_bytes()


def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_the_lines() -> None:
    rows = [submitted("o__n-1", DIFF.format(n), n % 2 == 0, by=f"agent-{n}") for n in range(40)]
    annotations = read_annotations(str(write("a.jsonl", [annotation("o__n-1", 0)])))
    instances = read_instances(str(write("i.jsonl", [instance("o__n-1")])))

    def drawn(seed: int, shuffle: int) -> str:
        random.Random(shuffle).shuffle(rows)
        patches = read_patches(str(write("p.jsonl", rows)))
        return str(build(annotations, instances, patches, seed).output[0]["patch"])

    assert drawn(1, 1) == drawn(1, 2) == drawn(1, 3)
    assert len({drawn(seed, 1) for seed in range(12)}) > 6


def test_of_several_annotators_the_most_severe_label_counts() -> None:
    rows = [annotation("o__n-1", 0), annotation("o__n-1", 2, validity=1), annotation("o__n-1", 1, other=1.0)]
    result = read_annotations(str(write("a.jsonl", rows)))["o__n-1"]
    assert (result.quality, result.test_validity, result.other_issues) == (2, 1, True)


def test_a_submission_gives_correct_patches_of_vague_issues_too(material: dict[str, Path], tmp_path: Path) -> None:
    arguments = [part for name, file in material.items() for part in (f"--{name}", file)]
    command("build", "bouncerbench", *arguments, "--submission", "agent", "--out", tmp_path / "s")
    rows = read(tmp_path / "s" / "output.jsonl.gz")
    assert [(row["instance_id"], row["resolved"]) for row in rows] == [
        ("o__n-1", True),
        ("o__n-2", True),
        ("o__n-3", True),
    ]
    assert "no patch of submission 'nobody'; there are: agent, copier" in refusal(
        "build", "bouncerbench", *arguments, "--submission", "nobody", "--out", tmp_path / "s"
    )


@pytest.mark.parametrize(
    ("text", "resolved", "applied", "expected"),
    [
        (DIFF.format("b"), False, None, True),
        (DIFF.format("b"), False, False, False),
        ("", False, None, False),
        ("not a diff", False, None, False),
        ("diff --git a/x b/x\nnew file mode 100644\nindex 0..e\n", False, None, False),
        ("diff --git a/x b/y\nrename from x\nrename to y\n", False, None, True),
        ("@@ -1,2 +1,3 @@\n context\n\n context\n+added", False, None, True),
        ("unreadable, but the tests pass with it", True, None, True),
    ],
)
def test_a_patch_without_a_change_cannot_apply(
    text: str, resolved: bool, applied: bool | None, expected: bool
) -> None:
    patch = Patch(
        instance_id="a", submission="", text=text, resolved=resolved, pass_fraction=None, applied=applied
    )
    assert applies(patch) is expected


def test_raw_material_without_labels_is_refused() -> None:
    with pytest.raises(OperatorError, match=r"p\.jsonl:1: neither resolved nor a test outcome"):
        list(read_patches(str(write("p.jsonl", [{"instance_id": "a", "patch": "x"}]))))
    with pytest.raises(OperatorError, match=r"a\.jsonl:1: underspecified and false_negative are needed"):
        read_annotations(str(write("a.jsonl", [{"instance_id": "a", "underspecified": 1}])))


def test_on_the_research_data_the_steps_add_up(shared_data: Path, tmp_path: Path) -> None:
    ran = command(
        f"build bouncerbench --annotations {shared_data}/bouncerbench/annotations.jsonl.gz --instances "
        f"{shared_data}/swebench/instances.jsonl.gz --patches "
        f"{shared_data}/swebench/labelled_patches.jsonl.gz --out {tmp_path}/built --json"
    )
    steps = ran.json["steps"]
    assert steps["annotated instances"] == 1093
    assert steps["of these with the issue's text (input tasks)"] == 694
    removed = steps["evaluable instances without any patch, removed"]
    removed += steps["vague instances with correct patches only, removed"]
    evaluable = steps["evaluable instances (valid tests, no other major issue)"]
    assert steps["output tasks"] == evaluable - removed
    with gzip.open(tmp_path / "built/output.jsonl.gz") as stream:
        rows = [json.loads(line) for line in stream]
    assert all(row["output_bounce"] for row in rows if row["input_quality"] >= 2)
    assert len({row["instance_id"] for row in rows}) == len(rows) == steps["output tasks"]


def test_with_clones_patches_that_git_refuses_are_removed(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "repos" / "o+n")
    base = scratch.commit("Begin", "m.py", "a")
    scratch.commit("Go on", "m.py", "c")
    later = DIFF.format("b").replace("-a\n", "-c\n")
    patches = [
        submitted("o__n-1", DIFF.format("b").rstrip("\n"), False),
        submitted("o__n-1", later, False),
        submitted("o__n-1", DIFF.format("b").replace("m.py", "../m.py"), False),
        submitted("o__n-1", later.replace("+b", "+passes"), True),
        submitted("o__n-1", later.replace("+b", "+recorded"), False, patch_successfully_applied=True),
        submitted("o__n-2", later, False),
    ]
    rows = [{**instance("o__n-1"), "base_commit": base}, {**instance("o__n-2"), "base_commit": "0" * 40}]
    arguments = [
        "build", "bouncerbench", "--annotations", write("a.jsonl", [annotation(f"o__n-{n}", 0) for n in (1, 2)]),
        "--instances", write("i.jsonl", rows), "--patches", write("p.jsonl", patches), "--json", "--out",
    ]  # fmt: skip
    before = sorted(scratch.folder.rglob("*"))
    ran = command(*arguments, tmp_path / "checked", "--repos", tmp_path / "repos")
    steps = ran.json["steps"]
    assert steps["patches for annotated instances"] == 6
    assert steps["patches that git refuses at the base commit, removed"] == 2
    assert steps["patches that git refuses, kept: the harness applied them"] == 2
    assert steps["patches whose base commit is not at hand, kept untried"] == 1
    assert f"does not hold the base commit {'0' * 40}" in ran.err
    assert sorted(scratch.folder.rglob("*")) == before
    without = command(*arguments, tmp_path / "unchecked").json["steps"]
    assert not [step for step in without if "git refuses" in step]
