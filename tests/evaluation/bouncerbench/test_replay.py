"""Replay through the live handlers: the recorded verdicts come back, and so do their figures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.running import Captured, Ran, command, read, refusal, replies, write

ROOT = Path(__file__).parents[3]
#: What may differ between scoring a run and scoring the file that it was recorded from.
_ABOUT_FILES = ("model", "unknown_instances")


def figures(report: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name not in _ABOUT_FILES}


@pytest.mark.parametrize("model", ["gemma3_27b-it-q8_0", "o4-mini"])
@pytest.mark.parametrize(("side", "count"), [("input", 694), ("output", 425)])
def test_triage_and_verify_reproduce_every_recorded_verdict(
    shared_data: Path, issues: Path, tmp_path: Path, side: str, count: int, model: str
) -> None:
    folder, run = shared_data / "bouncerbench", tmp_path / "run"
    responses = folder / f"recorded_{side}_responses.jsonl.gz"
    tasks = issues if side == "input" else folder / "output_tasks.jsonl.gz"
    shared = f"bouncerbench-{side} --tasks {tasks} --json"
    ran = command(f"replay {shared} --model recorded:{responses}#{model} --out {run}")
    assert (ran.json["records"], ran.json["failed"]) == (count, 0)
    recorded = {row["instance_id"]: row["label"] for row in read(responses) if row["model"] == model}
    result = {record["task_id"]: record["decision"]["verdict"] for record in read(run / "records.jsonl")}
    assert result == {name: recorded[name] for name in result}
    assert len(result) == count
    of_run = command(f"score {shared} --run {run}").json
    direct = command(f"score {shared} --predictions {responses} --model-name {model}").json
    assert figures(of_run) == figures(direct)


@pytest.fixture
def small() -> tuple[Path, Path]:
    """Thirty issues and recorded replies to them."""
    names = [f"o__n-{n}" for n in range(30)]
    tasks = write(
        "tasks.jsonl",
        [
            {"instance_id": name, "problem_statement": f"Title {name}\nText", "underspecified": n % 4}
            for n, name in enumerate(names)
        ],
    )
    labels = {name: "VAGUE" if n % 3 else "WELL_SPECIFIED" for n, name in enumerate(names)}
    return tasks, replies("replies.jsonl", labels)


def replay(small: tuple[Path, Path], run: Path, *more: object, code: int = 0) -> Ran:
    tasks, recorded = small
    return command(
        f"replay bouncerbench-input --tasks {tasks} --model recorded:{recorded}#m --out {run}", *more, code=code
    )


def test_a_run_is_a_folder_with_its_facts_and_one_line_a_task(small: tuple[Path, Path], tmp_path: Path) -> None:
    replay(small, tmp_path / "run")
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert facts["benchmark"] == "bouncerbench-input"
    assert facts["model"].endswith("replies.jsonl#m")
    assert list(facts["prompts"]) == ["triage.paper"]
    assert facts["config"]["triage"]["bounce_at"] == "VAGUE"
    assert facts["totals"]["records"] == 30
    assert facts["started_at"] <= facts["finished_at"]
    first = read(tmp_path / "run/records.jsonl")[0]
    assert {"task_id", "decision", "raw_reply", "usage", "seconds", "error"} <= first.keys()
    assert json.loads(first["raw_reply"])["explanation"] == "e"
    assert first["decision"]["kind"] == "triage"
    assert first["decision"]["subject"]["repository"] == "o/n"


def test_a_longer_limit_goes_on_and_another_line_is_another_run(small: tuple[Path, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert replay(small, run, "--limit", 4, "--json").json["finished"] == 4
    assert replay(small, run, "--limit", 9, "--json").json["finished"] == 5
    refusal = replay(small, run, "--set", "triage.bounce_at=REASONABLY_SPECIFIED", code=2).err
    assert 'holds another run (config.triage.bounce_at was "VAGUE", is now "REASONABLY_SPECIFIED")' in refusal


def test_any_key_of_the_configuration_can_be_set(small: tuple[Path, Path], tmp_path: Path) -> None:
    replay(small, tmp_path / "run", "--set", "triage.prompt=careful", "--set", "triage.bounce_above=80")
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert (facts["config"]["triage"]["prompt"], facts["config"]["triage"]["bounce_above"]) == ("careful", 80)


def test_the_tasks_of_a_run_are_its_denominator(small: tuple[Path, Path], tmp_path: Path) -> None:
    """Eight of thirty tasks were to be done: the others are not missing. Of the eight, those not reached are."""
    tasks, _ = small
    run = tmp_path / "run"
    replay(small, run, "--limit", 8, "--seed", 1)
    score = ("score", "bouncerbench-input", "--tasks", tasks, "--run", run, "--replicates", 0, "--json")
    done = command(*score).json
    assert (done["n"], done["tasks"], done["answered"], done["missing"]) == (8, 8, 8, 0)

    lines = (run / "records.jsonl").read_text().splitlines(keepends=True)
    (run / "records.jsonl").write_text("".join(lines[:3]))
    cut = command(*score).json
    assert (cut["n"], cut["answered"], cut["missing"], cut["errors"]) == (8, 3, 5, 0)
    page = command("report", run, "--json").json
    of_run = next(part["scores"] for part in page["sections"] if "scores" in part)
    assert {(share["n"], share["missing"]) for share in of_run.values()} == {(8, 5)}

    (run / "tasks.txt").unlink()
    assert command(*score).json == cut, "a folder without the list says the same by its limit and seed"


def test_a_task_file_that_lacks_tasks_of_the_run_is_a_part_and_says_so(
    small: tuple[Path, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    replay(small, run)
    part = write("part.jsonl", [json.loads(line) for line in small[0].read_text().splitlines()[:4]])
    (run / "tasks.txt").unlink()
    scored = command("score", "bouncerbench-input", "--tasks", part, "--run", run, "--replicates", 0)
    assert "4 of 30 tasks scored, 30 answered, 0 missing, 26 tasks of unknown truth not scored" in scored.out


def test_a_run_names_its_tasks_from_everywhere_and_no_cost_out_of_nothing(
    small: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, recorded = small
    model = f"recorded:{recorded}#m"
    monkeypatch.setattr(Captured, "isatty", lambda stream: True)
    bar = command("replay", "bouncerbench-input", "--tasks", "tasks.jsonl", "--model", model, "--out", "run").err
    assert "0 failed" in bar
    assert "0.00 USD" not in bar
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    page = command("report", tmp_path / "run").out
    assert "| m | 30 | 30 | 0 | 0 | 0 | – | – | 0.000 |" in page
    assert "investigate False" in page
    command("replay", "bouncerbench-input", "--tasks", "../tasks.jsonl", "--model", model,
                   "--out", tmp_path / "run")  # fmt: skip


def test_a_task_without_a_recorded_reply_is_a_failure_that_can_be_retried(
    small: tuple[Path, Path], tmp_path: Path
) -> None:
    tasks, recorded = small
    reply = recorded.read_text().splitlines(keepends=True)
    recorded.write_text("".join(reply[:-2]))
    run = tmp_path / "run"
    assert replay(small, run, "--json").json["failed"] == 2
    failed = [record for record in read(run / "records.jsonl") if record["error"]]
    assert failed[0]["error"].startswith("model:unrecorded: replies.jsonl holds no reply of m for o__n-28")
    scored = command("score", "bouncerbench-input", "--tasks", tasks, "--run", run, "--json").json
    assert (scored["n"], scored["missing"], scored["errors"]) == (30, 2, 2)
    output = replay(small, run).err.splitlines()
    assert output[0].endswith("0 + 0 tokens, cost unknown")
    assert output[1:] == [f"1 of them: {task_id['error']}" for task_id in failed] + [
        "--retry-failed tries these again"
    ]
    recorded.write_text("".join(reply))
    again = replay(small, run, "--retry-failed", "--json").json
    assert (again["finished"], again["failed"], again["records"]) == (2, 0, 30)


def test_tasks_without_text_are_left_out_and_said(small: tuple[Path, Path]) -> None:
    _, recorded = small
    rows = [{"instance_id": "o__n-1", "underspecified": 1}, {"instance_id": "o__n-2", "problem_statement": "T"}]
    write("t.jsonl", rows)
    write("u.jsonl", rows[:1])
    line = f"replay bouncerbench-input --model recorded:{recorded}#m --out r --tasks"
    assert "1 task of" in command(f"{line} t.jsonl").err
    assert "none of its 1 tasks holds what a replay needs" in refusal(f"{line} u.jsonl")
    write("v.jsonl", [])
    assert "v.jsonl: it holds no task" in refusal(f"{line} v.jsonl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "none.jsonl", "--model", "recorded:x#m"], "none.jsonl: No such file"),
        (["--tasks", "{tasks}", "--model", "recorded:none.jsonl#m"], "none.jsonl cannot be read"),
        (["--tasks", "{tasks}", "--model", "recorded:{recorded}#z"], "holds no model 'z'"),
        (["--tasks", "{tasks}"], "no model is named: use --model or BOUNCER_MODEL"),
        (
            ["--tasks", "{tasks}", "--model", "oracle:x"],
            "model 'oracle:x' (--model, BOUNCER_MODEL): must be one of",
        ),
        (["--tasks", "{tasks}", "--model", "recorded:{recorded}#m", "--set", "triage.bounce_at=WORSE"], "WORSE"),
        (["--tasks", "{tasks}", "--model", "recorded:{recorded}#m", "--config", "none.yml"], "none.yml"),
        (["--tasks", "{tasks}", "--model", "mean(a:b,c:d)"], "mean: the paper's question asks for no probability"),
        (
            ["--tasks", "{tasks}", "--model", "recorded:{recorded}#m", "--set", "triage.bounce_above=40"],
            "bounce_above: the paper's question asks for no probability",
        ),
    ],
)
def test_bad_input_ends_with_2_and_one_line(small: tuple[Path, Path], arguments: list[str], message: str) -> None:
    tasks, recorded = small
    filled = [argument.format(tasks=tasks, recorded=recorded) for argument in arguments]
    assert message in refusal("replay", "bouncerbench-input", *filled, "--out", "run")


def test_a_replay_that_is_killed_and_resumed_gives_the_same_records(
    issues: Path, shared_data: Path, tmp_path: Path
) -> None:
    responses = shared_data / "bouncerbench/recorded_input_responses.jsonl.gz"
    arguments = [
        "replay", "bouncerbench-input", "--tasks", str(issues), "--limit", "200",
        "--model", f"recorded:{responses}#o4-mini", "--out",
    ]  # fmt: skip
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluation", *arguments, str(killed)],
        cwd=Path(__file__).parents[3],
        stderr=subprocess.DEVNULL,
    )
    while _size(killed / "records.jsonl") == 0 and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.05)
    process.kill()
    process.wait()
    assert _size(killed / "records.jsonl") > 0
    command(*arguments, killed)
    command(*arguments, straight)
    assert len(read(killed / "records.jsonl")) == 200
    assert (killed / "records.jsonl").read_bytes() == (straight / "records.jsonl").read_bytes()


def test_ctrl_c_records_what_is_under_way_and_says_how_to_go_on(
    issues: Path, shared_data: Path, tmp_path: Path
) -> None:
    responses = shared_data / "bouncerbench/recorded_input_responses.jsonl.gz"
    process = subprocess.Popen(
        [
            sys.executable, "-m", "evaluation", "replay", "bouncerbench-input", "--tasks", str(issues),
            "--model", f"recorded:{responses}#o4-mini", "--out", str(tmp_path / "run"),
        ],
        cwd=Path(__file__).parents[3],
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    while _size(tmp_path / "run/records.jsonl") == 0 and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in output
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert facts["finished_at"] is None
    assert 0 < facts["totals"]["records"] == len(read(tmp_path / "run/records.jsonl")) < 694


#: The command with files of 8 KB at most, as on a disk that is full.
FULL = """
import resource, sys
from evaluation.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
main()
"""


@pytest.mark.parametrize(
    ("what", "out"),
    [
        ("replay bouncerbench-input", "run"),
        ("batch export bouncerbench-input --format openai --cache cache", "requests.jsonl"),
    ],
)
def test_a_full_disk_is_one_line(small: tuple[Path, Path], tmp_path: Path, what: str, out: str) -> None:
    model = f"recorded:{small[1]}#m" if out == "run" else "openai:gpt-4.1"
    arguments = [*what.split(), "--tasks", str(small[0]), "--model", model, "--out", out]
    full = [sys.executable, "-c", FULL, *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(full, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert ended.returncode == 2
    assert ended.stderr.startswith("bouncer-eval: ")
    assert ended.stderr.endswith(": File too large\n")
    assert ended.stderr.count("\n") == 1
    if out == "run":
        replay(small, tmp_path / "run")
        assert len({record["task_id"] for record in read(tmp_path / "run/records.jsonl")}) == 30


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
