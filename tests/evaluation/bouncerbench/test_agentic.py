"""The agentic bouncer (BouncerBench, IV.E): it may read the code at the base commit, and nothing later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import NotRecorded
from bot.models.recorded import Recording
from evaluation.benchmark import Session
from evaluation.bouncerbench.bench import opened, stage
from evaluation.bouncerbench.tasks import INPUT, OUTPUT, Kind, input_tasks, output_tasks
from evaluation.git.clones import Clones
from evaluation.run.replay import ReplayRequest
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import command, refusal, replies, write
from tests.scripted import ScriptedModel

LOOK = {"thought": "what does it do now?", "action": "read", "target": "engine.py"}
LATER = {"thought": "was it fixed?", "action": "read", "target": "later.py"}
DONE = {"thought": "enough", "action": "done", "notes": "engine.py:2 fails for an empty list."}
PATCH = "diff --git a/engine.py b/engine.py\n--- a/engine.py\n+++ b/engine.py\n@@ -1 +1 @@\n-a\n+b\n"


def reply_of(label: str) -> dict[str, Any]:
    return {"explanation": "e", "open_questions": [], "label": label}


class Project:
    """A clone whose fix came after the base commit, and one input and one output task about it."""

    def __init__(self, folder: Path) -> None:
        scratch = Scratch(folder / "repos" / "ada+engine")
        scratch.commit("Begin", "engine.py", "def first(items):", "    return items[0]")
        self.repos = folder / "repos"
        self.base = scratch.head()
        scratch.commit("Fix it", "engine.py", "def first(items):", "    return next(iter(items), None)")
        self.fixed = scratch.commit("Later", "later.py", "# the fix")

    def task(self, number: int = 7, **other: Any) -> dict[str, Any]:
        return {
            "instance_id": f"ada__engine-{number}",
            "repo": "ada/engine",
            "base_commit": self.base,
            "problem_statement": f"first() fails, {number}\nFor an empty list.",
            "patch": PATCH,
            "underspecified": 0,
            "resolved": False,
            **other,
        }


@pytest.fixture
def plain(tmp_path: Path) -> Project:
    return Project(tmp_path)


def looking(kind: Kind, repos: Path) -> AbstractContextManager[Session[Any]]:
    """A bouncer that may read the code, ready to be run."""
    return opened(kind, ReplayRequest(out="run"), None, repos, {"investigate": True})


def test_an_issue_is_judged_with_the_code_before_its_fix(plain: Project) -> None:
    model = ScriptedModel([LOOK, LATER, DONE, reply_of("WELL_SPECIFIED")])
    tasks = str(write("t.jsonl", [plain.task()]))
    with looking(INPUT, plain.repos) as session:
        (task,) = input_tasks(tasks)
        outcome = session.run(task, model)
    assert outcome.decision is not None
    assert outcome.decision.record.tool_calls == 2
    assert "2:     return items[0]" in model.asked[1].user
    assert "there is no file 'later.py'" in model.asked[2].user
    assert "engine.py:2 fails for an empty list." in model.asked[3].user
    assert outcome.usage.calls == 4


def test_with_clones_at_hand_a_patch_is_judged_with_the_code_around_it(plain: Project) -> None:
    patch = "diff --git a/engine.py b/engine.py\n--- a/engine.py\n+++ b/engine.py\n@@ -2 +2 @@\n"
    patch += "-    return items[0]\n+    return items[1]\n"
    tasks = str(write("t.jsonl", [plain.task(patch=patch)]))
    model = ScriptedModel([reply_of("INCORRECT")])
    with opened(OUTPUT, ReplayRequest(out="run"), None, plain.repos, {"prompt": "careful"}) as session:
        outcome = session.run(next(iter(output_tasks(tasks))), model)
    assert "--- engine.py\n@ 1 rest of the file\n def first(items):" in model.asked[0].user
    assert outcome.decision is not None
    assert outcome.decision.record.as_json()["context"]["parts"] == 1
    assert session.config["code"] is True
    with opened(OUTPUT, ReplayRequest(out="run"), None, None, {"prompt": "careful"}) as session:
        assert session.config["code"] is False, "a run without the code is another run, and says so"


def test_the_base_commit_is_all_that_can_be_seen(plain: Project, tmp_path: Path) -> None:
    (task,) = input_tasks(str(write("t.jsonl", [plain.task()])))
    with Clones(plain.repos) as clones:
        staged = stage(task, clones)
        forge = staged.forge(staged.snapshot)
        assert forge.head("main") == plain.base
        assert forge.file("engine.py", plain.base) == forge.file("engine.py", "main")
        assert list(forge.sources("main").paths()) == ["engine.py"]
        for ref in (plain.fixed, "HEAD", "refs/heads/main", f"{plain.base}~0"):
            with pytest.raises(NotRecorded):
                forge.file("engine.py", ref)
            with pytest.raises(NotRecorded):
                forge.sources(ref)
            with pytest.raises(NotRecorded):
                forge.checkout(ref, tmp_path / "out")
            with pytest.raises(NotRecorded):
                forge.head(ref)


def test_a_task_without_its_code_is_an_error_that_names_the_clone(plain: Project, tmp_path: Path) -> None:
    rows = [
        plain.task(1, base_commit=None),
        plain.task(2, repo="bob/none"),
        plain.task(3, base_commit="0" * 40),
        plain.task(4, base_commit="--output=x"),
        plain.task(5, repo="../repos/ada+engine"),
    ]
    recorded = replies("r.jsonl", {"x": "VAGUE"})
    for benchmark in ("bouncerbench-input", "bouncerbench-output"):
        run = tmp_path / benchmark
        ran = command(
            "replay", benchmark, "--tasks", write("t.jsonl", rows), "--model", f"recorded:{recorded}#m",
            "--investigate", "--repos", plain.repos, "--out", run, "--json",
        )  # fmt: skip
        assert ran.json["failed"] == 5
        errors = [json.loads(line)["error"] for line in (run / "records.jsonl").read_text().splitlines()]
        assert [error.partition("engine-")[2] for error in errors] == [
            "1: no base_commit is given: which state of the code is meant is not known",
            f"2: {plain.repos} holds no clone of bob/none",
            f"3: {plain.repos / 'ada+engine'} does not hold the base commit {'0' * 40}",
            "4: base_commit '--output=x' is not a commit's SHA",
            f"5: {plain.repos} holds no clone of ../repos/ada+engine",
        ]


def test_the_report_splits_flips_by_use_of_tools_in_the_second_run(plain: Project, tmp_path: Path) -> None:
    """Both runs come from the command: one asks straight away, one answers from what an agentic model said."""
    tasks = write("t.jsonl", [plain.task(n, resolved=n == 3) for n in range(1, 5)])
    now = {1: "INCORRECT", 2: "INCORRECT", 3: "INCORRECT", 4: "CORRECT_AND_PRECISE"}
    looks = {1: [LOOK, DONE], 2: [DONE], 3: [LOOK, LOOK, DONE], 4: [LOOK, DONE]}
    recorded = tmp_path / "agent.jsonl"
    with looking(OUTPUT, plain.repos) as session:
        for n, task in enumerate(output_tasks(str(tasks)), start=1):
            session.run(task, Recording(ScriptedModel([*looks[n], reply_of(now[n])]), recorded))
    before = replies("r.jsonl", {f"ada__engine-{n}": "CORRECT_AND_PRECISE" for n in now})
    shared = ("replay", "bouncerbench-output", "--tasks", tasks, "--out")
    command(*shared, tmp_path / "plain", "--model", f"recorded:{before}#m")
    agentic = ("--model", f"recorded:{recorded}#scripted:test", "--investigate", "--repos", plain.repos)
    ran = command(*shared, tmp_path / "agentic", *agentic, "--json")
    assert (ran.json["failed"], ran.json["config"]["verify"]["investigate"]) == (0, True)
    assert ran.json["prompts"].keys() == {"verify.paper", "investigate", "investigated"}
    sections = command("report", tmp_path / "plain", tmp_path / "agentic", "--json").json["sections"]
    (compared,) = [section for section in sections if "comparison" in section]
    assert calls(compared["comparison"]) == {
        "ada__engine-1": (True, 1),
        "ada__engine-2": (True, 0),
        "ada__engine-3": (False, 2),
    }
    table = {row[0]: row[1:] for row in compared["tables"][0]["rows"]}
    assert (table["corrected"][::2], table["now wrong"][::2]) == ([2, 1], [1, 1])
    scored = ("score", "bouncerbench-output", "--tasks", tasks, "--run", tmp_path / "agentic")
    result = command(*scored, "--against", f"{before}#m", "--json").json["against"]
    assert calls(result) == calls(compared["comparison"])
    printed = command(*scored, "--against", f"{before}#m").out
    assert "3 flips on 4 tasks" in printed
    assert "corrected 2 66.7 1" in " ".join(printed.split())
    printed = command("report", tmp_path / "plain", tmp_path / "agentic").out
    assert "Over all tasks: 3 with at least one call." in printed


def calls(comparison: Mapping[str, Any]) -> dict[str, tuple[bool, int]]:
    """The flips that corrected, and the number of looks at the code."""
    return {flip["instance_id"]: (flip["corrected"], flip["tool_calls"]) for flip in comparison["flips"]}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--investigate"], "--repos DIR is needed: triage.investigate is on"),
        (["--repos", "{repos}"], "--repos: this question is asked without the code"),
        (["--investigate", "--repos", "{repos}/none"], "none' does not exist"),
    ],
)
def test_code_is_given_where_it_is_looked_at_and_only_there(plain: Project, more: list[str], message: str) -> None:
    tasks = write("t.jsonl", [plain.task()])
    values = [option.format(repos=plain.repos) for option in more]
    assert message in refusal("replay", "bouncerbench-input", "--tasks", tasks, "--out", "run", *values)


def test_a_batch_of_questions_leaves_out_tasks_whose_code_is_not_at_hand(plain: Project) -> None:
    tasks = write("t.jsonl", [plain.task(1), plain.task(2, repo="bob/none")])
    ran = command(
        f"batch export bouncerbench-input --tasks {tasks} --model openai:gpt-4.1 --investigate --repos "
        f"{plain.repos} --cache cache --format openai --out requests.jsonl --json"
    )
    assert (ran.json["requests"], ran.json["waiting"], ran.json["failed"]) == (1, 1, 1)
    assert "ada__engine-2: " in ran.err


def test_a_file_missing_from_a_partial_clone_exists_but_is_unreadable(tmp_path: Path) -> None:
    folder = tmp_path / "repos" / "ada+engine"
    scratch = Scratch(folder)
    for number in range(200):
        scratch.write(f"data/{number}.txt", str(number))
    base = scratch.commit("Begin", "large.txt", "very large")
    lose(scratch, f"{base}:large.txt")
    task = {"instance_id": "ada__engine-1", "base_commit": base, "problem_statement": "T\nText"}
    tasks = str(write("t.jsonl", [task]))
    looks = [{**LOOK, "target": "large.txt"}, {**LOOK, "action": "list", "target": ""}]
    model = ScriptedModel([*looks, DONE, reply_of("VAGUE"), LOOK])
    with looking(INPUT, folder.parent) as session:
        (read,) = input_tasks(tasks)
        session.run(read, model)
        assert "large.txt is not text, or too large" in model.asked[1].user
        assert "data/\nlarge.txt" in model.asked[2].user
        for number in range(5):
            lose(scratch, f"{base}:data/{number}.txt")
        with pytest.raises(NotRecorded, match=r"lacks 6 of 201 files at .*, data/0\.txt for one: fetch it whole"):
            session.run(read, model)


def lose(scratch: Scratch, name: str) -> None:
    """Take an object out of the clone, as a partial clone does."""
    digest = scratch.git("rev-parse", name)
    (scratch.folder / ".git/objects" / digest[:2] / digest[2:]).unlink()
