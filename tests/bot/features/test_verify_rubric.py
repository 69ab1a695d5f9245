"""Verify in two questions: demands without the patch, then grades. All answers are scripted."""

from __future__ import annotations

from typing import Any

from bot.core.actions import SetCheck
from bot.models.prompts import Prompts
from tests.bot.features.conftest import Build, check_of, decision_on
from tests.bot.features.test_verify import snapshot
from tests.builders import pull_opened
from tests.scripted import ScriptedModel

CONFIG = "verify: {prompt: rubric}"
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


def test_code_that_a_grade_lacks_is_looked_up_once(services: Build) -> None:
    unknown = {"demand": 1, "why": "It calls `pick_one`.", "grade": "cannot_tell", "missing": "pick_one in lib.py"}
    unsure = {**GRADES, "grades": [unknown], "p_behaviour": 40}
    files = {"x.py": b"b\n", "lib.py": b"def pick_one(rows):\n    return rows[0]\n"}
    model = ScriptedModel([DEMANDS, unsure, unsure])
    decision, _ = verify(model, services, checkouts={"a" * 40: files})
    assert len(model.asked) == 3
    assert "def pick_one(rows):" in model.asked[2].user
    assert "def pick_one(rows):" not in model.asked[1].user
    assert decision.usage.calls == 3
