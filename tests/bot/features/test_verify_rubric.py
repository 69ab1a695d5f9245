"""Verify in two questions: demands without the patch, then grades. All answers are scripted."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.actions import SetCheck
from bot.models.prompts import Prompts
from tests.bot.features.conftest import Build, check_of, decision_on
from tests.bot.features.test_verify import snapshot
from tests.builders import pull_opened
from tests.scripted import ScriptedModel

CONFIG = "verify: {prompt: rubric}"
NAMES = ("package-lock.json", "data.py", "x.py")
DEMANDS: dict[str, Any] = {
    "demands": [
        {"text": "An empty file gives an empty table", "basis": "stated"},
        {"text": "The error says `no | header`", "basis": "guess"},
    ]
}
GRADES: dict[str, Any] = {
    "grades": [
        {"demand": 1, "why": "It returns a table.", "quote": "b", "grade": "met"},
        {"demand": 2, "why": "Another wording.", "quote": "", "grade": "not_met"},
    ],
    "p_behaviour": 6,
    "p_form": 50,
}


def verify(model: ScriptedModel, services: Build, **values: Any) -> tuple[Any, SetCheck]:
    decision = decision_on(pull_opened(), services(model, snapshot(12, **values), CONFIG), "verify")
    return decision, check_of(decision)


def test_demands_are_written_without_the_patch_and_shown_as_a_table(services: Build) -> None:
    model = ScriptedModel([DEMANDS, GRADES])
    decision, check = verify(model, services)
    first, second = model.asked
    assert [first.purpose, second.purpose] == ["verify.demands", "verify"]
    assert "+b" not in first.user
    assert "1  a" in first.user, "the code before the patch"
    assert "1. (stated) An empty file gives an empty table" in second.user
    assert (check.conclusion, check.title) == ("success", "Appears to solve #12 (not executed)")
    assert check.summary.startswith(
        "### #12: Right as far as stated; wording open\n\n| Demand | Basis | Grade | Line |\n|---|---|---|---|\n"
        "| An empty file gives an empty table | stated | met | `b` |\n"
    )
    assert "no \\| header" in check.summary
    (verdict,) = decision.record.verdicts
    assert (verdict.p_bounce, verdict.p_form, verdict.bounced) == (6, 50, False)
    assert [reply.prompt_hash for reply in decision.record.replies] == [prompt.hash for prompt in model.asked]
    hashes = {Prompts().hash(*names) for names in (("verify.demands",), ("verify.rubric",))}
    assert decision.record.prompt == Prompts().hash("verify.demands", "verify.rubric")
    assert decision.record.prompt not in hashes, "both questions count"


def test_a_stated_demand_that_is_not_met_bounces(services: Build) -> None:
    wrong = [{**GRADES["grades"][0], "grade": "not_met"}, GRADES["grades"][1]]
    answer = {**GRADES, "grades": wrong, "p_behaviour": 92}
    decision, check = verify(ScriptedModel([DEMANDS, answer]), services)
    assert (decision.verdict, check.conclusion) == ("INCORRECT", "neutral")
    assert check.title == "Probably doesn't solve #12"


@pytest.mark.parametrize("answers", [[{**GRADES, "p_behaviour": 20}], ["no", "no"]])
def test_code_that_a_grade_lacks_is_looked_up_once(services: Build, answers: list[Any]) -> None:
    unknown = {"demand": 1, "why": "It calls `pick_one`.", "grade": "cannot_tell", "missing": "pick_one in lib.py"}
    unsure = {**GRADES, "grades": [unknown], "p_behaviour": 20}
    files = {"x.py": b"b\n", "lib.py": b"def pick_one(rows):\n    return rows[0]\n"}
    model = ScriptedModel([DEMANDS, unsure, *answers])
    decision, check = verify(model, services, checkouts={"a" * 40: files})
    assert ["def pick_one(rows):" in prompt.user for prompt in model.asked[:3]] == [False, False, True]
    assert decision.usage.calls == 2 + len(answers)
    # If the second question has no answer, the first grades stand.
    assert (check.title, decision.record.p_bounce) == ("Appears to solve #12 (not executed)", 20)


def test_wording_is_open_only_if_all_that_is_stated_is_met(services: Build) -> None:
    grade = {**GRADES["grades"][0], "grade": "not_met"}
    answers = (
        {**GRADES, "grades": [grade, GRADES["grades"][1]], "p_behaviour": 30},
        {**GRADES, "regressions": ["Empty tables have no header."], "p_behaviour": 30},
    )
    for answer in answers:
        _, check = verify(ScriptedModel([DEMANDS, answer]), services)
        assert check.summary.startswith("### #12: Appears to solve it\n")


def test_demands_and_regressions_without_words_are_left_out(services: Build) -> None:
    demands = {"demands": [{"text": " ", "basis": "stated"}, *DEMANDS["demands"]]}
    decision, check = verify(ScriptedModel([demands, {**GRADES, "regressions": ["", " "]}]), services)
    (verdict,) = decision.record.verdicts
    assert [demand.text for demand in verdict.demands] == [demand["text"] for demand in DEMANDS["demands"]]
    assert (verdict.label, verdict.regressions) == ("CORRECT_AND_PRECISE", ())
    assert "May have broken" not in check.summary


def test_only_quotes_that_the_question_shows_are_posted(services: Build) -> None:
    files = {"x.py": b"b\n\n\nother = b  # far away\n"}
    for quote, cell in (("return Table()", ""), ("+b\nother = b", "`+b other = b`"), ("b", "`b`"), ("b\nc", "")):
        grades = [{**GRADES["grades"][0], "quote": quote}, GRADES["grades"][1]]
        model = ScriptedModel([DEMANDS, {**GRADES, "grades": grades}])
        _, check = verify(model, services, checkouts={"a" * 40: files})
        assert f"| stated | met | {cell} |\n" in check.summary


def test_demands_see_the_code_that_is_judged_whatever_else_a_patch_changes(services: Build) -> None:
    lock = "".join(f'-    "a{number}": "1.0.0",\n+    "a{number}": "1.0.1",\n' for number in range(2_000))
    before = "".join(f" row {number}\n" for number in range(2_000))
    changes = (
        f"--- a/package-lock.json\n+++ b/package-lock.json\n@@ -1,2000 +1,2000 @@\n{lock}",
        f"--- a/data.py\n+++ b/data.py\n@@ -1,2000 +1,2001 @@\n{before}+row\n",
        "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n",
    )
    patch = "".join(f"diff --git a/{name} b/{name}\n{change}" for name, change in zip(NAMES, changes, strict=True))
    model = ScriptedModel([DEMANDS, GRADES])
    verify(model, services, patch=patch)
    first = model.asked[0].user
    assert "=== x.py\n1  a\n" in first
    assert "package-lock.json" not in first
