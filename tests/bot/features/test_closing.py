"""Closing of unanswered issues, and the people who keep one open."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core import events
from bot.core.actions import Decision, SetIssueState
from bot.core.subjects import Comment
from bot.router import decide
from tests import builders
from tests.bot.features.conftest import NOON, REPOSITORY, Build, Remembered
from tests.bot.features.test_triage import VAGUE, snapshot
from tests.builders import ANN, BOB, BOUNCER, MIA, comment_created, issue, issue_opened
from tests.scripted import ScriptedModel

CONFIG = "triage: {close_after_days: 30}"


def due(past: list[Decision]) -> events.IssueUnanswered:
    """Return the event at the time that the newest decision recorded."""
    last = past[-1]
    return events.IssueUnanswered(
        sender=ANN, repository=REPOSITORY, issue=issue(), since=last.record.at, days=last.again_days
    )


def bounced(services: Build, history: Remembered, event: events.Event | None = None) -> None:
    history.past += decide(event or issue_opened(), services(ScriptedModel([VAGUE]), snapshot(), CONFIG))


def later(
    services: Build, history: Remembered, *comments: Comment, timer: events.Event | None = None, **values: Any
) -> Decision:
    """The decision when time is up, on the issue as ``values`` have it by then."""
    now = snapshot(*comments, issues={5: issue(**{"labels": ("needs-info",), **values})})
    (decision,) = decide(timer or due(history.past), services(ScriptedModel([]), now, CONFIG))
    return decision


def happen(services: Build, event: events.Event, only: str | None = None) -> tuple[Decision, ...]:
    """Return the decisions about an event for which no model is asked."""
    return decide(event, services(ScriptedModel([]), snapshot(), CONFIG), only)


def test_a_silent_author_is_warned_and_a_week_later_it_is_closed(services: Build, history: Remembered) -> None:
    bounced(services, history)
    assert history.past[-1].again_days == 23
    history.past.append(later(services, history))
    warned = history.past[-1]
    assert ([action.type for action in warned.actions], warned.again_days) == (["upsert_comment"], 7)
    closed = later(services, history)
    assert [action.type for action in closed.actions] == ["set_issue_state", "upsert_comment"]
    assert closed.again_days is None


@pytest.mark.parametrize(
    ("values", "comment", "reason"),
    [
        ({"state": "closed"}, None, "it is closed already"),
        ({"body": "It broke, on Linux."}, None, "its text has changed"),
        ({"labels": ()}, None, "needs-info was taken off"),
        ({"labels": ("needs-info", "p1")}, None, "somebody labelled it"),
        ({"claimed": True}, None, "it is assigned to somebody, or planned"),
        ({}, MIA, "people are talking about it"),
        ({}, BOB, "people are talking about it"),
        ({}, ANN, "people are talking about it"),
    ],
)
def test_whoever_else_touches_it_keeps_it_open(
    services: Build, history: Remembered, values: dict[str, Any], comment: Any, reason: str
) -> None:
    bounced(services, history)
    for _ in ("before the warning", "after it"):
        comments = (Comment(id=9, body="I see.", author=comment),) if comment else ()
        decision = later(services, history, *comments, **values)
        assert (decision.abstained, decision.reason, decision.actions) == ("skipped:touched", reason, ())
        history.past.append(later(services, history))


@pytest.mark.parametrize("author", [MIA, BOB, ANN])
def test_a_deleted_comment_keeps_it_open(services: Build, history: Remembered, author: Any) -> None:
    bounced(services, history)
    comment = Comment(id=9, body="I see.", author=author)
    timer = due(history.past)
    history.past += happen(services, builders.event(events.CommentDeleted, issue(), author, comment=comment))
    decision = later(services, history, timer=timer)
    assert (decision.abstained, decision.reason) == ("skipped:touched", "people were talking about it")


@pytest.mark.parametrize("event_type", [events.CommentDeleted, events.CommentEdited])
def test_an_issue_without_our_question_is_not_closed(
    services: Build, history: Remembered, event_type: type[events.CommentDeleted | events.CommentEdited]
) -> None:
    bounced(services, history)
    timer = due(history.past)
    ours = Comment(id=9, body="Thanks for the report.", author=BOUNCER)
    history.past += happen(services, builders.event(event_type, issue(), MIA, comment=ours))
    decision = later(services, history, timer=timer)
    assert (decision.abstained, decision.reason) == ("skipped:touched", "my comment was deleted or edited")


def test_deleting_an_earlier_answer_or_a_bot_s_comment_changes_nothing(
    services: Build, history: Remembered
) -> None:
    bounced(services, history)
    bounce = history.past[-1]
    history.past[-1] = bounce.model_copy(update={"record": bounce.record.model_copy(update={"answers": (9,)})})
    for author in (ANN, BOUNCER):
        deleted_comment = Comment(id=9, body="I see.", author=author)
        event = builders.event(events.CommentDeleted, issue(), comment=deleted_comment)
        assert happen(services, event, "closing") == ()


def test_a_maintainer_s_word_keeps_it_open_for_good(services: Build, history: Remembered) -> None:
    bounced(services, history)
    timer = due(history.past)
    for words in ("/bouncer accept", "/bouncer pause"):
        past = list(history.past)
        history.past += happen(services, comment_created(words, MIA))
        assert later(services, history, timer=timer).reason == "a maintainer has spoken"
        history.past = past
    bounced(services, history, builders.event(events.IssueReopened, issue(), MIA))
    assert later(services, history).reason == "somebody opened it again"


def test_accepting_takes_the_warning_back(services: Build, history: Remembered) -> None:
    bounced(services, history)
    history.past.append(later(services, history))
    (accepted,) = happen(services, comment_created("/bouncer accept", MIA), "commands")
    edits = [action for action in accepted.actions if action.type == "upsert_comment"]
    assert [(edit.task, edit.body, edit.only_edit) for edit in edits] == [
        ("triage", "Accepted as is by mia.", True),
        ("closing", "Accepted as is by mia.", True),
    ]


def test_accepting_what_was_closed_here_opens_it_again(services: Build, history: Remembered) -> None:
    bounced(services, history)
    for _ in ("warned", "closed"):
        history.past.append(later(services, history))
    event = comment_created("/bouncer accept", MIA, issue(state="closed"))
    (accepted,) = happen(services, event, "commands")
    assert SetIssueState(number=5, state="open") in accepted.actions


@pytest.mark.parametrize("config", ["", "triage: {close_after_days: 30, mode: label}", "triage: {mode: 'off'}"])
def test_what_the_maintainers_no_longer_want_is_not_done(
    services: Build, history: Remembered, config: str
) -> None:
    bounced(services, history)
    assert decide(due(history.past), services(ScriptedModel([]), snapshot(), config)) == ()


def test_only_the_newest_bounce_counts(services: Build, history: Remembered) -> None:
    bounced(services, history)
    first = due(history.past)
    again = builders.event(events.IssueReopened, issue())
    soon = {"clock": lambda: NOON.replace(hour=18)}
    history.past += decide(again, services(ScriptedModel([VAGUE]), snapshot(), CONFIG, **soon))
    assert happen(services, first) == ()
