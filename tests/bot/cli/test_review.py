"""``bouncer review`` on files: what it prints, writes and exits with."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from tests import forked
from tests.bot.cli.github_commands import Ran
from tests.bot.features import reviews

DIFF = f"""{reviews.DIFF}diff --git a/uv.lock b/uv.lock
--- a/uv.lock
+++ b/uv.lock
@@ -1 +1 @@
-a
+b
"""
HIGH = {
    "path": "src/app.py",
    "quote": "return data.value",
    "comment": "Fails for an empty file.",
    "category": "Data",
    "impact": "Reliability",
    "severity": "high",
}
LOW = {**HIGH, "quote": "return parse(file)", "comment": "Was simpler.", "category": "coding", "severity": "low"}
ON_FILE = {**HIGH, "quote": "def load(path):", "comment": "Callers\nbreak.", "category": "iis"}

Run = Callable[..., tuple[int, str]]


LOAD = """

def load(path):
    check(path)
    with open(path) as file:
        return parse(file)
    raise Missing(path)


def check(path):
    return path
"""


@pytest.mark.parametrize("done", [False, True], ids=["without the change", "with the change"])
@pytest.mark.parametrize("command", ["review", "verify"])
def test_the_code_around_a_change_is_read_from_a_checkout(
    tmp_path: Path, bouncer: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, command: str, done: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    diff = DIFF.replace("@@ -10,3 +10,4 @@", "@@ -5,3 +5,4 @@").partition("diff --git a/uv.lock")[0]
    new = LOAD.replace("return parse(file)", "data = parse(file)\n        return data.value")
    for name, text in {"src/app.py": new if done else LOAD, ".venv/app.py": LOAD, "change.diff": diff}.items():
        Path("here", name).parent.mkdir(parents=True, exist_ok=True)
        Path("here", name).write_text(text)
    Path("issue.md").write_text("It fails\n\nFor an empty file.\n")
    # Answers only where the function around the change stands in the question.
    line = {
        "model": "m",
        "subject": "offline/files#1",
        "contains": "@ 3 rest of the file\n def load(path):\n     check(path)",
    }
    reply = {"findings": [], "reasoning": "r", "explanation": "e", "label": "INCORRECT"}
    Path("replies.jsonl").write_text(json.dumps({**line, **reply}) + "\n")
    files = (
        ["--diff", "here/change.diff"]
        if command == "review"
        else ["--issue", "issue.md", "--patch", "here/change.diff"]
    )

    code, output, _ = bouncer(command, *files, "--repo", "here", "--model", "recorded:replies.jsonl#m", "--json")

    assert code == 0
    assert json.loads(output)["verdict"] == ("clean" if command == "review" else "INCORRECT")


def test_the_workflows_of_a_checkout_are_read(
    tmp_path: Path, bouncer: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workflow = "jobs:\n  test:\n    strategy:\n      matrix:\n        node: [18, 20]\n"
    for name, text in {"src/app.py": LOAD, ".github/workflows/ci.yml": workflow, "change.diff": DIFF}.items():
        Path("here", name).parent.mkdir(parents=True, exist_ok=True)
        Path("here", name).write_text(text)
    line = {
        "model": "m",
        "subject": "offline/files#1",
        "contains": "Supports Node 18, 20 (.github/workflows/ci.yml)",
    }
    Path("replies.jsonl").write_text(json.dumps({**line, "findings": [], "reasoning": "r"}) + "\n")
    arguments = ("--diff", "here/change.diff", "--repo", "here", "--model", "recorded:replies.jsonl#m")
    assert bouncer("review", *arguments)[0] == 0


@pytest.fixture
def run(tmp_path: Path, bouncer: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in an empty folder with a model that reports ``findings``; exit code and output."""
    monkeypatch.chdir(tmp_path)

    def act(*arguments: str, findings: Any = (HIGH, LOW, ON_FILE), diff: str = DIFF) -> tuple[int, str]:
        line = {"model": "m", "subject": "offline/files#1", "reasoning": "r", "findings": findings}
        Path("replies.jsonl").write_text(json.dumps(line) + "\n")
        Path("change.diff").write_text(diff)
        return bouncer("review", "--diff", "change.diff", "--model", "recorded:replies.jsonl#m", *arguments)[:2]

    return act


