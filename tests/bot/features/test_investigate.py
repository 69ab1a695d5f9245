"""With ``investigate`` a bouncer looks at the code before it judges, and records its looks."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core import events
from bot.core.errors import NotRecorded
from bot.core.subjects import Issue
from bot.features.services import IndexedIssue
from bot.models.conversation import Answer
from bot.router import decide
from tests.bot.features import reviews
from tests.bot.features import test_triage as triage
from tests.bot.features import test_verify as verify
from tests.bot.features.conftest import Build
from tests.builders import issue_opened, pull_opened
from tests.scripted import ScriptedModel

CODE = {"x.py": b"def read(path):\n    raise ValueError('empty')\n"}
LOOK = {"thought": "what does it do now?", "action": "search", "target": "ValueError"}
DONE = {"thought": "clear", "action": "done", "notes": "x.py:2 raises ValueError."}


def test_an_issue_is_judged_with_what_the_default_branch_says(services: Build) -> None:
    model = ScriptedModel([LOOK, DONE, triage.CLEAR])
    snapshot = triage.snapshot(heads={"main": "c0ffee"}, checkouts={"c0ffee": CODE})
    (decision,) = decide(issue_opened(), services(model, snapshot, "triage: {investigate: true}"))
    assert decision.verdict == "WELL_SPECIFIED"
    assert decision.record.tool_calls == 1
    assert decision.record.as_json()["looks"] == [{"action": "search", "target": "ValueError", "line": 1}]
    assert decision.usage.calls == 3
    assert "x.py:2 raises ValueError." in model.asked[-1].user
    assert "x.py:2: raise ValueError('empty')" in model.asked[1].user


def test_a_patch_is_judged_with_what_the_base_commit_says(services: Build) -> None:
    model = ScriptedModel([LOOK, DONE, verify.GOOD])
    pull = verify.pull(base_sha="ba5e")
    event = pull_opened(base_sha="ba5e")
    snapshot = verify.snapshot(12, pull_request=pull, checkouts={"ba5e": CODE})
    decision = verify.verify(event, services(model, snapshot, "verify: {investigate: true}"))
    assert decision.verdict == "CORRECT_AND_PRECISE"
    assert decision.record.tool_calls == 1
    assert decision.usage.calls == 3


def test_code_that_cannot_be_read_is_done_without_and_the_look_costs(services: Build) -> None:
    fields: dict[str, Any] = {"missing": ("issues 15", "checkouts ba5e")}
    event, pull = pull_opened(base_sha="ba5e", head_sha="ba5e"), verify.pull(base_sha="ba5e", head_sha="ba5e")
    model = ScriptedModel([LOOK, verify.GOOD])
    patch = verify.snapshot(12, pull_request=pull, **fields)
    decision = verify.verify(event, services(model, patch, "verify: {investigate: true}"))
    assert (decision.verdict, decision.usage.calls) == ("CORRECT_AND_PRECISE", 2)
    change = reviews.snapshot(head_sha="ba5e", recorded=fields)
    model = ScriptedModel([LOOK, reviews.CLEAN])
    decision = reviews.review(event, services(model, change, "review: {investigate: true}"))
    assert (decision.verdict, decision.usage.calls) == ("clean", 2)


@pytest.mark.parametrize("script", [[LOOK], [LOOK, DONE]])
def test_looks_before_a_refusal_cost_too(services: Build, script: list[Any]) -> None:
    model = ScriptedModel([*script, Answer("I cannot.", "refusal", 10, 2)])
    snapshot = triage.snapshot(heads={"main": "c0ffee"}, checkouts={"c0ffee": CODE})
    (decision,) = decide(issue_opened(), services(model, snapshot, "triage: {investigate: true}"))
    assert decision.abstained == "model:refused"
    assert decision.usage.calls == len(script) + 1


def test_nothing_is_looked_at_unasked(services: Build) -> None:
    model = ScriptedModel([triage.CLEAR])
    (decision,) = decide(issue_opened(), services(model, triage.snapshot()))
    assert decision.record.tool_calls == 0
    assert len(model.asked) == 1


def test_a_replay_without_the_code_is_a_broken_experiment(services: Build) -> None:
    event: events.Event = issue_opened()
    fields: dict[str, Any] = {"heads": {"main": "c0ffee"}}
    with pytest.raises(NotRecorded):
        decide(event, services(ScriptedModel([LOOK]), triage.snapshot(**fields), "triage: {investigate: true}"))


class Index:
    """One closed issue on which maintainers asked something, and an open one."""

    def similar(self, repository: str, issue: Issue, most: int) -> tuple[IndexedIssue, ...]:
        facts = {"questions": "Which file was it?", "title": "Empty"}
        return tuple(
            IndexedIssue(number=number, root=number, state=state, **facts)
            for number, state in enumerate(("open", "closed"), 1)
        )


@pytest.mark.parametrize(("prompt", "is_told"), [("careful", True), ("panel", True), ("paper", False)])
def test_all_questions_but_the_paper_s_have_facts_and_examples(
    services: Build, prompt: str, is_told: bool
) -> None:
    config = f"triage: {{investigate: true, examples: 1, prompt: {prompt}}}"
    model = ScriptedModel([DONE, triage.CLEAR])
    snapshot = triage.snapshot(heads={"main": "c0ffee"}, checkouts={"c0ffee": CODE})
    event = issue_opened(body="`read_all()` of `x.py` fails.")
    (decision,) = decide(event, services(model, snapshot, config, issue_index=Index()), "triage")
    for asked_prompt in model.asked:
        assert ("No file of the repository contains the name read_all." in asked_prompt.user) is is_told
        assert (asked_prompt.user.count("Which file was it?") == 1) is is_told
    assert bool(decision.record.absent) is is_told
    assert decision.record.prompt_hash == model.asked[-1].hash


def test_without_an_index_the_question_with_examples_is_the_same(services: Build) -> None:
    hashes = set()
    for config in ("triage: {examples: 3}", "triage: {examples: 0}", ""):
        (decision,) = decide(issue_opened(), services(ScriptedModel([triage.CLEAR]), triage.snapshot(), config))
        hashes.add(decision.record.prompt_hash)
    assert len(hashes) == 1
