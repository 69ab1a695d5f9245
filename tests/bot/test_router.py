"""The event alone decides which features it concerns: if there is none, no job is made and nothing is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot import router
from bot.core import events
from bot.core.events import Event
from bot.core.subjects import Actor, Comment, ReviewComment
from tests.builders import ANN, BOB, BOUNCER, REPOSITORY, comment_created, event, issue, pull

PULL = pull()


def commented(body: str, by: Actor, *, on_pull: bool = False) -> Event:
    return comment_created(body, by, issue(is_pull_request=on_pull))


def changed(kind: type[Event], by: Actor, author: Actor) -> Event:
    return event(kind, issue(), by, comment=Comment(id=3, body="hm", author=author))


def on_line(kind: type[Event], by: Actor, author: Actor, body: str = "hm") -> Event:
    return event(kind, PULL, by, comment=ReviewComment(id=3, body=body, author=author, path="a.py"))


@pytest.mark.parametrize(
    ("delivered", "tasks"),
    [
        (commented("Me too.", BOB), ()),
        (commented("Me too.", BOUNCER), ()),
        (commented("> /bouncer recheck", BOB), ()),
        (commented("It is version 4.2.", ANN), ("closing", "triage", "reproduce")),
        (commented("/bouncer recheck", BOB), ("commands", "triage", "reproduce")),
        (commented("/bouncer help", BOB), ("commands", "reproduce")),
        (commented("/bouncer reproduce", BOUNCER), ()),
        (commented("/bouncer bisect", BOB), ("commands", "reproduce", "watch")),
        (commented("/bouncer bisect", BOB, on_pull=True), ("commands",)),
        (commented("Looks good.", BOB, on_pull=True), ()),
        (commented("It is version 4.2.", ANN, on_pull=True), ()),
        (commented("/bouncer review", BOB, on_pull=True), ("commands", "review")),
        (commented("/bouncer verify", BOB, on_pull=True), ("commands", "verify")),
        (commented("/bouncer recheck", BOB, on_pull=True), ("commands", "gate", "verify", "review")),
        (changed(events.CommentEdited, ANN, ANN), ("closing", "triage")),
        (changed(events.CommentEdited, BOB, BOB), ()),
        (changed(events.CommentEdited, BOB, BOUNCER), ("feedback",)),
        (changed(events.CommentDeleted, BOB, BOB), ("closing",)),
        (changed(events.CommentDeleted, BOB, BOUNCER), ("feedback",)),
        (on_line(events.ReviewCommentCreated, BOB, BOB), ()),
        (on_line(events.ReviewCommentCreated, BOUNCER, BOUNCER), ()),
        (on_line(events.ReviewCommentCreated, BOB, BOB, "/bouncer dismiss"), ("commands", "review")),
        (on_line(events.ReviewCommentDeleted, BOB, BOB), ()),
        (on_line(events.ReviewCommentDeleted, BOB, BOUNCER), ("feedback",)),
        (event(events.IssueLabeled, issue(), BOUNCER, label="needs-info"), ("duplicates", "gate")),
        (
            event(events.IssueLabeled, issue(), BOB, label="bug"),
            ("triage", "duplicates", "reproduce", "ready", "gate"),
        ),
        (events.CheckRerequested(sender=BOB, repository=REPOSITORY, name="another's", head_sha="a" * 40), ()),
        (
            events.CheckRerequested(sender=BOB, repository=REPOSITORY, head_sha="a" * 40),
            ("gate", "verify", "review"),
        ),
        (events.BranchPushed(sender=BOB, repository=REPOSITORY, head_sha="a" * 40), ()),
        (
            events.BranchPushed(sender=BOB, repository=REPOSITORY, head_sha="a" * 40, may_change_config=True),
            ("config",),
        ),
    ],
)
def test_an_event_is_dealt_with_by_those_whom_it_can_concern(delivered: Event, tasks: tuple[str, ...]) -> None:
    assert router.tasks(delivered) == tasks


def test_each_slash_command_is_declared_by_one_feature() -> None:
    words = [command.word for feature in router.FEATURES for command in feature.commands]
    assert sorted(words) == sorted(set(words))
    assert {command.word for command in router.SLASH_COMMANDS} == set(words)
    assert all(events.CommentCreated in feature.events for feature in router.FEATURES if feature.commands)


RECORDED = (Path(__file__).parent / "decisions_0.2.0.jsonl").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", RECORDED)
def test_decision_of_version_0_2_keeps_its_record(line: str) -> None:
    values = json.loads(line)
    decision = router.read_decision(values)
    feature = router.feature_named(values["kind"])
    assert type(decision.record) is feature.record
    renamed = {"judged": "issue_revisions", "drafted": "drafts"}
    assert decision.record.model_fields_set == {renamed.get(name, name) for name in values["evidence"]}
    assert router.read_decision(json.loads(decision.model_dump_json())) == decision
