"""Other benchmarks' golden comments become review tasks where a clone holds the change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluation.crbench.golden import read_golden
from evaluation.crbench.judge import ReviewComment
from evaluation.crbench.task import read_tasks
from evaluation.dataset import read_rows
from tests.evaluation.crbench.conftest import recording
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import command, read, refusal, write


def aacr(number: int, base: str, head: str, *notes: tuple[str, str], kind: str = "positive") -> dict[str, Any]:
    return {
        "githubPrUrl": f"https://github.com/ada/engine/pull/{number}",
        "source_commit": base,
        "target_commit": head,
        "sample_kind": kind,
        "comments": [{"note": note, "category": category} for note, category in notes],
    }


def build(folder: Path, kind: str, rows: list[dict[str, Any]], *more: str) -> dict[str, Any]:
    write(folder / "golden.jsonl", rows)
    paths = ["--source", f"{folder}/golden.jsonl", "--repos", f"{folder}/repos", "--out", f"{folder}/tasks.jsonl"]
    command("build", "golden", "--set", kind, *paths, *more)
    lines = read(folder / "tasks.jsonl")
    return {line["instance_id"]: line for line in lines}


def test_the_commits_that_the_data_set_names_are_compared(tmp_path: Path, scratch: Scratch) -> None:
    base, head = scratch.git("rev-parse", "main~3"), scratch.git("rev-parse", "five")
    row = aacr(
        5, base, head, ("`x` starts at two.", "Code Defect"), ("Rename `x`.", "Maintainability and Readability")
    )
    rejected = aacr(5, base, head, ("Nonsense.", "Code Defect"), kind="negative")

    task = build(tmp_path, "aacr", [row, rejected])["ada__engine-5"]

    assert (task["pull"]["title"], task["pull"]["body"]) == ("", "Because."), "no title of a commit"
    assert task["pull"]["diff"].splitlines()[-3:] == ["@@ -1 +1 @@", "-x = 1", "+x = 2"]
    assert [bug["description"] for bug in task["bugs"]] == ["`x` starts at two.", "Rename `x`."]


@pytest.mark.parametrize(("number", "last_line"), [(5, "+x = 2"), (6, "+y = 1")])
def test_pull_refs_stand_in_where_only_the_address_is_known(
    tmp_path: Path, scratch: Scratch, number: int, last_line: str
) -> None:
    row = {
        "url": f"https://github.com/ada/engine/pull/{number}",
        "pr_title": "The title",
        "comments": [{"comment": "It breaks.", "severity": "Critical"}],
    }

    task = build(tmp_path, "martian", [row])[f"ada__engine-{number}"]

    assert task["pull"]["title"] == "The title"
    assert task["pull"]["diff"].splitlines()[-1] == last_line
    assert (task["bugs"][0]["severity"], task["bugs"][0]["paper_severity"]) == ("high", "critical")


def test_an_unknown_severity_is_refused_and_a_missing_one_allowed(tmp_path: Path, scratch: Scratch) -> None:
    def row(*comments: dict[str, Any]) -> dict[str, Any]:
        return {"url": "https://github.com/ada/engine/pull/5", "comments": list(comments)}

    count = row({"comment": "It breaks."}, {"comment": "It leaks.", "severity": None}, {"comment": " "})
    task = build(tmp_path, "martian", [count])["ada__engine-5"]
    assert [bug["severity"] for bug in task["bugs"]] == [None, None]

    odd = {"comment": "It breaks.", "severity": "apocalyptic"}
    for comment, output in (
        (odd, "severity: 'apocalyptic' is none of low, medium"),
        ({"severity": "low"}, "comments.0.comment: Field required"),
    ):
        write("odd.jsonl", [row(comment)])
        refused = refusal("build golden --set martian --source odd.jsonl --repos repos --out odd.out")
        assert f"odd.jsonl:1: {output}" in refused


def test_what_the_clone_does_not_hold_is_left_out_with_a_reason(tmp_path: Path, scratch: Scratch) -> None:
    rows = [
        aacr(9, "ab" * 20, "cd" * 20, ("n", "Code Defect")),
        {**aacr(1, "ab" * 20, "cd" * 20, ("n", "Code Defect")), "githubPrUrl": "https://github.com/x/y/pull/1"},
    ]

    tasks = build(tmp_path, "aacr", rows)

    assert tasks["ada__engine-9"]["reason"] == "the clone holds no commit of pull request #9"
    assert tasks["x__y-1"]["reason"] == "no clone of x/y"
    assert not list(read_tasks(f"{tmp_path}/tasks.jsonl"))


@pytest.mark.parametrize(
    ("kind", "file", "pulls", "comments", "rejected"),
    [("aacr", "aacr_bench", (196, 155), 1505, 640), ("martian", "martian_golden_comments", (50, 0), 137, 0)],
)
def test_the_real_data_sets_are_read_whole(
    shared_data: Path, kind: Any, file: str, pulls: tuple[int, int], comments: int, rejected: int
) -> None:
    result = list(read_golden(read_rows(str(shared_data / "review" / f"{file}.jsonl.gz")), kind))

    assert (sum(bool(pull.bugs) for pull in result), sum(bool(pull.rejected) for pull in result)) == pulls
    assert sum(len(pull.bugs) for pull in result) == comments
    assert sum(len(pull.rejected) for pull in result) == rejected
    assert len({pull.instance_id for pull in result}) == len(result)


def test_rejected_comments_alone_make_negatives_and_no_task(tmp_path: Path, scratch: Scratch) -> None:
    base, head = scratch.git("rev-parse", "main~3"), scratch.git("rev-parse", "five")
    build(tmp_path, "aacr", [aacr(5, base, head, ("Nonsense.", "Code Defect"), kind="negative")])
    assert list(read_tasks(f"{tmp_path}/tasks.jsonl")) == []
    key = ReviewComment(task_id="ada__engine-5", path="", line=None, text="Nonsense.").key
    noise = {"reason": "r", "classification": "NOISE", "bug": None}
    judge = recording(tmp_path / "j.jsonl", "j", [(f"ada__engine-5/{key}", noise)])
    options = ("--tasks", f"{tmp_path}/tasks.jsonl", "--judge", judge, "--cache", f"{tmp_path}/cache", "--json")
    assert command("score", "golden", *options).json["judge"]["rejected"]["NOISE"] == 1
