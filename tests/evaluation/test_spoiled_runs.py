"""Runs whose files hold values of another shape than ours are refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.running import facts_of, refusal, write

PULL = {"number": 1, "title": "t", "body": "b", "base_sha": "c", "head_sha": "d", "diff": "e", "comments": None}
TASKS: dict[str, dict[str, Any]] = {
    "bouncerbench-output": {"output_bounce": True},
    "crbench": {
        "repo": "a/b",
        "base_commit": "c",
        "kept": True,
        "reason": None,
        "pull": PULL,
        "bugs": [{"description": "f"}],
    },
    "brt": {},
    "duplicates": {"number": 1, "title": "t", "state": "closed", "root": 1, "repository": "a/b", "task": True},
}


def spoiled(benchmark: str, record: dict[str, Any], config: dict[str, Any] | None = None) -> str:
    """Score a run with one record and return why that cannot be done."""
    tasks = write("tasks.jsonl", [{"instance_id": "a__b-1", **TASKS[benchmark]}])
    facts = facts_of(benchmark, config=config or {}, tasks={"source": str(tasks)})
    Path("run").mkdir()
    Path("run/run.json").write_text(facts.model_dump_json())
    write("run/records.jsonl", [{"task_id": "a__b-1", **record}])
    more = () if benchmark in ("brt", "duplicates") else ("--tasks", tasks)
    write("r.jsonl", [{"model": "m", "subject": "a__b-1"}])
    judge = ("--judge", "recorded:r.jsonl#m") if benchmark == "crbench" else ()
    return refusal("score", benchmark, *more, "--run", "run", *judge)


@pytest.mark.parametrize("benchmark", ["bouncerbench-output", "crbench", "duplicates"])
@pytest.mark.parametrize("name", ["record", "evidence"])
def test_a_decision_whose_record_is_a_list_is_refused(benchmark: str, name: str) -> None:
    why = spoiled(benchmark, {"decision": {"verdict": None, name: [1]}})
    assert "run/records.jsonl:1: not a record: decision: " in why
    assert f"{name}: an object is needed" in why


@pytest.mark.parametrize(
    ("benchmark", "fields", "place"),
    [
        ("bouncerbench-output", {"replies": [1]}, "replies.0"),
        ("bouncerbench-output", {"replies": 1}, "replies"),
        ("bouncerbench-output", {"verdicts": ["x"]}, "verdicts.0"),
        ("bouncerbench-output", {"verdicts": [{"explanation": 1}]}, "verdicts.0.explanation"),
        ("bouncerbench-output", {"voices": {"a": 1}}, "voices"),
        ("bouncerbench-output", {"p_bounce": 500}, "p_bounce"),
        ("crbench", {"posted": 1}, "posted"),
        ("crbench", {"suppressed": ["x"]}, "suppressed.0"),
        ("crbench", {"skipped": ["x"]}, "skipped.0"),
    ],
)
def test_a_wrong_value_in_a_record_is_named(benchmark: str, fields: dict[str, Any], place: str) -> None:
    why = spoiled(benchmark, {"decision": {"verdict": None, "record": fields}})
    assert f"record of a__b-1: {place}: " in why


@pytest.mark.parametrize(
    ("benchmark", "details", "place"),
    [
        ("brt", {"drafts": 1}, "drafts"),
        ("brt", {"drafts": {"a": 1}}, "drafts"),
        ("brt", {"drafts": [[1]]}, "drafts.0"),
        ("brt", {"drafts": [], "shown": 1.5}, "shown"),
        ("crbench", {"comments": None}, "comments"),
        ("crbench", {"comments": ["x"]}, "comments.0"),
    ],
)
def test_a_wrong_value_beside_a_decision_is_named(benchmark: str, details: dict[str, Any], place: str) -> None:
    assert f"record of a__b-1: {place}: " in spoiled(benchmark, details)


@pytest.mark.parametrize(
    ("benchmark", "part", "keys"),
    [
        ("bouncerbench-output", "verify", [1]),
        ("bouncerbench-output", "verify", {"bounce_above": "x"}),
        ("crbench", "review", [1]),
        ("crbench", "review", {"strategy": [1]}),
        ("duplicates", "duplicates", {"suggest_above": [1]}),
    ],
)
def test_a_wrong_value_in_the_settings_of_a_run_is_named(benchmark: str, part: str, keys: object) -> None:
    assert f"run.json: config.{part}: " in spoiled(benchmark, {"error": "e"}, {part: keys})
