"""``bouncer-eval build fresh`` on ten planted bugs: what is real is found, what is flaky is not kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluation.bouncerbench.tasks import output_tasks
from evaluation.brt.cases import read_cases
from evaluation.crbench.task import read_tasks
from tests.conftest import ROOT
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import command, read, write

pytestmark = pytest.mark.debian("bubblewrap")

REAL, FLAKY, UNTESTED = range(1, 7), (7, 8), (9, 10)
#: Of the real ones: mended at two places, and by a condition.
SPREAD, GUARDED = (1, 2), (3, 4)
BETWEEN = tuple(f"# {number}" for number in range(12))
ARGUMENTS = ("--since", "2020-01-01", "--test-command", f"{sys.executable} -m unittest {{tests}}")


def broken(bug: int) -> tuple[str, ...]:
    if bug in FLAKY:
        return ("import random", "", "def f(x):", "    return random.random() < 0.5")
    if bug in GUARDED:
        return ("def f(x):", "    return 10 // x")
    return ("def f(x):", "    return x + 2", *BETWEEN, "def g(x):", "    return x - 2")


def mended(bug: int) -> tuple[str, ...]:
    if bug == FLAKY[0]:
        return ("def f(x):", "    return True")
    if bug == FLAKY[1]:
        return ("import random", "", "def f(x):", "    return random.random() > 0.5")
    if bug in GUARDED:
        return ("def f(x):", "    if x == 0:", "        return 0", "    return 10 // x")
    other = "    return x - 1" if bug in SPREAD else "    return x - 2"
    return ("def f(x):", "    return x + 1", *BETWEEN, "def g(x):", other)


def suite(bug: int) -> tuple[str, ...]:
    checks = ["f(1) == 2"]
    if bug in SPREAD:
        checks.append("g(1) == 0")
    if bug in GUARDED:
        checks = ["f(0) == 0", "f(5) == 2"]
    if bug in FLAKY:
        checks = ["f(1)"] * 64
    head = ("import unittest", f"from planted.m{bug} import *", "", "", "class BugTest(unittest.TestCase):")
    return (
        *head,
        *(
            line
            for number, check in enumerate(checks)
            for line in (f"    def test_{number}(self):", f"        self.assertTrue({check})", "")
        ),
    )


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Each bug comes in by a pull request of its own and goes by another."""
    repository = Scratch(tmp_path / "ada+planted")
    repository.commit("Begin", "README.md", "Planted.")
    for bug in (*REAL, *FLAKY, *UNTESTED):
        repository.commit(f"Add m{bug} (#{bug})", f"planted/m{bug}.py", *broken(bug))
    repository.commit("Document it all (#50)", "README.md", "Planted, with care.")
    for bug in (*REAL, *FLAKY, *UNTESTED):
        repository.write(f"planted/m{bug}.py", *mended(bug))
        if bug not in UNTESTED:
            repository.write(f"tests/test_m{bug}.py", *suite(bug))
        if bug == REAL[-1]:
            repository.write("CHANGES", f"- m{bug} counts right again.")
        repository.commit(f"Fix m{bug} (#{100 + bug})\n\nFixes #{200 + bug}.")
    return repository.folder


def finished(out: Path) -> list[bytes]:
    file = out / "fixes.jsonl"
    return file.read_bytes().splitlines(keepends=True) if file.exists() else []


def test_planted_bugs_are_found_and_a_killed_build_goes_on(planted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    issues = [{"number": 201, "title": "m1 is off", "body": "By one, at both ends.", "labels": [{"name": "bug"}]}]
    export = tmp_path / "issues.jsonl"
    write(export, issues)
    patches = tmp_path / "patches.jsonl"
    wrong = (
        "--- a/planted/m5.py\n+++ b/planted/m5.py\n@@ -1,2 +1,2 @@\n def f(x):\n-    return x + 2\n+    return 3\n"
    )
    values = {"instance_id": "ada__planted-105", "candidate_id": "agent", "patch": wrong}
    right = {**values, "candidate_id": "other", "patch": wrong.replace("return 3", "return 1 + x")}
    write(patches, (values, right))
    words = ("build", "fresh", "--repo", str(planted), "--out", str(out), *ARGUMENTS,
             "--export", str(export), "--patches", str(patches))  # fmt: skip

    with subprocess.Popen(
        [sys.executable, "-m", "evaluation", *words], stdout=subprocess.DEVNULL, start_new_session=True, cwd=ROOT
    ) as begun:
        while begun.poll() is None and len(finished(out)) < 4:
            time.sleep(0.02)
        os.killpg(begun.pid, signal.SIGKILL)
    before = [line for line in finished(out) if line.endswith(b"\n")]
    output = command(*words, "--json").json["steps"]

    assert 4 <= len(before) < len(REAL) + len(FLAKY)
    assert finished(out)[: len(before)] == before
    assert (output["changes"], output["fixes"], output["with code and tests"]) == (21, 10, 8)
    assert output["run"] == output["with tests to name"] == len(REAL) + len(FLAKY)
    cases = read_cases(str(out / "reproduction.jsonl"))
    assert set(cases) == {f"ada__planted-{100 + bug}" for bug in REAL}
    assert output["reproduction cases"] == len(REAL)
    assert not (cases["ada__planted-101"].base / "tests").exists()
    assert sum(count for step, count in output.items() if step.startswith("not kept")) == len(FLAKY)
    rows = {row["instance_id"]: row for row in read(out / "reproduction.jsonl")}
    assert rows["ada__planted-101"]["problem_statement"] == "m1 is off\n\nBy one, at both ends."
    assert [rows[f"ada__planted-{100 + bug}"]["stated"] for bug in (1, 2, 6)] == [
        "issue", "pull request", "changelog entry",
    ]  # fmt: skip
    outputs = {task.instance_id: task for task in output_tasks(str(out / "output.jsonl"))}
    truths = {name: task.bounce for name, task in outputs.items()}
    assert all(truths[f"ada__planted-{100 + bug}.fix"] is False for bug in REAL)
    # Of m6's, the first is that without the changelog's hunk: no test finds it wrong.
    assert {name for name, bounce in truths.items() if bounce and ".variant" in name} == {
        *(f"ada__planted-{100 + bug}.variant{number}" for bug in SPREAD for number in (1, 2)),
        *(f"ada__planted-{100 + bug}.variant1" for bug in GUARDED),
        "ada__planted-106.variant2",
    }
    assert (truths["ada__planted-105.agent"], truths["ada__planted-105.other"]) == (True, False)
    reviews = {task.instance_id: task for task in read_tasks(str(out / "review.jsonl"))}
    assert reviews["ada__planted-105"].prs == (5,)
    for file in ("reproduction.jsonl", "output.jsonl", "review.jsonl"):
        assert all(row["fixed_at"].startswith("2020-09-13T") for row in read(out / file)), file
