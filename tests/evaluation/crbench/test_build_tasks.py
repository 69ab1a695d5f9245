"""``bouncer-eval build crbench`` to the end: three questions, and a review task that holds nothing of the
future."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.simgithub import SimulatedGitHub
from evaluation.crbench.own import trunk
from evaluation.git.repository import GitRepository
from tests.evaluation.crbench.conftest import SAFE, TOTAL, TOTAL_WRONG, WRONG, recording
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import Ran, command, read, refusal, write


def build(folder: Path, model: str, *more: str, code: int = 0) -> Ran:
    paths = ("--instances", folder / "fixes.jsonl", "--repos", folder / "repos", "--out", folder / "tasks.jsonl")
    return command("build", "crbench", *paths, "--offline", "--model", model, *more, code=code)


def tasks(folder: Path) -> dict[str, Any]:
    return {row["instance_id"]: row for row in read(folder / "tasks.jsonl")}


def test_pull_requests_become_tasks_as_their_reviewers_saw_them(project: Path, builder: str) -> None:
    """One was merged, one squashed; a third bug no review could have prevented."""
    build(project, builder)

    rows = tasks(project)
    task = rows["ada__engine-101"]
    pull = task["pull"]
    assert task["kept"]
    assert task["bugs"] == [
        {
            "description": "`items[0]` raises IndexError for an empty list.",
            "category": "structural",
            "impact": "reliability",
            "severity": "high",
            "paper_severity": "high",
            "path": "",
            "line": None,
            "level": None,
            "kind": None,
        }
    ]
    assert task["preventable"]["confidence"] == 0.9
    assert (pull["number"], pull["title"], pull["body"]) == (7, "Title of 7", "Why.")
    assert pull["diff"].splitlines()[-4:] == [
        "@@ -1,2 +1,2 @@",
        " def first(items):",
        "-    return items[0] if items else None",
        "+    return items[0]",
    ]
    assert "next(iter" not in json.dumps(pull), "the fix is no part of what a reviewer sees"

    squashed = rows["ada__engine-102"]
    pull = squashed["pull"]
    assert (pull["number"], pull["title"], pull["body"]) == (8, "Skip the header", "The first item is a header.")
    assert pull["diff"].startswith("diff --git a/total.py b/total.py\nnew file mode")
    assert squashed["bugs"][0]["category"] == "data", "the taxonomy's long name is understood"

    discarded = rows["ada__engine-103"]
    assert (discarded["kept"], discarded["reason"]) == (False, "not preventable: a matter of taste")
    assert (discarded["prs"], discarded["bugs"], discarded["pull"]) == ([9], [], None)


def test_the_same_build_gives_the_same_file_and_its_statistics(project: Path, builder: str) -> None:
    result = build(project, builder, "--json").json
    assert result["averages"] == {
        "tasks": 2,
        "lines_fixed": 2.0,
        "comments": None,
        "comments_known": 0,
        "description_length": (len("Why.") + len("The first item is a header.")) / 2,
    }
    assert result["discarded"] == {"not preventable": 1}
    assert result["categories"] == {"structural": 1, "data": 1}
    first = (project / "tasks.jsonl").read_bytes()
    output = build(project, builder, "--overwrite", "--workers", "8").err
    assert (project / "tasks.jsonl").read_bytes() == first
    assert "CR-Bench-verified" in output
    assert "893.59" in output


@pytest.mark.parametrize(("words", "is_kept"), [(99, True), (100, False)])
def test_a_description_of_a_hundred_words_is_sent_back_and_else_not_used(
    project: Path, words: int, is_kept: bool
) -> None:
    """Listing 2 asks for less than 100 words."""
    replies = {
        "preventable": {"reasoning": "r", "category": "PREVENTABLE", "confidence": 1},
        "paraphrase": {"description": "word " * words},
        "tags": {"reasoning": "r", "category": "structural", "impact": "reliability", "severity": "high"},
    }
    answers = [(f"ada__engine-101/{name}", reply) for name, reply in replies.items()]

    build(project, recording(project / "wordy.jsonl", "m", answers), code=int(not is_kept))

    task = tasks(project)["ada__engine-101"]
    assert (task["kept"], task["unfinished"]) == (is_kept, not is_kept)
    assert is_kept or task["reason"].startswith("unfinished: ")


def test_a_build_in_which_every_instance_fails_exits_with_1_and_the_reason(project: Path) -> None:
    ran = build(project, recording(project / "none.jsonl", "m", [("x", {})]), code=1)
    assert "3 of 3 instances are not finished and are tried again next time: unfinished: none.jsonl" in ran.err


def test_what_a_model_failed_on_is_tried_again_and_the_rest_is_not(project: Path, builder: str) -> None:
    half = (project / "builder.jsonl").read_text()
    (project / "builder.jsonl").write_text(
        "".join(line + "\n" for line in half.splitlines() if "-102/" not in line)
    )
    build(project, builder)
    assert tasks(project)["ada__engine-102"]["unfinished"]

    (project / "builder.jsonl").write_text("".join(line + "\n" for line in half.splitlines() if "-102/" in line))
    build(project, builder)

    assert all(not task["unfinished"] for task in tasks(project).values())
    assert [name for name, task in tasks(project).items() if task["kept"]] == [
        "ada__engine-101",
        "ada__engine-102",
    ]


def own(folder: Path, *more: str) -> dict[str, Any]:
    paths = ("--repo", folder / "repos/ada+engine", "--since", "2020-01-01", "--out", folder / "tasks.jsonl")
    command("build", "own", *paths, "--offline", "--until", "mapping", *more)
    return tasks(folder)


def test_a_repositorys_own_fixes_are_found_by_closing_words_and_subjects(project: Path) -> None:
    scratch = Scratch(project / "repos" / "ada+engine")
    scratch.commit("Sum all items\n\nCloses #55.", "total.py", "def total(items):", "    return sum(items)")
    scratch.commit("docs: fix typo", "hello.py", "print('hullo')")
    scratch.commit("Add a feature (#121)", "new.py", "x = 1")
    scratch.commit("Fix the tests only", "tests/test_x.py", "assert True")

    result = own(project)

    assert {name: task["prs"] for name, task in result.items()} == {
        "ada__engine-120": [7],
        "ada__engine-" + sha(scratch, 3): [8],
    }
    assert own(project, "--since", "2021-01-01", "--overwrite") == {}


@pytest.mark.parametrize(
    ("readable", "answer"), [("ada/engine", "422: No commit found"), ("ada/other", "404: Not Found")]
)
def test_a_build_reads_github_with_the_token(
    project: Path, monkeypatch: pytest.MonkeyPatch, readable: str, answer: str
) -> None:
    paths = ("--repo", project / "repos/ada+engine", "--since", "2020-01-01", "--out", project / "tasks.jsonl")
    with SimulatedGitHub() as github:
        for name in ("ada/engine", "ada/other"):
            github.create_repository(name, private=True)
        rights = {"contents": "read", "issues": "read", "pull_requests": "read"}
        monkeypatch.setenv("GITHUB_API_URL", github.api_url)
        monkeypatch.setenv("GITHUB_TOKEN", github.token(readable, rights))
        # A simulated repository has no commit of the clone's.
        assert f"GitHub answered {answer}" in command("build", "own", *paths, "--until", "mapping", code=1).err


def test_a_repository_without_a_commit_is_said_in_one_line(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "ada+empty"], check=True)
    output = refusal("build", "own", "--repo", tmp_path / "ada+empty", "--since", "2020-01-01", "--offline")
    assert output.startswith(f"bouncer-eval: {tmp_path}/ada+empty has no history: ")


def sha(scratch: Scratch, back: int) -> str:
    return scratch.git("rev-parse", f"HEAD~{back}")[:10]


def test_the_diff_of_a_pull_request_starts_where_its_branch_left_the_trunk(tmp_path: Path) -> None:
    """Of a merged branch, and of one that was rebased, which only its pull ref still holds."""
    clone = Scratch(tmp_path / "repos" / "ada+engine")
    start = clone.commit("Begin", "engine.py", *SAFE)
    clone.branch("merged")
    merged = clone.commit("Simplify", "engine.py", *WRONG)
    clone.go("main")
    clone.commit("Meanwhile", "other.py", "x = 1")
    left = clone.merge_pull(7, "merged")
    clone.branch("rebased")
    rebased = clone.commit("Sum", "total.py", *TOTAL_WRONG, author=("Bob", "bob@example.org"))
    clone.git("update-ref", "refs/pull/90/head", "rebased")
    clone.git("update-ref", "refs/pull/7/head", merged)
    clone.go("main")
    clone.commit("Later", "later.py", "y = 1")
    clone.git("cherry-pick", "rebased")
    clone.git("branch", "-D", "rebased")
    names = ("ada__engine-1", "ada__engine-2")
    patches = (clone.fix("engine.py", *SAFE), clone.fix("total.py", *TOTAL))
    rows = [
        {"instance_id": name, "repo": "ada/engine", "base_commit": clone.head(), "patch": patch}
        for name, patch in zip(names, patches, strict=True)
    ]
    write(tmp_path / "fixes.jsonl", rows)
    replies: dict[str, dict[str, Any]] = {
        "preventable": {"reasoning": "r", "category": "PREVENTABLE", "confidence": 1},
        "paraphrase": {"description": "It is wrong."},
        "tags": {"reasoning": "r", "category": "data", "impact": "reliability", "severity": "low"},
    }
    answers = [(f"{name}/{question}", reply) for name in names for question, reply in replies.items()]

    build(tmp_path, recording(tmp_path / "m.jsonl", "m", answers), "--pull-refs", "infer")

    pulls = [tasks(tmp_path)[name]["pull"] for name in names]
    assert [(pull["number"], pull["base_sha"], pull["head_sha"]) for pull in pulls] == [
        (7, start, merged), (90, left, rebased),
    ]  # fmt: skip
    files = [[line[6:] for line in pull["diff"].splitlines() if line.startswith("+++ ")] for pull in pulls]
    assert files == [["engine.py"], ["total.py"]]


def test_a_change_at_the_very_moment_of_since_counts(tmp_path: Path) -> None:
    clone = Scratch(tmp_path / "engine")
    for name in ("base", "before", "at", "after"):
        clone.commit(f"Add {name}", f"{name}.py", "x = 1")
    moment = datetime.fromtimestamp(int(clone.git("log", "-1", "--format=%ct", "HEAD~1")), UTC)
    with GitRepository(clone.folder) as repository:
        assert [change.title for change in trunk(repository, moment)] == ["Add after", "Add at"]
