"""Batches cost half: requests go out keyed, answers come in, and the replay goes on from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.running import Ran, command, read, refusal, write

SAID = {"explanation": "what", "open_points": ["which?"], "missing": [], "p_bounce": 71, "label": "VAGUE"}
Result = Callable[[dict[str, Any], str], dict[str, Any]]


def by_openai(request: dict[str, Any], text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    body = {
        "model": "gpt-4.1-2025-04-14",
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 500},
    }
    return {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}


def by_anthropic(request: dict[str, Any], text: str) -> dict[str, Any]:
    message = {
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1000, "output_tokens": 500},
    }
    return {"custom_id": request["custom_id"], "result": {"type": "succeeded", "message": message}}


@pytest.fixture
def tasks() -> Path:
    rows = [{"instance_id": f"o__n-{n}", "problem_statement": f"Title {n}", "underspecified": n} for n in range(4)]
    return write("tasks.jsonl", rows)


def cached(model: str) -> tuple[str, ...]:
    return ("--model", model, "--cache", "cache")


def export(tasks: Path, model: str = "openai:gpt-4.1") -> Ran:
    form, out = model.partition(":")[0], ("--out", "requests.jsonl", "--json")
    return command(f"batch export bouncerbench-input --tasks {tasks}", *cached(model), "--format", form, *out)


@pytest.mark.parametrize(
    ("model", "result", "price"),
    [("openai:gpt-4.1", by_openai, (2.0, 8.0)), ("anthropic:claude-sonnet-4-5", by_anthropic, (3.0, 15.0))],
)
def test_a_round_of_export_and_import_answers_the_replay_without_a_key(
    tasks: Path, tmp_path: Path, model: str, result: Result, price: tuple[float, float]
) -> None:
    exported = export(tasks, model)
    assert (exported.json["requests"], exported.json["waiting"]) == (4, 4)
    requests = read(tmp_path / "requests.jsonl")
    for request in requests:
        assert request["body"]["messages"][-1]["role"] == "user"
        assert "VAGUE" in json.dumps(request["body"])  # the schema, or the prompt, names the labels
        assert len(request["custom_id"]) <= 64
    back = write("results.jsonl", [result(request, json.dumps(SAID)) for request in reversed(requests)])
    assert command("batch", "import", back, "--cache", "cache", "--json").json["kept"] == 4
    ran = command("replay", "bouncerbench-input", "--tasks", tasks, *cached(model), "--out", "run", "--json")
    assert (ran.json["records"], ran.json["failed"], ran.json["postponed"]) == (4, 0, 0)
    assert {record["decision"]["verdict"] for record in read(tmp_path / "run/records.jsonl")} == {"VAGUE"}
    at_once = (1000 * price[0] + 500 * price[1]) / 1e6
    assert ran.json["usage"]["cost_usd"] == pytest.approx(4 * at_once / 2)
    again = export(tasks, model)
    assert (again.json["requests"], again.json["answered"]) == (0, 4)


def test_a_replay_before_all_answers_are_there_goes_on_later(tasks: Path, tmp_path: Path) -> None:
    export(tasks)
    requests = read(tmp_path / "requests.jsonl")
    replay = ("replay", "bouncerbench-input", "--tasks", tasks, *cached("openai:gpt-4.1"))
    for count, code in ((1, 1), (4, 0)):
        rows = [by_openai(request, json.dumps(SAID)) for request in requests[:count]]
        command("batch", "import", write("results.jsonl", rows), "--cache", "cache")
        ran = command(*replay, "--out", "run", "--json", code=code)
        assert (ran.json["records"], ran.json["failed"]) == (count, 0)
    names = [record["task_id"] for record in read(tmp_path / "run/records.jsonl")]
    assert sorted(names) == [f"o__n-{n}" for n in range(4)]


def test_a_failed_request_is_named_and_asked_again(tasks: Path, tmp_path: Path) -> None:
    export(tasks)
    first, second, third, fourth = read(tmp_path / "requests.jsonl")
    rows = [
        {"custom_id": first["custom_id"], "response": None, "error": {"code": "batch_expired"}},
        {
            "custom_id": second["custom_id"],
            "response": {"status_code": 429, "body": {"error": "slow"}},
            "error": None,
        },
        by_openai(third, "I would rather not say."),
        {"custom_id": fourth["custom_id"], "result": {"type": "expired"}},
    ]
    ran = command("batch", "import", write("results.jsonl", rows), "--cache", "cache", "--json", code=1)
    assert ran.json["kept"] == 0
    assert [failure.split("results.jsonl:")[1][:1] for failure in ran.json["failures"]] == ["1", "2", "3", "4"]
    assert export(tasks).json["requests"] == 4


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"custom_id": "../../etc/passwd", "result": {}}, "results.jsonl:1: custom_id: not a key"),
        ({"custom_id": "a" * 32}, "results.jsonl:1: neither a result of OpenAI's Batch API nor of Anthropic's"),
        ({"custom_id": "a" * 32, "result": {"type": "succeeded", "message": {}}}, "the result names no model"),
    ],
)
def test_a_file_that_holds_no_results_is_refused(row: dict[str, Any], message: str) -> None:
    assert message in refusal("batch", "import", write("results.jsonl", [row]), "--cache", "cache")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "openai:gpt-4.1", "--format", "anthropic", "--cache", "c"], "needs one model anthropic:NAME"),
        (["--model", "openai:a,openai:b", "--format", "openai", "--cache", "c"], "needs one model openai:NAME"),
        (
            ["--model", "openai:gpt-4.1", "--format=carrier-pigeon", "--cache", "c"],
            "'carrier-pigeon' is not one of",
        ),
        (["--model", "openai:gpt-4.1", "--cache", "c"], "Missing option '--format'"),
        (["--model", "openai:gpt-4.1", "--format", "openai"], "Missing option '--cache'"),
    ],
)
def test_an_export_that_cannot_work_says_why(tasks: Path, arguments: list[str], message: str) -> None:
    assert message in refusal(f"batch export bouncerbench-input --tasks {tasks}", *arguments, "--out", "r.jsonl")


def test_an_empty_result_file_is_refused_and_export_lists_options() -> None:
    ran = command("batch", "import", write("empty.jsonl", []), "--cache", "cache", code=2)
    assert ran.err.endswith("empty.jsonl holds no result\n")
    output = command("batch", "export", "bouncerbench-input", "--help").out
    assert output.startswith("Usage: bouncer-eval batch export bouncerbench-input [OPTIONS]\n")
    for line in ("--tasks F", "--format [openai|anthropic]", "--out FILE  ", "--cache DIR  "):
        assert line in output
    assert "bouncerbench-output  " in command("batch", "export", "--help").out


def test_only_questions_of_the_benchmark_are_offered() -> None:
    assert "--prompt [paper|panel|careful]" in command("replay bouncerbench-input --help").out
    assert "--prompt [paper|panel|careful|rubric]" in command("replay bouncerbench-output --help").out


def test_a_cache_that_cannot_be_written_is_named() -> None:
    file = write("results.jsonl", [by_openai({"custom_id": "a" * 32}, json.dumps(SAID))])
    assert "Not a directory" in refusal("batch", "import", file, "--cache", file)


def test_a_cut_answer_is_asked_for_once_more_at_low_effort(tasks: Path, tmp_path: Path) -> None:
    def cut(request: dict[str, Any]) -> dict[str, Any]:
        row = by_openai(request, '{"explanation": "so f')
        row["response"]["body"]["choices"][0]["finish_reason"] = "length"
        row["response"]["body"]["model"] = request["body"]["model"]
        return row

    def import_rows(rows: list[dict[str, Any]]) -> Ran:
        return command("batch", "import", write("results.jsonl", rows), "--cache", "cache", "--json", code=1)

    model, efforts = "openai:gpt-5-mini", []
    while export(tasks, model).json["requests"]:
        requests = read(tmp_path / "requests.jsonl")
        efforts.append({request["body"].get("reasoning_effort") for request in requests})
        assert len(import_rows([cut(request) for request in requests]).json["failures"]) == 4
    assert efforts == [{"medium"}, {"low"}]
    replay = ("replay", "bouncerbench-input", "--tasks", tasks, *cached(model), "--out", "run", "--json")
    assert (command(*replay).json["failed"], command(*replay).json["postponed"]) == (4, 0)
    error = read(tmp_path / "run/records.jsonl")[0]["error"]
    assert "cut off after 4000 tokens" in error


def test_a_cut_answer_of_a_model_without_effort_is_final(tasks: Path, tmp_path: Path) -> None:
    export(tasks)
    rows = [by_openai(request, "{") for request in read(tmp_path / "requests.jsonl")]
    for row in rows:
        row["response"]["body"]["choices"][0]["finish_reason"] = "length"
    command("batch", "import", write("results.jsonl", rows), "--cache", "cache", code=1)
    assert export(tasks).json["requests"] == 0


def test_a_wrong_format_keeps_the_file_of_an_earlier_export(tasks: Path, tmp_path: Path) -> None:
    export(tasks)
    earlier = (tmp_path / "requests.jsonl").read_bytes()
    export_as = f"batch export bouncerbench-input --tasks {tasks} --format anthropic --out requests.jsonl"
    assert "needs one model anthropic:NAME" in refusal(export_as, *cached("openai:gpt-4.1"))
    assert (tmp_path / "requests.jsonl").read_bytes() == earlier
