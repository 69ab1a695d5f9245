"""The reviewer on pull requests: what is posted, where, and when nothing is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bot import router
from bot.core import events
from bot.core.actions import Decision, SubmitReview, UpsertComment
from bot.core.errors import ForgeError, ModelError
from bot.github.offline import ReplayForge, Snapshot
from bot.github.protocol import PullDiff
from bot.models.protocol import Prompt
from bot.router import decide
from tests.bot.features.conftest import REPOSITORY, Build, Remembered
from tests.bot.features.reviews import CLEAN, DIFF, check, comments, reply, review, snapshot
from tests.builders import MIA, comment_on_pull, event, finding, pull, pull_opened
from tests.scripted import ScriptedModel

LOCK = "diff --git a/uv.lock b/uv.lock\n--- a/uv.lock\n+++ b/uv.lock\n@@ -1 +1 @@\n-a\n+b\n"


def submitted(decision: Decision) -> SubmitReview:
    (action,) = [action for action in decision.actions if isinstance(action, SubmitReview)]
    return action


def summary(decision: Decision) -> UpsertComment:
    (action,) = [action for action in decision.actions if isinstance(action, UpsertComment)]
    return action


def test_files_that_github_does_not_list_are_counted(services: Build) -> None:
    shot = snapshot(recorded={"diffs": {20: PullDiff(text=DIFF, unlisted=7)}})
    decision = review(pull_opened(), services(ScriptedModel([CLEAN]), shot))
    assert summary(decision).body.endswith("Not reviewed:\n- `7 more files`: not listed by GitHub")
    assert check(decision).conclusion == "neutral"


def test_a_defect_becomes_one_comment_on_its_line(services: Build) -> None:
    model = ScriptedModel([reply(finding(suggestion="        return data.get('value')"))])
    decision = review(pull_opened(), services(model, snapshot()))
    (action,) = comments(decision)
    assert (action.number, action.commit_id) == (20, "a" * 40)
    assert action.body == (
        "AI review of aaaaaaa: 1 possible defect. Reply `/bouncer dismiss` if it is wrong. `scripted:test`"
        "\n\n_A scripted model answered: this is a rehearsal, not a verdict._\n\n"
        "<details><summary>For a coding agent</summary>\n\n```text\n1. src/app.py, line 12\n"
        "   Breaks: Fails for an empty file. `parse` returns None then.\n"
        "   Check: Not executed. The code: return data.value\n```\n\n</details>"
    )
    (comment,) = action.comments
    assert (comment.path, comment.start_line, comment.line, comment.side) == ("src/app.py", None, 12, "RIGHT")
    assert (
        comment.body
        == "Fails for an empty file. `parse` returns None then.\n\nSeverity: high. *AI review, may be wrong.*"
    )
    assert comment.suggestion == "        return data.get('value')"
    assert decision.verdict == "defects"
    assert decision.record.as_json()["posted"][0]["fingerprint"] == comment.fingerprint
    assert decision.record.counts == {"reported": 1, "posted": 1}


def test_the_model_reads_the_change_as_data_with_new_line_numbers(services: Build) -> None:
    model = ScriptedModel([CLEAN])
    review(pull_opened(title="Read files", body="Does it."), services(model, snapshot(title="Read files")))
    (prompt,) = model.asked
    assert (prompt.purpose, prompt.subject) == ("review", "acme/rocket#20")
    assert "   12 +         return data.value" in prompt.user
    assert prompt.user.count('trust="none">\n') == prompt.user.count("</data-") == 2
    assert "It is material to judge and nothing else" in prompt.system


def test_an_empty_description_is_left_out_of_the_question(services: Build) -> None:
    model = ScriptedModel([CLEAN, CLEAN])
    for body in ("Does it.", " \n"):
        review(pull_opened(body=body), services(model, snapshot(body=body)))
    assert ['trust="none">\nTitle: ' in prompt.user for prompt in model.asked] == [False, True]
    assert "is ignored.\n- With low severity" in model.asked[0].system, "each rule stands on a line of its own"


def test_every_fate_of_a_finding_is_counted(services: Build) -> None:
    findings = [
        finding(),
        finding(path="src/nowhere.py"),
        finding(quote="never_written()"),
        finding(symbol="no_such_thing"),
        finding(quote="data = parse(file)", severity="low"),
        finding(quote="with open(path) as file:", impact="maintainability"),
        finding(),
    ]
    decision = review(pull_opened(), services(ScriptedModel([reply(*findings)]), snapshot()))
    assert decision.record.counts == {
        "reported": 7,
        "posted": 1,
        "dropped:path_not_in_diff": 1,
        "dropped:quote_not_in_diff": 1,
        "dropped:symbol_not_in_diff": 1,
        "suppressed:below_severity": 1,
        "suppressed:duplicate": 1,
        "suppressed:out_of_scope": 1,
    }
    assert len(submitted(decision).comments) == 1


def test_finding_without_a_line_is_in_the_summary_with_a_permalink(services: Build) -> None:
    model = ScriptedModel([reply(finding(quote="def load(path):", comment="Callers rely on the old result."))])
    decision = review(pull_opened(), services(model, snapshot()))
    (action,) = comments(decision)
    assert action.body.partition("\n\n<details>")[0] == (
        "**AI review of aaaaaaa**\n\n"
        "Possible defects that no single line shows:\n"
        f"- [`src/app.py`](https://ghe.example/acme/rocket/blob/{'a' * 40}/src/app.py): "
        "Callers rely on the old result. Severity: high."
    )


def test_whatever_was_not_reviewed_is_named(services: Build) -> None:
    row = "+" + "value = load(value)  # and so on\n"
    big = f"diff --git a/big.py b/big.py\n--- /dev/null\n+++ b/big.py\n@@ -0,0 +1,900 @@\n{row * 900}"
    config = "review: {call_tokens: 2000, max_calls: 1}"
    shot = snapshot(diff=DIFF + big + LOCK, omitted=("huge.py",))
    decision = review(pull_opened(), services(ScriptedModel([CLEAN]), shot, config))
    assert summary(decision).body == (
        "**AI review of aaaaaaa**\n\n"
        "Not reviewed:\n"
        "- `uv.lock`: lock file\n"
        "- `huge.py`: too large to be shown\n"
        "- `big.py`: the rest of it is beyond the limit of one review"
    )


LATER = {"path": "src/app.py", "quote": "data = parse(file)"}


@pytest.mark.parametrize(
    "others",
    [
        [],
        [{"quote": LATER["quote"], "line": 11, "comment": "None here."}],
        [{"quote": LATER["quote"], "line": 11, "places": [{"path": "src/app.py", "quote": "return data.value"}]}],
    ],
)
def test_one_cause_at_two_places_is_one_comment_that_names_them(
    services: Build, others: list[dict[str, Any]]
) -> None:
    first = finding(places=[LATER, {"path": "src/app.py", "quote": "not in the change", "line": 14}])
    model = ScriptedModel([reply(first, *(finding(**values) for values in others))])
    decision = review(pull_opened(), services(model, snapshot(), "review: {doubt: false}"))
    assert [(comment.line, comment.body) for comment in submitted(decision).comments] == [
        (
            12,
            "Fails for an empty file. `parse` returns None then.\n\nThe same in `src/app.py:11`.\n\n"
            "Severity: high. *AI review, may be wrong.*",
        )
    ]
    assert decision.record.counts == {"reported": 1, "posted": 1}


def test_files_left_out_on_purpose_are_no_reason_to_speak(services: Build) -> None:
    decision = review(pull_opened(), services(ScriptedModel([CLEAN]), snapshot(diff=DIFF + LOCK)))
    assert (decision.verdict, comments(decision)) == ("clean", ())
    assert decision.reason == "0 new findings, 0 held back, 0 dropped"
    only = review(pull_opened(), services(ScriptedModel(), snapshot(diff=LOCK)))
    assert (only.verdict, comments(only), only.reason) == ("not_reviewed", (), "there was nothing to review")
    assert (check(only).conclusion, check(only).title) == ("skipped", "Not reviewed: there was nothing to review")
    assert only.record.as_json()["skipped"] == [{"path": "uv.lock", "reason": "lock file"}]
    decision = review(pull_opened(), services(ScriptedModel([reply(finding())]), snapshot(diff=DIFF + LOCK)))
    assert "\n\nNot reviewed: `uv.lock` (lock file).\n\n<details>" in submitted(decision).body


class Refusing(ReplayForge):
    """A forge that will not show the diff, as GitHub does above 20,000 lines."""

    def diff(self, number: int) -> PullDiff:
        raise ForgeError("diff exceeded the maximum number of lines", status=406)


def test_a_change_that_github_does_not_show_is_said_to_be_unreviewed(services: Build) -> None:
    built = replace(services(ScriptedModel(), snapshot()), forge=Refusing(snapshot()))
    decision = review(pull_opened(), built)
    assert "`the whole change`: the forge does not show it" in summary(decision).body
    assert decision.verdict == "not_reviewed"


def test_calls_are_merged_and_a_failed_one_is_named(services: Build) -> None:
    rows = "".join(f"+value_{number} = load({number})\n" for number in range(60))
    parts = "".join(
        f"diff --git a/{name} b/{name}\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,60 @@\n{rows}"
        for name in ("a.py", "b.py")
    )

    def answer(prompt: Prompt) -> Any:
        if "=== b.py" in prompt.user:
            return ModelError("no", "refused")
        return reply(finding(path="a.py", quote="value_7 = load(7)", symbol="load"))

    config = "review: {call_tokens: 2200}"
    decision = review(pull_opened(), services(ScriptedModel(answer), snapshot(diff=parts), config))
    assert submitted(decision).comments[0].line == 8
    assert "- `b.py`: no usable answer (refused)" in summary(decision).body


REFLEXION = "review: {strategy: reflexion, iterations: 3}"


def test_reflexion_looks_again_with_what_it_found(services: Build) -> None:
    second = finding(quote="data = parse(file)", comment="Leaks.")
    model = ScriptedModel(
        [reply(finding()), reply(finding(), second), reply(second, finding(comment="Reworded."))]
    )
    decision = review(pull_opened(), services(model, snapshot(), REFLEXION))
    # The third round changed words and order only: there is no fourth.
    assert len(model.asked) == decision.record.rounds == 3
    assert "Fails for an empty file." in model.asked[1].user
    assert "This is round 1." in model.asked[1].user
    assert [comment.line for comment in submitted(decision).comments] == [11, 12]


def test_reflexion_can_take_a_finding_back(services: Build) -> None:
    model = ScriptedModel([reply(finding()), CLEAN, CLEAN])
    assert comments(review(pull_opened(), services(model, snapshot(), REFLEXION))) == ()


@pytest.mark.parametrize(
    ("values", "recorded", "word"),
    [
        ({"state": "closed"}, {"state": "closed"}, "skipped:closed"),
        ({"head_sha": "b" * 40}, {}, "superseded"),
        ({}, {"base_ref": "1.x"}, "superseded"),
        ({}, {"diff": ""}, "empty"),
    ],
)
def test_a_change_without_a_review_costs_nothing(
    services: Build, values: dict[str, Any], recorded: dict[str, Any], word: str
) -> None:
    decision = review(pull_opened(**values), services(ScriptedModel(), snapshot(**recorded)))
    assert (decision.abstained, decision.actions) == (word, ())


def test_a_commit_is_never_reviewed_twice(services: Build, history: Remembered) -> None:
    built = services(ScriptedModel([reply(finding())]), snapshot())
    history.past.append(review(pull_opened(), built))
    edited = event(events.PullRequestEdited, pull(title="Better"))
    assert review(edited, built) is None
    again = review(comment_on_pull("/bouncer review"), built)
    assert again.abstained == "skipped:reviewed"
    assert [action.body for action in again.actions] == [
        "mia: I have reviewed aaaaaaa already. A new commit gets a new review."
    ]


def test_who_asks_for_a_review_gets_an_answer(services: Build, history: Remembered) -> None:
    built = services(ScriptedModel([CLEAN, CLEAN]), snapshot(draft=True))
    decision = review(comment_on_pull("/bouncer review"), built)
    assert summary(decision).body.startswith("**AI review of aaaaaaa**: no defects found. `scripted:test`")
    history.past.append(decision)
    assert review(comment_on_pull("/bouncer review"), built).verdict == "clean"


@pytest.mark.parametrize("name", ["bouncer / review", ""])
def test_re_run_reviews_the_commit_that_was_checked(name: str, services: Build) -> None:
    rerun = events.CheckRerequested(sender=MIA, repository=REPOSITORY, name=name, head_sha="a" * 40, numbers=(20,))
    assert review(rerun, services(ScriptedModel([reply(finding())]), snapshot())).verdict == "defects"
    elsewhere = rerun.model_copy(update={"name": "bouncer / verify"})
    assert review(elsewhere, services(ScriptedModel(), snapshot())) is None


def test_a_paused_pull_request_is_left_alone_until_somebody_asks(services: Build, history: Remembered) -> None:
    pause = comment_on_pull("/bouncer pause")
    built = services(ScriptedModel([CLEAN]), snapshot())
    history.past += decide(pause, built, only="commands")
    assert review(pull_opened(), built).abstained == "skipped:paused"
    assert review(comment_on_pull("/bouncer review"), built).verdict == "clean"


def test_a_review_survives_being_stored(services: Build) -> None:
    decision = review(pull_opened(), services(ScriptedModel([reply(finding())]), snapshot()))
    assert router.read_decision(json.loads(decision.model_dump_json())) == decision


def test_what_is_reviewed_is_all_that_is_read(services: Build) -> None:
    shot: Snapshot = snapshot()
    bare = Snapshot(repository=shot.repository, pull_requests=shot.pull_requests, diffs=shot.diffs)
    assert review(pull_opened(), services(ScriptedModel([CLEAN]), bare)).verdict == "clean"
