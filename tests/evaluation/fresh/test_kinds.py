"""The output of ``build fresh`` is replayed and scored: one bug with a set-up of its own, a task of every kind."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.core.subjects import Issue, Repository
from bot.github.offline import AUTHOR
from bot.github.protocol import Past, PastIssue
from bot.reproduction.setup import Recipe
from evaluation.crbench.judge import comments_in
from evaluation.run.folder import RunFolder
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import command, read, write

pytestmark = [pytest.mark.debian("bubblewrap"), pytest.mark.usefixtures("remembered_runs")]

BUG = "ada__lists-12"
CUTOFF = ("--cutoff", "2020-09-01")
#: Stands for what would be installed.
SETUP = 'echo "ANSWER = 42" >"$(echo "$VIRTUAL_ENV"/lib/python*/site-packages)"/dep.py'
#: What a release would have written, and no commit holds.
VERSION = "from lists._version import NUMBER"
CLEAN = ("import dep", VERSION, "def first(items):", "    return items[0] if items else None")
BROKEN = ("import dep", VERSION, "def first(items):", "    return items[0]")
TEST = (
    "import unittest",
    "from lists.core import first",
    "class FirstTest(unittest.TestCase):",
    "    def test_empty(self):",
    "        self.assertIsNone(first([]))",
    "    def test_some(self):",
    "        self.assertEqual(first([1]), 1)",
)
DRAFT = "\n".join(TEST[:5]) + "\n"
BUILD = "build fresh --repo ada+lists --since 2020-01-01 --test-command 'python -m unittest {tests}'"


@pytest.fixture(autouse=True)
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that came with one pull request and went with another."""
    monkeypatch.setenv("BOUNCER_SANDBOX_NETWORK", "none")  # no set-up here downloads anything
    clone = Scratch(tmp_path / "ada+lists")
    clone.write("lists/__init__.py")
    clone.write("pyproject.toml", "[tool.pytest.ini_options]", 'python_files = ["test_*.py"]')
    clone.commit("Begin", "lists/core.py", *CLEAN)
    clone.commit("Simplify (#7)", "lists/core.py", *BROKEN)
    clone.commit("Say more (#8)", "README.md", "Lists.")
    clone.write("tests/__init__.py")
    clone.write("tests/test_core.py", *TEST)
    # Looks like a test, and is what tests read: pytest is told not to collect it.
    clone.write("tests/data/sample.py", "def test_nothing(:")
    clone.commit("Fix first for empty lists (#12)", "lists/core.py", *CLEAN)


@pytest.fixture
def built() -> None:
    """Its tasks, with the report from an export of ``bouncer calibrate``."""
    Path("_version.py").write_text("NUMBER = 1\n")
    moment = datetime(2020, 9, 1, tzinfo=UTC)
    report = Issue(number=11, title="first breaks", body="`first([])` raises IndexError.", author=AUTHOR)
    past = Past(
        repository=Repository(id=1, owner="ada", name="lists", default_branch="main"),
        exported_at=moment,
        limit=1,
        requests=0,
        issues=(PastIssue(issue=report, closed_at=moment, closed_by=(12,)),),
    )
    Path("past.json").write_text(past.model_dump_json())
    wrong = (
        "--- a/lists/core.py\n+++ b/lists/core.py\n@@ -3,2 +3,2 @@\n def first(items):\n"
        "-    return items[0]\n+    return 0 if not items else items[0]\n"
    )
    write("patches.jsonl", [{"instance_id": BUG, "candidate_id": "agent", "patch": wrong}])
    more = ("--add-file", "lists/_version.py=_version.py", "--export", "past.json", "--patches", "patches.jsonl")
    command(f"{BUILD} --out out --setup", SETUP, *more)


def scored(*arguments: str) -> dict[str, Any]:
    result = command("score", *arguments, *CUTOFF, "--replicates", "50", "--json").json
    assert isinstance(result, dict)
    return result


