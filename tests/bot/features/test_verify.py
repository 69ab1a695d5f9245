"""The output bouncer on pull requests: what the check says, and when nothing is judged."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from bot.core import events
from bot.core.errors import BudgetExceeded, ModelError
from bot.core.subjects import Actor, PullRequest, ReviewComment
from bot.features.services import Services
from bot.github.offline import Snapshot
from bot.github.protocol import IssueLink, PullDiff
from bot.router import decide
from tests import builders
from tests.bot.features.conftest import NOON, Build, Remembered, check_of, decision_on
from tests.builders import ANN, HELPER, MIA, REPOSITORY, comment_on_pull, event, issue, pull, pull_opened
from tests.scripted import ScriptedModel

PATCH = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
GOOD: dict[str, Any] = {
    "explanation": "It does what is asked.",
    "covered": ["empty files"],
    "p_bounce": 4,
    "label": "CORRECT_AND_PRECISE",
}
BAD: dict[str, Any] = {
    "explanation": "Half of it.",
    "covered": ["empty files"],
    "open_points": ["files with a header only", "closes #99 by @mia"],
    "p_bounce": 80,
    "label": "BROAD_MISSING_KEY_ASPECTS",
}


def snapshot(*links: int, pull_request: PullRequest | None = None, patch: str = PATCH, **values: Any) -> Snapshot:
    fields = {
        "missing": ("issues 15",),
        "issues": {
            12: issue(number=12),
            13: issue(number=13),
            14: issue(number=14, is_pull_request=True),
        },
        "pull_requests": {20: pull_request or pull()},
        "diffs": {20: PullDiff(text=patch)},
        "linked_issues": {20: tuple(IssueLink(repository="acme/rocket", number=number) for number in links)},
        "comments": {20: ()},
    }
    return builders.snapshot(**{**fields, **values})


def verify(event: events.Event, services: Services) -> Any:
    return decision_on(event, services, "verify")


def test_a_patch_that_solves_its_issue_passes(services: Build) -> None:
    decision = verify(pull_opened(), services(ScriptedModel([GOOD]), snapshot(12)))
    check = check_of(decision)
    assert (check.name, check.conclusion) == ("bouncer / verify", "success")
    assert check.title == "Appears to solve #12 (not executed)"
    text, _, spent = check.summary.partition("`scripted:test`: ")
    assert re.fullmatch(r"1 call, \d+ \+ \d+ tokens, cost unknown\n\n</details>", spent)
    assert text == (
        "### #12: Appears to solve it\n\nCovered:\n- empty files\n\n"
        "<details><summary>Why: CORRECT_AND_PRECISE (4% likely to fall short)</summary>\n\n"
        "It does what is asked.\n\n</details>\n\n"
        "*An AI model's opinion; it may be wrong.*\n\n"
        "_A scripted model answered: this is a rehearsal, not a verdict._\n\n"
        "<details><summary>Model and cost</summary>\n\n"
    )
    assert decision.verdict == "CORRECT_AND_PRECISE"


@pytest.mark.parametrize(("config", "conclusion"), [("", "neutral"), ("verify: {gate: true}", "failure")])
def test_a_patch_that_falls_short_is_neutral_unless_gated(services: Build, config: str, conclusion: str) -> None:
    decision = verify(pull_opened(), services(ScriptedModel([BAD]), snapshot(12), config))
    (check,) = decision.actions
    assert (check.conclusion, check.title) == (conclusion, "May not fully solve #12")
    assert "- files with a header only" in check.summary
    assert "@mia" not in check.summary
    assert "closes #99" not in check.summary


def test_each_linked_issue_has_its_verdict(services: Build) -> None:
    decision = verify(pull_opened(), services(ScriptedModel([GOOD, BAD]), snapshot(12, 13)))
    assert [item["label"] for item in decision.record.as_json()["verdicts"]] == [
        "CORRECT_AND_PRECISE",
        "BROAD_MISSING_KEY_ASPECTS",
    ]
    assert decision.actions[0].title == "May not fully solve #13"
    assert decision.verdict == "BROAD_MISSING_KEY_ASPECTS"


@pytest.mark.parametrize(
    ("links", "values", "title"),
    [
        ((), {}, "Not judged: no linked issue"),
        ((14,), {}, "Not judged: what is linked is a pull request"),
        ((15,), {}, "Not judged: the linked issue cannot be found"),
        ((12,), {"patch": ""}, "Not judged: the patch is empty"),
        ((12,), {"patch": "+" * 1_000_001}, "Not judged: the patch is too large (1,000,001 characters)"),
        (
            (12,),
            {"diffs": {20: PullDiff(text=PATCH, omitted=("big.json",), unlisted=7)}},
            "Not judged: the patch is too large, GitHub leaves out 8 of its files",
        ),
        (
            (),
            {"linked_issues": {20: (IssueLink(repository="other/place", number=3),)}},
            "Not judged: the linked issue is in another repository",
        ),
    ],
)
def test_what_cannot_be_judged_is_said_to_be_so(
    services: Build, links: tuple[int, ...], values: dict[str, Any], title: str
) -> None:
    decision = verify(pull_opened(), services(ScriptedModel([]), snapshot(*links, **values)))
    (check,) = decision.actions
    assert (check.conclusion, check.title, decision.verdict) == ("skipped", title, None)
    assert decision.abstained


def test_closing_words_count_where_the_forge_links_nothing(services: Build) -> None:
    event = pull_opened(body="Fixes #12")
    decision = verify(event, services(ScriptedModel([GOOD]), snapshot(pull_request=event.pull_request)))
    assert decision.actions[0].title.startswith("Appears to solve #12")


@pytest.mark.parametrize(
    ("values", "config", "why"),
    [
        ({"draft": True}, "", "it is a draft"),
        ({"author": HELPER}, "", "its author is a bot"),
        ({"labels": ("Skip",)}, "ignore_labels: [skip]", "pulls.ignore_labels names a label of it"),
        ({"title": "WIP: x"}, "ignore_titles: [wip]", "pulls.ignore_titles names how its title starts"),
        ({"base_ref": "dev"}, "branches: [main, 'v*']", "its base branch is not among pulls.branches"),
        ({}, "ignore_authors: [Ann]", "pulls.ignore_authors names its author"),
    ],
)
def test_filters_leave_pull_requests_alone(services: Build, values: dict[str, Any], config: str, why: str) -> None:
    built = services(ScriptedModel([]), snapshot(12), f"pulls: {{{config}}}")
    check = check_of(verify(pull_opened(**values), built))
    assert (check.conclusion, check.title) == ("skipped", f"Not judged: {why}")


SHUT = "verify: {gate: true, gate_unjudged: fail}"


@pytest.mark.parametrize(
    ("config", "conclusion"),
    [
        (SHUT, "failure"),
        ("verify: {gate: true}", "skipped"),
        ("verify: {gate_unjudged: fail}", "skipped"),
        ("", "skipped"),
    ],
)
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ModelError("x", reason="refused"), "the model gave no usable answer (refused)"),
        (BudgetExceeded("x"), "skipped, today's model budget is spent"),
    ],
)
def test_a_gate_stays_shut_without_a_verdict_only_if_that_is_wanted(
    services: Build, config: str, conclusion: str, error: ModelError, why: str
) -> None:
    (check,) = verify(pull_opened(), services(ScriptedModel([error]), snapshot(12), config)).actions
    assert (check.conclusion, check.title) == (conclusion, f"Not judged: {why}")


def test_a_gate_stays_shut_if_only_some_issues_could_be_judged(services: Build) -> None:
    model = ScriptedModel([GOOD, ModelError("x", reason="refused")])
    (check,) = verify(pull_opened(), services(model, snapshot(12, 13), SHUT)).actions
    assert (check.conclusion, check.title) == (
        "failure",
        "Appears to solve #12 (not executed); not judged: #13",
    )


@pytest.mark.parametrize(
    ("links", "values", "conclusion"),
    [
        ((), {}, "skipped"),
        ((12,), {"patch": ""}, "skipped"),
        ((12,), {"patch": "+" * 1_000_001}, "failure"),
    ],
)
def test_a_gate_stays_shut_only_where_a_verdict_was_due(
    services: Build, links: tuple[int, ...], values: dict[str, Any], conclusion: str
) -> None:
    (check,) = verify(pull_opened(), services(ScriptedModel([]), snapshot(*links, **values), SHUT)).actions
    assert check.conclusion == conclusion


def test_an_edit_is_judged_again_only_if_a_link_or_the_base_changed(services: Build, history: Remembered) -> None:
    history.past.append(verify(pull_opened(), services(ScriptedModel([GOOD]), snapshot(12))))
    edited = event(events.PullRequestEdited, pull(title="Better title"))
    assert verify(edited, services(ScriptedModel([]), snapshot(12))) is None
    assert verify(edited, services(ScriptedModel([GOOD, BAD]), snapshot(12, 13))).verdict
    rebased = event(events.PullRequestEdited, pull(base_ref="1.x"))
    assert verify(rebased, services(ScriptedModel([BAD]), snapshot(12))).verdict == "BROAD_MISSING_KEY_ASPECTS"


@pytest.mark.parametrize(
    ("by", "text", "is_judged"),
    [(MIA, "verify", True), (ANN, "verify", False), (MIA, "recheck", True), (ANN, "recheck", True)],
)
def test_who_may_ask_for_it(services: Build, by: Actor, text: str, is_judged: bool) -> None:
    event = comment_on_pull(f"/bouncer {text}", by)
    draft = snapshot(12, pull_request=pull(draft=True))
    assert bool(verify(event, services(ScriptedModel([GOOD]), draft))) is is_judged


@pytest.mark.parametrize("first", ["review", "conversation"])
def test_commands_in_reviews_and_in_the_conversation_count_together(
    services: Build, history: Remembered, first: str
) -> None:
    in_conversation = comment_on_pull("/bouncer recheck", ANN)
    line = ReviewComment(id=17, body="/bouncer recheck", author=ANN, path="src/app.py")
    in_review = event(events.ReviewCommentCreated, pull(), comment=line)
    order = (in_review, in_conversation) if first == "review" else (in_conversation, in_review)
    verdicts = list[str | None]()
    for minutes, id_, asking in zip((0, 5), (9_000, 17), order, strict=True):
        asking = asking.model_copy(update={"comment": asking.comment.model_copy(update={"id": id_})})
        now = NOON + timedelta(minutes=minutes)
        built = services(ScriptedModel([]), snapshot(12), clock=lambda now=now: now)
        (decision,) = decide(asking, built, only="commands")
        history.past.append(decision)
        verdicts.append(decision.verdict or decision.abstained)
    assert verdicts == ["recheck", "refused"]


def test_re_run_maps_a_fork_s_commit(services: Build) -> None:
    fork = pull(head_repository="ann/rocket")
    event = events.CheckRerequested(
        sender=MIA, repository=REPOSITORY, name="bouncer / verify", head_sha=fork.head_sha
    )
    recorded = snapshot(12, pull_request=fork, pulls_for_commit={fork.head_sha: (fork,)})
    assert verify(event, services(ScriptedModel([GOOD]), recorded)).verdict == "CORRECT_AND_PRECISE"
    other = event.model_copy(update={"name": "somebody else's"})
    assert verify(other, services(ScriptedModel([]), recorded)) is None


def test_two_chances_are_told_apart_and_a_stray_file_is_only_a_remark(services: Build) -> None:
    values = {
        **GOOD,
        "open_points": [{"what": "a header only", "certain": False}],
        "regressions": [{"what": "files with one row", "certain": True}],
        "remarks": ["repro.py is left over"],
        "p_bounce": 61,
        "p_objects": 85,
        "label": "CORRECT_BUT_INCOMPLETE",
    }
    decision = verify(pull_opened(), services(ScriptedModel([values]), snapshot(12)))
    (check,) = decision.actions
    assert check.title == "May not fully solve #12"
    assert check.summary.partition("<details>")[0] == (
        "### #12: May not fully solve it\n\nMissing:\n- a header only (suspected)\n\n"
        "May have broken:\n- files with one row\n\nCovered:\n- empty files\n\n"
        "Remarks (not counted):\n- repro.py is left over\n\n"
    )
    assert (
        "Why: BROAD_MISSING_KEY_ASPECTS (61% likely to fall short (decides); 85% likely to draw an objection)"
        in check.summary
    )
    model = ScriptedModel([values])
    decision = verify(pull_opened(), services(model, snapshot(12), "verify: {prompt: paper}"))
    assert decision.verdict == "CORRECT_BUT_INCOMPLETE"
    assert "Why: CORRECT_BUT_INCOMPLETE</summary>" in decision.actions[0].summary
    [request] = model.requests
    assert list(request.schema.model_json_schema()["properties"]) == ["explanation", "label"]
    assert "percent" not in request.prompt.system


@pytest.mark.parametrize(("mode", "word"), [("shadow", "skipped:off"), ("'off'", "skipped:off"), ("shadwo", None)])
def test_a_failed_check_ends_in_shadow_mode_unless_by_a_mistake(
    services: Build, history: Remembered, mode: str, word: str | None
) -> None:
    gated = services(ScriptedModel([BAD]), snapshot(12), "verify: {gate: true}")
    history.past.append(verify(pull_opened(), gated))
    assert check_of(history.past[0]).conclusion == "failure"
    changed = events.LinkedIssueChanged(sender=MIA, repository=REPOSITORY, pull=20, task="config")
    decision = verify(changed, services(ScriptedModel(), snapshot(12), f"verify: {{mode: {mode}}}"))
    assert (decision and decision.abstained) == word
    assert decision is None or check_of(decision).conclusion == "skipped"
