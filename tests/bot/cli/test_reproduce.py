"""``bouncer reproduce`` on a local checkout: what it prints and exits with."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bot.cli.github_commands import Ran
from tests.bot.reproduction.test_pipeline import unittest_of
from tests.builders import NO_PLUGINS

pytestmark = pytest.mark.debian("bubblewrap")

REPORT = "# split drops the rest\n\n`split([1, 2, 3], 2)` returns `[[1, 2]]`. I expect `[[1, 2], [3]]`.\n"
RIGHT = "from lists import split\n\ndef test_rest():\n    assert split([1, 2, 3], 2) == [[1, 2], [3]]\n"
WRONG = "from lists import split\n\ndef test_rest():\n    assert split() == 3\n"
COMMAND = f"{sys.executable} -m pytest -q {{tests}}"

Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, bouncer: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command with a recorded model that drafts ``codes``; exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    Path("project").mkdir()
    Path("project/lists.py").write_text(
        "def split(items, size):\n"
        "    return [items[i * size : (i + 1) * size] for i in range(len(items) // size)]\n"
    )
    for name, data in NO_PLUGINS.items():
        Path("project", name).write_bytes(data)
    Path("report.md").write_text(REPORT)

    def act(*codes: str, options: tuple[str, ...] = (), repo: str = "project") -> Ran:
        lines = [{"model": "m", "subject": "offline/files#1", "plan": "", "code": code} for code in codes]
        Path("drafts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        arguments = ["--issue", "report.md", "--repo", repo, "--test-command", COMMAND]
        return bouncer("reproduce", *arguments, "--model", "recorded:drafts.jsonl#m", *options)

    return act


@pytest.fixture
def quick(run: Run) -> Run:
    """Run the command with drafts for unittest, which starts in a third of pytest's time."""

    def act(*codes: str, options: tuple[str, ...]) -> Ran:
        command = COMMAND.replace("pytest", "unittest")
        return run(*map(unittest_of, codes), options=("--test-command", command, *options))

    return act


def test_the_best_test_is_printed_with_its_command_and_failure(run: Run) -> None:
    code, output, _ = run(RIGHT, WRONG, options=("--samples", "2"))

    assert code == 0
    first, *rest = output.replace(sys.executable, "python").splitlines()
    assert first.startswith("Reproduced: python -m pytest -q ")
    assert first.endswith(
        "tests/test_reported_bug.py::test_rest fails with AssertionError: "
        "assert [[1, 2]] == [[1, 2], [3]] (1 of 2 drafts agree)."
    )
    assert rest[0] == "New file tests/test_reported_bug.py:"
    assert RIGHT.splitlines()[-1] in rest


def test_json_is_one_object_with_the_test_and_what_became_of_every_draft(run: Run) -> None:
    code, output, errors = run(RIGHT, WRONG, options=("--samples", "2", "--json"))

    value = json.loads(output)
    assert (code, errors) == (0, "")
    assert value["state"] == "reproduced"
    assert value["test"]["path"] == "tests/test_reported_bug.py"
    assert value["test"]["failure"]["type"] == "AssertionError"
    assert value["test"]["failure"]["message"].startswith("assert [[1, 2]] == [[1, 2], [3]]\n")
    assert [attempt["fate"] for attempt in value["attempts"]] == ["failed", "failed"]
    assert value["attempts"][1]["why"] == "fails with TypeError, which is not what the report tells of"
    assert value["model"] == "recorded:drafts.jsonl#m"


def test_keys_of_bouncer_yml_are_read_and_overridden(quick: Run) -> None:
    Path("bouncer.yml").write_text("reproduce: {samples: 1, threshold: 2}\n")

    code, output, _ = quick(RIGHT, RIGHT, options=("--config", "bouncer.yml"))
    assert (code, output.splitlines()[0].partition(":")[0]) == (0, "Not reproduced")
    code, output, _ = quick(RIGHT, RIGHT, options=("--config", "bouncer.yml", "--set", "reproduce.threshold=1"))
    assert "(1 of 1 drafts agree)" in output
    code, output, _ = quick(RIGHT, RIGHT, options=("--config", "bouncer.yml", "--samples", "2"))
    assert "(2 of 2 drafts agree)" in output


def test_nothing_reproduced_is_an_answer_with_its_reasons(quick: Run) -> None:
    code, output, _ = quick(WRONG, options=("--samples", "1"))

    assert code == 0
    assert output.splitlines() == [
        "Not reproduced: no draft fails steadily for the reported reason",
        "- draft 1: failed. fails with TypeError, which is not what the report tells of",
    ]


def test_garbage_is_no_test(run: Run) -> None:
    code, output, _ = run("I cannot do that.", options=("--samples", "1"))

    assert (code, output.splitlines()[0]) == (0, "Not reproduced: no draft became a test that can be run")


def test_a_gate_fails_where_nothing_was_reproduced(quick: Run) -> None:
    assert quick(WRONG, options=("--samples", "1", "--fail-on", "not-reproduced"))[0] == 1
    assert quick(WRONG, options=("--samples", "1", "--fail-on", "not-run"))[0] == 0


def test_an_error_of_the_provider_ends_with_2_and_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    code, output, errors = run(options=("--samples", "1", "--json", "--model", "openai:m"))

    assert (code, output) == (2, "")
    assert errors.startswith("bouncer: openai could not be reached")
    assert errors.count("\n") == 1


def test_wrong_usage_ends_with_2_and_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(RIGHT, repo="nowhere")[0] == 2
    assert run(RIGHT, repo="nowhere")[2] == "bouncer: nowhere: no such folder\n"
    assert run(RIGHT, options=("--test-command", ""))[::2] == (2, "bouncer: --test-command: it is empty\n")
    monkeypatch.setenv("BOUNCER_SANDBOX", "off")
    assert "the sandbox is switched off" in run(RIGHT)[2]