def test_every_kind_of_task_is_replayed_and_scored_on_fresh_bugs(built: None) -> None:
    [case], outputs, [review] = (read(f"out/{kind}.jsonl") for kind in ("reproduction", "output", "review"))
    assert case["problem_statement"] == "first breaks\n\n`first([])` raises IndexError."
    assert {row["stated"] for row in (case, review, *outputs)} == {"issue"}
    assert {row["fixed_at"][:7] for row in (case, review, *outputs)} == {"2020-09"}
    truths = {row["instance_id"].removeprefix(f"{BUG}."): (row["made"], row["output_bounce"]) for row in outputs}
    assert truths == {
        "fix": ("the fix", False),
        "variant1": ("with the condition at lists/core.py:4 turned", True),
        "agent": ("a given patch", True),
    }

    # The same bug under another name, mended long ago: its draft passes where it should fail.
    old = {"instance_id": "ada__lists-1", "fixed_at": "2016-01-01"}
    cases = write("out/cases.jsonl", [case, {**case, **old}])
    wrong = DRAFT.replace("first([])", "None")
    drafts = [
        {"model": "m", "subject": name, "plan": "", "code": code}
        for name, code in ((BUG, DRAFT), (old["instance_id"], wrong))
    ]
    command("replay", "brt", "--cases", cases, "--model", f"recorded:{write('drafts.jsonl', drafts)}#m",
        "--out", "brt", "--samples", "1")  # fmt: skip
    assert compared(scored("brt", "--run", "brt"), "brt") == (0.0, 1.0, 1.0)

    candidate = {"instance_id": BUG, "candidate_id": "c", "path": "tests/test_new.py", "content": DRAFT}
    write("given.jsonl", [candidate])
    command("replay brt --cases out/reproduction.jsonl --candidates given.jsonl --out given")
    result = scored("brt", "--run", "given", "--cases", "out/reproduction.jsonl")
    assert only(result)["figures"]["brt"]["fresh"][0] == 1.0

    replies = [
        {
            "model": "m",
            "instance_id": row["instance_id"],
            "explanation": "x",
            "p_bounce": 90 if row["output_bounce"] else 5,
            "label": "INCORRECT" if row["output_bounce"] else "CORRECT_AND_PRECISE",
            "recognised": row["made"] == "the fix",
        }
        for row in outputs
    ]
    command("replay", "bouncerbench-output", "--tasks", "out/output.jsonl", "--out", "outputs",
        "--prompt", "careful", "--model", f"recorded:{write('verdicts.jsonl', replies)}#m")  # fmt: skip
    result = scored("bouncerbench-output", "--tasks", "out/output.jsonl", "--run", "outputs")
    assert only(result)["tasks"] == {"old": 0, "fresh": 3, "clean": 2, "undated": 0}
    assert only(result)["figures"]["f_m"]["fresh"][0] == 1.0

    finding = {
        "path": "lists/core.py", "quote": "return items[0]", "line": None, "symbol": "", "category": "structural",
        "comment": "`items[0]` fails for an empty list.", "impact": "reliability", "severity": "high",
        "suggestion": None,
    }  # fmt: skip
    reviews = write("out/reviews.jsonl", [review, {**review, **old}])
    replies = [
        {"model": "m", "subject": name, "text": json.dumps({"reasoning": "r", "findings": result})}
        for name, result in ((BUG, [finding]), (old["instance_id"], []))
    ]
    command("replay", "crbench", "--tasks", reviews, "--out", "reviews",
        "--model", f"recorded:{write('said.jsonl', replies)}#m")  # fmt: skip
    hit = {"reason": "because", "classification": "BUG_HIT", "bug": None}
    comments = comments_in(RunFolder.read(Path("reviews")).records(), "reported")
    words = [
        {"model": "j", "subject": f"{comment.task_id}/{comment.key}", "text": json.dumps(hit)}
        for comment in comments
    ]
    judge = write("judge.jsonl", words)
    result = scored("crbench", "--tasks", reviews, "--run", "reviews", "--judge", f"recorded:{judge}#j")
    assert compared(result, "recall") == (0.0, 1.0, 1.0)

    command("report", "brt", "outputs", "reviews", *CUTOFF, "--out", "report.html")
    page = Path("report.html").read_text()
    assert page.count("Before and after 2020-09-01") >= 3
    assert "Without recognised answers" in page


def only(report: dict[str, Any]) -> dict[str, Any]:
    """Before and after, of the one run."""
    [aged] = report["cutoff"].values()
    assert isinstance(aged, dict)
    return aged


def compared(report: dict[str, Any], figure: str) -> tuple[float, float, float]:
    """A figure on old and on fresh bugs, and the difference."""
    values = only(report)["figures"][figure]
    old, fresh, difference = (values[group][0] for group in ("old", "fresh", "difference"))
    return old, fresh, difference


def test_a_set_up_that_fails_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # The interpreter would take seconds to make an environment.
    monkeypatch.setattr("evaluation.fresh.bench.Recipe", partial(Recipe, python="true"))
    ran = command(f"{BUILD} --out other --setup 'exit 3' --json", code=1)
    steps = ran.json["steps"]
    assert f"1 of 1: {BUG}, " in ran.err
    assert steps["not kept: no environment"] == 1
    [row] = read("other/fixes.jsonl")
    assert "exit code 3" in row["reason"]
    assert row["unfinished"]


def test_pytest_names_the_tests_that_a_wrong_variant_breaks() -> None:
    Path("_version.py").write_text("NUMBER = 1\n")
    Path("dep.py").write_text("ANSWER = 42\n")
    command(
        "build fresh --repo ada+lists --since 2020-01-01 --out out --add-file "
        "lists/_version.py=_version.py --add-file dep.py=dep.py --env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 "
        "--test-command",
        f"{sys.executable} -m pytest {{tests}}",
    )
    truths = [(row["output_bounce"], row["pass_frac"], row["failing"]) for row in read("out/output.jsonl")]
    # The condition turned breaks both tests of the fix: one that was mended, one that never failed.
    assert truths == [(False, 1.0, None), (True, 0.0, "both")]
