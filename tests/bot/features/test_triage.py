"""The input bouncer on issues: what is posted, when, and when nothing is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bot.core import events
from bot.core.actions import React, SetLabels, UpsertComment
from bot.core.errors import ModelError, TransientError
from bot.core.subjects import Actor, Comment
from bot.features.shared.rights import by_maintainer
from bot.github.offline import Snapshot
from bot.router import SLASH_COMMANDS, decide
from tests import builders
from tests.bot.features.conftest import NOON, Build, Remembered
from tests.builders import ANN, BOB, BOUNCER, MIA, REPOSITORY, comment_created, issue, issue_opened
from tests.scripted import ScriptedModel

VAGUE: dict[str, Any] = {
    "explanation": "It does not say what should happen.",
    "open_points": [
        "What should `Table.read` return for an empty file: an empty table, or an error?",
        "Which version is this?",
        "Which version is  this?",
        "Does it happen with every file?",
        "Is there a traceback?",
    ],
    "missing": ["expected result", "minimal example"],
    "p_bounce": 72,
    "label": "VAGUE",
}
CLEAR: dict[str, Any] = {"explanation": "All there.", "p_bounce": 3, "label": "WELL_SPECIFIED"}


def snapshot(*comments: Comment, **values: Any) -> Snapshot:
    return builders.snapshot(comments={5: comments}, **values)


def bounce(services: Build, history: Remembered) -> None:
    history.past += decide(issue_opened(), services(ScriptedModel([VAGUE]), snapshot()))


def edited(**values: Any) -> events.IssueEdited:
    return builders.event(events.IssueEdited, issue(**values))


def test_a_vague_issue_gets_one_short_comment_and_a_label(services: Build) -> None:
    (decision,) = decide(issue_opened(), services(ScriptedModel([VAGUE]), snapshot()))
    comment, labels = decision.actions
    assert comment.body == (
        "Thanks for the report. To work on this, a maintainer will probably need:\n"
        "- What should `Table.read` return for an empty file: an empty table, or an error?\n"
        "- Which version is this?\n"
        "- Does it happen with every file?\n"
        "\n"
        "Edit the issue or reply below and I'll read it again. *I'm a bot using an AI model and may be wrong. "
        "Maintainers: `/bouncer accept` to override.*\n"
        "\n"
        "_A scripted model answered: this is a rehearsal, not a verdict._\n"
        "\n"
        "<details><summary>Why I'm asking</summary>\n"
        "\n"
        "It does not say what should happen.\n"
        "\n"
        "too vague (72% likely), `scripted:test`, 2026-03-04, [what this bot does](https://ghe.example/apps/bouncer)\n"
        "</details>"
    )
    assert labels == SetLabels(number=5, add=("needs-info",))
    assert (decision.verdict, decision.record.bounced) == ("VAGUE", True)


@pytest.mark.parametrize("share", [0.72, 1.0])
def test_a_share_in_place_of_percent_is_asked_for_again(services: Build, share: float) -> None:
    model = ScriptedModel([{**VAGUE, "p_bounce": share}, VAGUE])
    (decision,) = decide(issue_opened(), services(model, snapshot()))
    assert (decision.verdict, decision.record.p_bounce) == ("VAGUE", 72)
    assert "p_bounce: Value error, must be in percent" in model.requests[1].turns[-1].text


def test_a_clear_issue_gets_nothing(services: Build) -> None:
    (decision,) = decide(issue_opened(), services(ScriptedModel([CLEAR]), snapshot()))
    assert decision.actions == ()
    assert (decision.verdict, decision.reason) == ("WELL_SPECIFIED", "specified well enough")


def test_a_repository_can_ask_for_a_label_on_clear_issues(services: Build) -> None:
    config = "triage: {accepted_label: ready}"
    (decision,) = decide(issue_opened(), services(ScriptedModel([CLEAR]), snapshot(), config))
    assert decision.actions == (SetLabels(number=5, add=("ready",)),)


def test_only_a_label_is_set_if_that_is_wanted(services: Build) -> None:
    (decision,) = decide(issue_opened(), services(ScriptedModel([VAGUE]), snapshot(), "triage: {mode: label}"))
    assert [action.type for action in decision.actions] == ["set_labels"]
    assert decision.verdict == "VAGUE"


def test_shadow_mode_keeps_what_it_would_have_posted(services: Build) -> None:
    (live,) = decide(issue_opened(), services(ScriptedModel([VAGUE]), snapshot()))
    (shadow,) = decide(issue_opened(), services(ScriptedModel([VAGUE]), snapshot(), "triage: {mode: shadow}"))
    assert (shadow.actions, shadow.withheld) == ((), live.actions)
    assert shadow.reason == "shadow mode, nothing written: not specified well enough"


def test_switched_off_nobody_is_asked(services: Build) -> None:
    model = ScriptedModel([])
    assert decide(issue_opened(), services(model, snapshot(), "triage: {mode: off}")) == ()
    assert model.asked == []


@pytest.mark.parametrize(
    ("config", "chance", "label", "bounced"),
    [
        ("", 39, "REASONABLY_SPECIFIED", False),
        ("", 40, "VAGUE", True),
        ("triage: {bounce_at: REASONABLY_SPECIFIED}", 39, "REASONABLY_SPECIFIED", True),
        ("triage: {bounce_above: 39}", 39, "REASONABLY_SPECIFIED", True),
    ],
)
def test_an_issue_bounces_from_40_percent_or_from_the_maintainers_line(
    services: Build, config: str, chance: int, label: str, bounced: bool
) -> None:
    reply = {**VAGUE, "label": "REASONABLY_SPECIFIED", "p_bounce": chance}
    (decision,) = decide(issue_opened(), services(ScriptedModel([reply]), snapshot(), config))
    assert (decision.verdict, decision.record.bounced) == (label, bounced)


def test_a_bounce_by_a_low_threshold_does_not_call_it_well_specified(services: Build) -> None:
    reply = {**VAGUE, "label": "WELL_SPECIFIED", "p_bounce": 35}
    config = "triage: {bounce_above: 30}"
    (decision,) = decide(issue_opened(), services(ScriptedModel([reply]), snapshot(), config))
    comment = decision.actions[0]
    assert "\ntoo vague (35% likely), " in comment.body


def test_an_edit_that_makes_it_clear_takes_the_bounce_back(services: Build, history: Remembered) -> None:
    bounce(services, history)
    event = edited(body="Better.", labels=("needs-info",))
    (decision,) = decide(event, services(ScriptedModel([CLEAR]), snapshot()))
    assert decision.actions == (
        UpsertComment(
            task="triage",
            number=5,
            body="Thanks, that answers my questions. (I'm a bot; an AI model read this.)",
            only_edit=True,
        ),
        SetLabels(number=5, remove=("needs-info",)),
    )


def test_an_answer_is_read_and_answered_questions_are_not_repeated(services: Build, history: Remembered) -> None:
    bounce(services, history)
    answer = comment_created("An error, please. Version 4.2.")
    model = ScriptedModel([VAGUE])
    (decision,) = decide(answer, services(model, snapshot(answer.comment)))
    assert "An error, please. Version 4.2." in model.asked[0].user
    assert "Which version is this?" in model.asked[0].user
    reaction, comment, _ = decision.actions
    assert reaction == React(comment_id=900, content="eyes"), "a sign to the author that it was read"
    body = comment.body
    assert body.startswith(
        "Thanks for the reply. To work on this, a maintainer will probably need:\n- Is there a tr"
    )
    assert "Which version" not in body


def test_an_edit_that_answers_nothing_is_no_answer(services: Build, history: Remembered) -> None:
    bounce(services, history)
    (decision,) = decide(edited(body="It broke!"), services(ScriptedModel([VAGUE]), snapshot()))
    comment, _ = decision.actions
    assert "- Which version is this?\n" in comment.body


def test_nothing_that_was_asked_is_asked_again_as_missing(services: Build, history: Remembered) -> None:
    bounce(services, history)
    # A bystander's words are no answer of the author's, and the author's are, whatever they say.
    bystander = Comment(id=800, body="Same here.", author=BOB)
    answer = comment_created("I do not know.")
    for others, is_asked in (((bystander,), True), ((bystander, answer.comment), False)):
        model = ScriptedModel([{**VAGUE, "open_points": VAGUE["open_points"][:3]}])
        (decision,) = decide(answer, services(model, snapshot(*others)))
        body = decision.actions[1].body
        assert ("Which version" in body) is is_asked
        assert "minimal example" not in body


def test_an_unchanged_edit_is_not_judged_again(services: Build, history: Remembered) -> None:
    bounce(services, history)
    assert decide(edited(body="It broke.\r\n"), services(ScriptedModel([]), snapshot())) == ()


def test_chatter_is_not_judged(services: Build, history: Remembered) -> None:
    assert decide(comment_created("me too", BOB), services(ScriptedModel([]), snapshot())) == ()
    bounce(services, history)
    assert decide(comment_created("me too", BOB), services(ScriptedModel([]), snapshot())) == ()


@pytest.mark.parametrize(
    ("values", "config", "word"),
    [
        ({"author": Actor(id=3, login="dependabot[bot]", is_bot=True)}, "", "skipped:bot"),
        ({"state": "closed"}, "", "skipped:closed"),
        ({"locked": True}, "", "skipped:locked"),
        ({"labels": ("Roadmap",)}, "triage: {ignore_labels: [roadmap]}", "skipped:label"),
        ({}, "triage: {ignore_authors: [ANN]}", "skipped:author"),
        ({"assignees": ("mia",)}, "triage: {ignore_assignees: [Mia]}", "skipped:assigned"),
        ({"assignees": ("mia",)}, "triage: {ignore_assignees: ['*']}", "skipped:assigned"),
        ({"milestone": "2.0"}, "triage: {ignore_milestones: ['2.0']}", "skipped:milestone"),
        ({"author_association": "MEMBER"}, "", "skipped:insider"),
        ({"type": "Question"}, "", "skipped:question"),
        ({"labels": ("question",)}, "", "skipped:question"),
        ({"title": "Tracking issue: release 5"}, "", "skipped:tracking"),
        ({"body": "- [ ] #1\n- [x] #2\n- [ ] o/r#3\n"}, "", "skipped:tracking"),
        (
            {"body": "### Version\n\n4.2\n\n### What happens?\n\nx"},
            "triage: {ignore_kinds: [form]}",
            "skipped:form",
        ),
    ],
)
def test_what_is_left_alone_is_recorded_with_its_reason(
    services: Build, values: dict[str, Any], config: str, word: str
) -> None:
    (decision,) = decide(issue_opened(**values), services(ScriptedModel([]), snapshot(), config))
    assert (decision.abstained, decision.verdict, decision.actions) == (word, None, ())


def test_a_server_in_shadow_mode_posts_nothing_at_all(services: Build, history: Remembered) -> None:
    (bounce,) = decide(issue_opened(), services(ScriptedModel([VAGUE]), snapshot(), shadow=True))
    assert (bounce.actions, [action.type for action in bounce.withheld]) == ((), ["upsert_comment", "set_labels"])
    (command,) = decide(
        comment_created("/bouncer help", BOB), services(ScriptedModel([]), snapshot(), shadow=True)
    )
    assert command.actions == ()
    assert command.withheld


def test_our_own_issues_are_no_business_of_ours(services: Build) -> None:
    event = events.IssueOpened(sender=BOUNCER, repository=REPOSITORY, issue=issue(author=BOUNCER))
    assert decide(event, services(ScriptedModel([]), snapshot())) == ()


def test_the_newest_pause_or_resume_counts_in_whatever_order(services: Build, history: Remembered) -> None:
    bounce(services, history)
    for word, hour in (("resume", 2), ("pause", 1)):
        event = comment_created(f"/bouncer {word}", MIA)
        comment = event.comment.model_copy(update={"created_at": NOON + timedelta(hours=hour)})
        late = event.model_copy(update={"comment": comment})
        (command,) = decide(late, services(ScriptedModel([]), snapshot()))
        history.past.append(command)
    (notice,) = [action for action in command.actions if isinstance(action, UpsertComment)]
    assert "Edit the issue or reply below" in notice.body
    (verdict,) = decide(edited(body="Worse."), services(ScriptedModel([VAGUE]), snapshot()))
    assert verdict.verdict == "VAGUE"


def test_an_author_who_asks_again_and_again_is_told_once_by_a_reaction(
    services: Build, history: Remembered
) -> None:
    def ask(comment: int, by: Actor = ANN, number: int = 5, minutes: int = 0) -> list[str | None]:
        event = comment_created("/bouncer recheck", by, issue(number=number))
        event = event.model_copy(update={"comment": event.comment.model_copy(update={"id": comment})})
        state = snapshot().model_copy(update={"comments": {number: ()}})
        built = services(ScriptedModel([VAGUE]), state, clock=lambda: NOON + timedelta(minutes=minutes))
        decisions = decide(event, built)
        history.past += decisions
        return [decision.verdict or decision.abstained for decision in decisions]

    assert ask(1) == ["recheck", "VAGUE"]
    assert ask(1) == ["recheck", "VAGUE"]  # the same comment, delivered to another handler
    assert ask(2, minutes=5) == ["refused"]
    assert history.past[-1].reason == "refused to ann: recheck"
    assert ask(3, by=MIA, minutes=5) == ["recheck", "VAGUE"]
    assert ask(4, minutes=11) == ["recheck", "VAGUE"]
    for number in range(20, 24):
        assert ask(number, number=number, minutes=30) == ["recheck", "VAGUE"]
    assert ask(30, number=30, minutes=45) == ["refused"]


def test_a_model_that_fails_is_an_abstention(services: Build) -> None:
    model = ScriptedModel([ModelError("no", reason="refused")])
    (decision,) = decide(issue_opened(), services(model, snapshot()))
    assert (decision.verdict, decision.abstained, decision.actions) == (None, "model:refused", ())


def test_a_model_that_is_away_is_tried_again_later(services: Build) -> None:
    with pytest.raises(TransientError):
        decide(issue_opened(), services(ScriptedModel([TransientError("busy", wait=3)]), snapshot()))


def test_only_blocking_questions_are_asked_and_the_label_fits_its_chance(services: Build) -> None:
    values = {
        **VAGUE,
        "open_points": [
            {"question": "Which of the two names is the option to have?", "blocking": True},
            {"question": "Is there a deadline?", "blocking": False},
        ],
        "missing": ["name of the option", "decision between alternatives"],
        "label": "REASONABLY_SPECIFIED",
    }
    (decision,) = decide(issue_opened(), services(ScriptedModel([values]), snapshot()))
    assert decision.verdict == "VAGUE", "72 percent is more than half"
    body = decision.actions[0].body
    assert "need:\n- Which of the two names is the option to have?\n\nEdit the issue" in body
    assert "decision between" not in body, "a question says it once"
    assert "deadline" not in body
    (decision,) = decide(issue_opened(), services(ScriptedModel([values]), snapshot(), "triage: {prompt: paper}"))
    assert decision.verdict == "REASONABLY_SPECIFIED", "the paper's question keeps the label that was given"


def test_the_papers_question_asks_for_explanation_and_label_alone(services: Build) -> None:
    model = ScriptedModel([VAGUE])
    (decision,) = decide(issue_opened(), services(model, snapshot(), "triage: {prompt: paper, language: auto}"))
    assert decision.verdict == "VAGUE"
    [request] = model.requests
    assert list(request.schema.model_json_schema()["properties"]) == ["explanation", "label"]
    for word in ("percent", "questions", "language", "chance"):
        assert word not in request.prompt.system


@pytest.mark.parametrize(
    ("values", "config"),
    [
        ({"author_association": "MEMBER"}, "triage: {authors: all}"),
        ({"author_association": "CONTRIBUTOR"}, ""),
        ({"body": "### Version\n\n4.2\n\n### What happens?\n\nx"}, ""),
        ({"type": "Question"}, "triage: {ignore_kinds: []}"),
        ({"title": "Metadata: wrong order"}, ""),
    ],
)
def test_everybody_else_is_judged(services: Build, values: dict[str, Any], config: str) -> None:
    (decision,) = decide(issue_opened(**values), services(ScriptedModel([CLEAR]), snapshot(), config))
    assert decision.verdict == "WELL_SPECIFIED"


def test_who_asks_for_it_has_their_own_issue_judged(services: Build) -> None:
    event = comment_created("/bouncer recheck", about=issue(author_association="OWNER"))
    decisions = decide(event, services(ScriptedModel([CLEAR]), snapshot()), only="triage")
    assert [decision.verdict for decision in decisions] == ["WELL_SPECIFIED"]


def labelled(by: Actor, *, removed: bool = False) -> events.Event:
    kind = events.IssueUnlabeled if removed else events.IssueLabeled
    return kind(sender=by, repository=REPOSITORY, issue=issue(), label="needs-info")


def test_label_by_a_maintainer_names_them_and_asks_the_open_questions(services: Build) -> None:
    clear = {**CLEAR, "label": "REASONABLY_SPECIFIED", "p_bounce": 1, "missing": ["output format"]}
    (decision,) = decide(labelled(MIA), services(ScriptedModel([{**clear, "open_points": []}]), snapshot()))
    body = decision.actions[0].body
    assert body.startswith("Thanks for the report. mia asked for more details.\n\nEdit the issue or reply below")
    assert "REASONABLY" not in body
    assert "- " not in body.partition("<details>")[0], "no built-in question"
    assert (decision.record.bounced, decision.record.marked_by) == (True, "mia")
    point = {"question": "Is there a deadline?", "blocking": False}
    (decision,) = decide(labelled(MIA), services(ScriptedModel([{**clear, "open_points": [point]}]), snapshot()))
    assert "need:\n- Is there a deadline?\n\nEdit" in decision.actions[0].body


def test_a_label_removed_in_shadow_mode_is_remembered(services: Build, history: Remembered) -> None:
    built = services(ScriptedModel([VAGUE]), snapshot(), "triage: {mode: shadow}")
    history.past += decide(issue_opened(), built)
    (decision,) = decide(labelled(MIA, removed=True), built)
    assert (decision.verdict, decision.actions) == ("accept", ())
    assert SetLabels(number=5, remove=("needs-info",)) in decision.withheld
    history.past.append(decision)
    (later,) = decide(issue_opened(), services(ScriptedModel([VAGUE]), snapshot()))
    assert later.abstained == "skipped:accepted"


@pytest.mark.parametrize(
    ("body", "by", "theirs"),
    [
        ("/bouncer recheck", ANN, False),
        ("/bouncer recheck", MIA, True),
        ("/bouncer reproduce", MIA, True),
        ("/bouncer help", MIA, False),
        ("It is 4.2.", MIA, False),
        *(
            (f"/bouncer recheck\n/bouncer {command.word}", ANN, False)
            for command in SLASH_COMMANDS
            if command.word != "recheck"
        ),
        ("It is 4.2.\n\n/bouncer accept", ANN, False),
        ("/bouncer reproduce", BOB, False),
        ("/bouncer recheck", BOB, False),
    ],
)
def test_what_counts_as_asked_by_a_maintainer(services: Build, body: str, by: Actor, theirs: bool) -> None:
    here = services(ScriptedModel(), snapshot())
    assert by_maintainer(comment_created(body, by), here) is theirs
    assert not by_maintainer(issue_opened(), here)