def test_a_finding_is_a_line_as_compilers_write_it(run: Run) -> None:
    code, output = run()
    assert code == 0
    assert output == (
        "src/app.py:12: high (data, reliability): Fails for an empty file.\n"
        "src/app.py: high (iis, reliability): Callers break.\n"
        "uv.lock: not reviewed: lock file\n"
        "\n"
        "recorded:replies.jsonl#m, 0.0 s\n"
    )
    assert run("--set", "review.min_severity=low")[1].split("\n")[2] == (
        "src/app.py:11 (removed line): low (coding, reliability): Was simpler."
    )


def test_json_is_one_object_with_every_fate(run: Run) -> None:
    report = json.loads(
        run("--json", "--set", "review.strategy=reflexion", "--title", "T", "--description", "D")[1]
    )
    assert (report["verdict"], report["strategy"], report["rounds"]) == ("defects", "reflexion", 2)
    assert [finding["line"] for finding in report["findings"]] == [12, None]
    assert report["counts"] == {"reported": 3, "posted": 2, "suppressed:below_severity": 1}


@pytest.mark.parametrize(
    ("findings", "fail_on", "code"),
    [
        ([HIGH], ["finding"], 1),
        ([HIGH], ["high"], 1),
        ([HIGH], ["low"], 1),
        ([LOW], ["low"], 1),
        ([LOW], ["medium"], 0),
        ([LOW], ["finding"], 0),
        ([], ["finding"], 0),
        ([{**HIGH, "quote": "made_up()"}], ["finding"], 0),
        ("no list", ["finding"], 0),
        ("no list", ["finding", "abstain"], 1),
    ],
)
def test_as_a_gate_it_fails_on_what_it_is_told_to(findings: Any, fail_on: list[str], code: int, run: Run) -> None:
    options = [option for word in fail_on for option in ("--fail-on", word)]
    assert run(*options, findings=findings)[0] == code


def test_a_sarif_log_holds_to_the_standard(run: Run) -> None:
    run("--sarif", "log.sarif", "--set", "review.min_severity=low")
    log = json.loads(Path("log.sarif").read_text())
    Sarif.model_validate(log)
    (only,) = log["runs"]
    first, on_file, removed = only["results"]
    assert (first["ruleId"], first["level"], first["message"]["text"]) == (
        "data",
        "error",
        "Fails for an empty file.",
    )
    assert only["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "data"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/app.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 12, "endLine": 12},
    }
    assert "region" not in on_file["locations"][0]["physicalLocation"]
    assert removed["message"]["text"] == "Was simpler. (removed line 11)"
    (left_out,) = only["invocations"][0]["toolExecutionNotifications"]
    assert left_out["message"]["text"] == "not reviewed: lock file"


def test_a_sarif_log_is_written_without_findings_and_without_review(run: Run) -> None:
    for findings, complete in (([], True), ("no list", False)):
        run("--sarif", "log.sarif", findings=findings)
        log = json.loads(Path("log.sarif").read_text())
        Sarif.model_validate(log)
        assert log["runs"][0]["results"] == []
        assert log["runs"][0]["invocations"][0]["executionSuccessful"] is complete


def test_no_change_is_nothing_to_review(run: Run) -> None:
    assert run("--fail-on", "abstain", diff="") == (0, "Not reviewed: the change is empty\n")


BAD = {
    "no diff": (["--diff", "prose.txt"], "prose.txt: diff: line 1: no file header"),
    "no file": (["--diff", "absent.diff"], "absent.diff: No such file or directory"),
    "no pattern": (["--diff", "change.diff", "--config", "bad.yml"], "review.ignore"),
    "no folder for the log": (
        ["--diff", "change.diff", "--sarif", "absent/log.sarif"],
        "absent/log.sarif: No such",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments: list[str], message: str, run: Run, bouncer: Callable[..., Ran]
) -> None:
    run()
    Path("prose.txt").write_text("just words\n")
    Path("bad.yml").write_text("review: {ignore: ['!']}\n")
    code, _, error = bouncer("review", "--model", "recorded:replies.jsonl#m", *arguments)
    assert code == 2
    assert message in error
    assert len(error.strip().split("\n")) == 1


def test_a_diff_comes_through_a_pipe(run: Run) -> None:
    run()
    words = ("review", "--diff", "-", "--model", "recorded:replies.jsonl#m", "--json")
    ran = forked.run(*words, environment=os.environ, folder=Path.cwd(), stdin=DIFF.encode())
    assert json.loads(ran.out)["counts"]["posted"] == 2
