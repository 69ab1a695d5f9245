"""A pull request without an issue: its own title and description are judged. All answers are scripted."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.actions import SetCheck
from bot.router import decide
from tests import builders
from tests.bot.features.conftest import Build, Remembered, check_of, decision_on
from tests.bot.features.test_verify import GOOD, snapshot
from tests.builders import pull, pull_opened
from tests.scripted import ScriptedModel

CONFIG = "verify: {description: true}"
TEXT = "Return an empty table for an empty file.\n\nThe cache is emptied, too."
LARGE = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,120 @@\n" + "".join(f"+A{number} = 1\n" for number in range(120))
KEPT: dict[str, Any] = {
    "claims": [
        {
            "text": "An empty file gives an empty table",
            "why": "It returns [].",
            "quote": "b",
            "implemented": "yes",
        },
        {"text": "The cache is emptied", "why": "No line does that.", "implemented": "yes"},
    ],
    "unsaid": ["`load` no longer takes a path for @mia"],
    "p_bounce": 5,
}
HALF = {**KEPT, "claims": [KEPT["claims"][0], {**KEPT["claims"][1], "implemented": "no"}], "p_bounce": 92}


def described(services: Build, *answers: Any, config: str = CONFIG, **values: Any) -> tuple[SetCheck, Any]:
    """Return check and decision about a pull request without an issue, whose model gives these answers."""
    fields: dict[str, Any] = {"body": TEXT, **values}
    patch = fields.pop("patch", None)
    state = snapshot(pull_request=pull(**fields), **({"patch": patch} if patch else {}))
    decision = decision_on(pull_opened(**fields), services(ScriptedModel(answers), state, config), "verify")
    return check_of(decision), decision


def test_unmet_claims_and_unsaid_changes_are_listed(services: Build) -> None:
    check, decision = described(services, HALF)
    assert (check.conclusion, check.title) == ("neutral", "May not do all that it says")
    assert check.summary.startswith(
        "### The description: May not do all that it says\n\n"
        "Said and not implemented:\n- The cache is emptied\n\n"
        "Changed without being said:\n- `load` no longer takes a path for "
    )
    assert "@mia" not in check.summary
    assert (decision.verdict, decision.record.bounced) == ("BROAD_MISSING_KEY_ASPECTS", True)


def test_what_is_unsaid_does_not_bounce(services: Build) -> None:
    check, decision = described(services, KEPT, config="verify: {description: true, gate: true}")
    assert (check.conclusion, check.title) == ("success", "Appears to do what it says (not executed)")
    assert (decision.verdict, decision.record.bounced) == ("CORRECT_BUT_INCOMPLETE", False)


def test_nothing_said_is_implemented(services: Build) -> None:
    wrong = {**HALF, "claims": [HALF["claims"][1]]}
    assert described(services, wrong)[0].title == "Probably doesn't do what it says"


@pytest.mark.parametrize(
    ("body", "asks"),
    [
        ("", False),
        ("Various improvements.", False),
        ("## Description\n\n<!-- What does it do?\n\nSay it. -->\nSee title\n\n- [x] I ran it\n- [ ] Docs", False),
        ("One.\nTwo.", True),
        ("It " + "really " * 20 + "does.", True),
    ],
)
def test_one_line_about_a_large_change_is_not_judged(services: Build, body: str, asks: bool) -> None:
    check, decision = described(services, *[KEPT] * asks, body=body, patch=LARGE)
    if asks:
        assert decision.usage.calls == 1
        return
    assert (check.conclusion, check.title) == ("skipped", "Not judged: the description names no behaviour")
    assert (decision.abstained, decision.usage.calls) == ("no-behaviour", 0)


def test_one_line_about_tests_and_lock_files_is_judged(services: Build) -> None:
    patch = LARGE.replace("x.py", "tests/test_x.py") + LARGE.replace("x.py", "uv.lock")
    assert described(services, KEPT, body="", patch=patch)[1].usage.calls == 1


def test_a_text_without_a_claim_is_not_judged(services: Build) -> None:
    for claims in ([], [{"text": " ", "implemented": "yes"}]):
        check, decision = described(services, {"claims": claims}, body="")
        assert check.title == "Not judged: the description names no behaviour"
        assert (decision.abstained, decision.usage.calls) == ("no-behaviour", 1)


def test_the_question_shows_words_and_patch_as_material(services: Build) -> None:
    model = ScriptedModel([KEPT])
    state = snapshot(pull_request=pull(body=TEXT))
    decide(
        pull_opened(body=TEXT), services(model, state, "verify: {description: true, prompt: paper}"), only="verify"
    )
    (prompt,) = model.asked
    assert prompt.purpose == "verify.description"
    assert "The cache is emptied, too." in prompt.user
    assert "+b" in prompt.user
    assert "written by strangers" in prompt.system


def test_an_issue_is_judged_in_place_of_the_description(services: Build) -> None:
    (decision,) = decide(pull_opened(), services(ScriptedModel([GOOD]), snapshot(12), CONFIG), only="verify")
    assert decision.actions[0].title == "Appears to solve #12 (not executed)"


@pytest.mark.parametrize(("body", "decides"), [(TEXT, False), (f"{TEXT} And logged.", True)])
def test_an_edit_is_judged_again_if_the_words_changed(
    services: Build, history: Remembered, body: str, decides: bool
) -> None:
    history.past.append(described(services, KEPT)[1])
    edited = builders.event(builders.events.PullRequestEdited, pull(body=body))
    state = snapshot(pull_request=pull(body=body))
    assert bool(decide(edited, services(ScriptedModel([KEPT] * decides), state, CONFIG), only="verify")) is decides
