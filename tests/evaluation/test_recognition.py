"""The model may know a task from elsewhere: asked in evaluation, recorded, and scored without those too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.core.config import RepoConfig
from bot.core.config_file import load
from bot.models.prompts import Prompts
from evaluation.bouncerbench.bench import stage
from evaluation.bouncerbench.tasks import InputTask, OutputTask
from evaluation.run.recognition import OF_FINDINGS, SENTENCE
from evaluation.run.staging import Setup, Staged, judge
from tests.builders import finding
from tests.evaluation.running import PATCH, command, read, write
from tests.scripted import ScriptedModel

COUNT = 8


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patches of which every second is wrong; all of them are let pass, and the right ones were recognised."""
    write(
        "tasks.jsonl",
        [
            {"instance_id": f"o__n-{n}", "problem_statement": f"T{n}\nB", "patch": PATCH, "resolved": n % 2 == 0}
            for n in range(COUNT)
        ],
    )
    replies = {"model": "m", "label": "CORRECT_AND_PRECISE", "explanation": "e"}
    write("new.jsonl", [{**replies, "instance_id": f"o__n-{n}", "recognised": n % 2 == 0} for n in range(COUNT)])
    write("old.jsonl", [{**replies, "instance_id": f"o__n-{n}"} for n in range(COUNT)])


def replay(replies: str, out: str, *more: str) -> list[dict[str, Any]]:
    model = f"recorded:{replies}#m"
    command("replay", "bouncerbench-output", "--tasks", "tasks.jsonl", "--model", model, "--out", out, *more)
    return read(Path(out, "records.jsonl"))


def test_it_is_recorded_and_the_score_is_printed_without_those_too(tasks: None) -> None:
    records = replay("new.jsonl", "run", "--prompt", "careful")
    assert {record["task_id"]: record["recognised"] for record in records} == {
        f"o__n-{n}": "no" if n % 2 else "knows_outcome" for n in range(COUNT)
    }

    score = ("score", "bouncerbench-output", "--tasks", "tasks.jsonl", "--run", "run")
    [result] = command(*score, "--json").json["without_recognised"].values()
    assert (result["recognised"], result["vaguely"], result["published"], result["asked"]) == (
        COUNT / 2,
        0,
        0,
        COUNT,
    )
    assert result["figures"]["fpr_a"][0] == 1.0, "every patch that is left is wrong, and was let pass"
    output = command(*score).out
    assert "tasks (4 of 8 recognised)" in output
    assert "without recognised" in command("report", "run").out


def test_a_grade_and_a_known_data_set_are_told_apart(tasks: None) -> None:
    replies = {"model": "m", "label": "CORRECT_AND_PRECISE", "explanation": "e"}
    grades = ["knows_outcome", "vaguely", "no", "no"] * 2
    answers = [
        {**replies, "instance_id": f"o__n-{n}", "recognised": grade, "published": n == 2}
        for n, grade in enumerate(grades)
    ]
    write("graded.jsonl", answers)
    replay("graded.jsonl", "graded", "--prompt", "careful")
    score = ("score", "bouncerbench-output", "--tasks", "tasks.jsonl", "--run", "graded")
    [result] = command(*score, "--json").json["without_recognised"].values()
    assert [result[name] for name in ("recognised", "vaguely", "published", "asked")] == [2, 2, 1, COUNT]
    assert result["figures"] != result["figures_of_new"]
    assert "tasks (2 of 8 recognised, 2 vaguely, 1 published)" in command(*score).out


def test_a_review_says_it_of_each_finding_and_a_doubt_of_its_own() -> None:
    staging, answer = staged("review")
    knows = {"recognised": "vaguely", "published": False}
    defect = finding(path="a.py", quote="b", line=1, symbol="", recognised="knows_outcome")
    doubt = {"trace": "t", "breaks_when": "x", "quote": "b", "instead": "y", "verdict": "upheld"}
    lines = [{**answer, "findings": [defect], **knows}, {**doubt, "recognised": "no", "published": True}]
    model, (config, _) = ScriptedModel(lines), load("review: {doubt: true}")
    outcome = judge(staging, Setup(model, config, Prompts(), "review", recognition=True))
    assert outcome.details == {"recognised": "vaguely", "published": True}
    record = outcome.decision.record.as_json()
    [held_back] = record["suppressed"]
    assert (held_back["finding"]["recognised"], record["doubts"][0]["recognised"]) == ("knows_outcome", "no")
    assert OF_FINDINGS in model.asked[0].system
    assert OF_FINDINGS not in model.asked[1].system
    assert SENTENCE in model.asked[1].system


def test_replies_that_were_recorded_before_it_was_asked_still_answer(tasks: None) -> None:
    records = replay("old.jsonl", "run", "--prompt", "careful")
    assert all(record["error"] is None and "recognised" not in record for record in records)
    assert (
        "without recognised"
        not in command("score", "bouncerbench-output", "--tasks", "tasks.jsonl", "--run", "run").out
    )


def test_the_papers_question_is_asked_as_it_is_and_any_other_on_request(tasks: None) -> None:
    for name, options in (("paper", ("--prompt", "paper")), ("plain", ("--no-recognised", "--prompt", "careful"))):
        replay("old.jsonl", name, *options)
        facts = json.loads(Path(name, "run.json").read_text())
        assert "recognised" not in facts["prompts"]
    replay("old.jsonl", "asked", "--prompt", "careful")
    assert "recognised" in json.loads(Path("asked/run.json").read_text())["prompts"]


def staged(kind: str) -> tuple[Staged, dict[str, Any]]:
    """A task of a handler, and what a model might answer to it."""
    base = {"instance_id": "o__n-1", "repo": "o/n", "base_commit": "b" * 40, "problem_statement": "T\nB"}
    if kind == "triage":
        return stage(InputTask.model_validate(base)), {"explanation": "e", "label": "VAGUE"}
    task = OutputTask.model_validate({**base, "patch": PATCH})
    if kind == "verify":
        return stage(task), {"explanation": "e", "label": "INCORRECT"}
    return stage(task), {"reasoning": "r", "findings": []}


@pytest.mark.parametrize("kind", ["triage", "verify", "review"])
def test_it_stands_behind_the_live_question_and_last_in_the_answer(kind: Any) -> None:
    staging, answer = staged(kind)
    requests: list[tuple[str, list[str]]] = []
    for recognition in (False, True):
        model = ScriptedModel(lambda _: {**answer, "recognised": "vaguely", "published": True})
        outcome = judge(staging, Setup(model, RepoConfig(), Prompts(), kind, recognition))
        assert outcome.error is None
        assert outcome.details == ({"recognised": "vaguely", "published": True} if recognition else {})
        [request] = model.requests
        shape = request.schema.model_json_schema()
        assert ("recognised" in json.dumps(shape)) == recognition
        requests.append((request.prompt.system, list(shape["properties"])))
    (live, fields), (replayed, more) = requests
    assert replayed == f"{live}\n\n{SENTENCE}{f' {OF_FINDINGS}' if kind == 'review' else ''}"
    assert more == [*fields, "recognised", "published"]
    assert "recognised" not in live
