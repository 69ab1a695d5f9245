"""Submissions in the format of the benchmark's authors: written, read back, and checked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.core.errors import OperatorError
from evaluation.bouncerbench.leaderboard import read_config
from tests.evaluation.running import command, refusal, write

SITE = ("--name", "Bouncer (paper prompt)", "--site", "https://example.org")


@pytest.fixture
def inputs() -> Path:
    labels = {"a": "VAGUE", "b": "WELL_SPECIFIED", "c": "VAGUE"}
    return write(
        "in.jsonl", [{"instance_id": k, "label": v, "explanation": f"why {k}"} for k, v in labels.items()]
    )


@pytest.fixture
def outputs() -> Path:
    labels = {"a": "INCORRECT", "b": "CORRECT_AND_PRECISE"}
    return write(
        "out.jsonl", [{"instance_id": k, "label": v, "explanation": f"why {k}"} for k, v in labels.items()]
    )


def test_a_config_that_is_a_pipe_is_refused_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(OperatorError, match="not a regular file"):
        read_config(tmp_path / "config.yaml")


def test_a_submission_holds_every_decision_with_its_trace(inputs: Path, outputs: Path, tmp_path: Path) -> None:
    ran = command("leaderboard", "export", "--input", inputs, "--output", outputs, *SITE, "--out", "s", "--json")
    assert ran.json["entries"] == {"input": 3, "output": 2, "lite": 2}
    config = yaml.safe_load((tmp_path / "s/config.yaml").read_text())
    assert config["name"] == "Bouncer (paper prompt)"
    assert config["oss"] is True
    assert config["entries"]["lite"] == "bouncer-paper-prompt_lite.json"
    lite = json.loads((tmp_path / "s/data" / config["entries"]["lite"]).read_text())
    assert lite == {
        "a": {"input_bounce": True, "output_bounce": True, "trace": {"input": "why a", "output": "why a"}},
        "b": {"input_bounce": False, "output_bounce": False, "trace": {"input": "why b", "output": "why b"}},
    }
    checked = command("leaderboard", "validate", "s", "--json")
    assert (checked.json["valid"], checked.json["problems"]) == (True, [])


def test_lite_holds_only_what_both_bouncers_were_asked_about(inputs: Path) -> None:
    rows = [{"instance_id": name, "label": "INCORRECT", "explanation": "w"} for name in ("b", "d")]
    sources = ("--input", inputs, "--output", write("more.jsonl", rows))
    ran = command("leaderboard", "export", *sources, *SITE, "--out", "s", "--json")
    assert ran.json["entries"] == {"input": 3, "output": 2, "lite": 1}


def test_a_submission_scores_as_the_answers_it_was_made_of(inputs: Path) -> None:
    tasks = write("tasks.jsonl", [{"instance_id": name, "underspecified": n} for n, name in enumerate("abc")])
    command("leaderboard", "export", "--input", inputs, *SITE, "--out", "s")
    scores = [
        command("score", "bouncerbench-input", "--tasks", tasks, "--predictions", file, "--json").json
        for file in (inputs, "s/data/bouncer-paper-prompt_input.json")
    ]
    assert scores[0]["f_m"] == scores[1]["f_m"]
    assert scores[0]["i_score"] == scores[1]["i_score"]


def test_a_missing_answer_is_refused_unless_it_is_to_count_as_a_pass(tmp_path: Path) -> None:
    gap = write("gap.jsonl", [{"instance_id": "a", "label": None}])
    refused = command("leaderboard", "export", "--input", gap, *SITE, "--out", "s", code=2)
    assert "a has no answer" in refused.err
    command("leaderboard", "export", "--input", gap, *SITE, "--missing", "accept", "--out", "s")
    entries = json.loads((tmp_path / "s/data/bouncer-paper-prompt_input.json").read_text())
    assert entries["a"]["input_bounce"] is False


def written(folder: Path, config: Any, entries: Any) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "config.yaml").write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    (folder / "data/e.json").write_text(json.dumps(entries))


CONFIG = {"name": "n", "oss": True, "site": "s", "icon": "i.svg", "entries": {"input": "e.json"}}
ENTRY = {"input_bounce": True, "trace": "t"}


@pytest.mark.parametrize(
    ("config", "entries", "problem"),
    [
        ({**CONFIG, "name": ""}, {"a": ENTRY}, "config.yaml: name: "),
        ({**CONFIG, "oss": "yes"}, {"a": ENTRY}, "config.yaml: oss: "),
        ({**CONFIG, "icon": "../x.svg"}, {"a": ENTRY}, "config.yaml: icon: "),
        ({**CONFIG, "entries": {"input": None}}, {"a": ENTRY}, "name at least one of lite, input, output"),
        ({**CONFIG, "entries": {"input": "../e.json"}}, {"a": ENTRY}, "a file name under data/ is needed"),
        (CONFIG, {}, "data/e.json: a JSON object keyed by instance id is needed"),
        (
            CONFIG,
            {"a": {"input_bounce": "true", "trace": ""}},
            "data/e.json: a: input_bounce must be true or false",
        ),
        (CONFIG, {"a": {"input_bounce": True}}, "data/e.json: a: trace is missing"),
        (CONFIG, {"../a": ENTRY}, "not a name that a folder of traces can have"),
        ({**CONFIG, "entries": {"lite": "e.json"}}, {"a": ENTRY}, "a: output_bounce must be true or false"),
    ],
)
def test_what_the_leaderboard_would_refuse_is_found(
    tmp_path: Path, config: Any, entries: Any, problem: str
) -> None:
    written(tmp_path / "s", config, entries)
    checked = command("leaderboard", "validate", "s", "--json", code=1)
    assert any(problem in entry for entry in checked.json["problems"])


def test_gaps_and_strangers_are_warned_of(tmp_path: Path) -> None:
    written(tmp_path / "s", {**CONFIG, "oss": False}, {"a": {"input_bounce": True, "trace": ""}, "z": ENTRY})
    tasks = write("t.jsonl", [{"instance_id": "a"}, {"instance_id": "b"}, {"instance_id": "c"}])
    checked = command("leaderboard", "validate", "s", "--input-tasks", tasks)
    assert "1 entry has an empty trace" in checked.out
    assert "2 of 3 tasks have no entry" in checked.out
    assert "1 entry is no task" in checked.out
    assert "'oss: false' for a missing field" in checked.out


@pytest.mark.parametrize("config", ["a: [", "!!python/object/apply:os.system ['true']", "- 1"])
def test_a_config_is_data_and_never_run(tmp_path: Path, config: str) -> None:
    written(tmp_path / "s", config, {"a": ENTRY})
    command("leaderboard", "validate", "s", code=1 if config == "- 1" else 2)


@pytest.mark.parametrize("text", ["a: !!bool x", "!!timestamp x: a", "!!int '': a", "!!float x: a", "[" * 9_000])
def test_a_config_that_yaml_stumbles_over_is_named_as_no_yaml(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(OperatorError, match="not YAML"):
        read_config(file)


def test_a_submission_needs_a_name(inputs: Path) -> None:
    message = refusal("leaderboard export --name '' --site s --out s --input", inputs)
    assert "config.yaml: name: String should have at least 1 character" in message
