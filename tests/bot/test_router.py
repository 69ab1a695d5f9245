"""Who deals with an event is told from the event alone: what concerns nobody makes no job and reads nothing."""

from __future__ import annotations

import pytest

from bot import router
from bot.core import events
from bot.core.events import Event
from bot.core.subjects import Actor, Comment, Issue, PullRequest, Repository, ReviewComment

HERE = Repository(id=1, owner="octo", name="demo")
ANN, BOB = Actor(id=1, login="ann"), Actor(id=2, login="bob")
BOT = Actor(id=9, login="bouncer[bot]", is_bot=True)
ISSUE = Issue(number=1, title="Reading fails", author=ANN)
PULL = PullRequest(number=2, title="Read", author=ANN, head_sha="a" * 40)


def said(body: str, by: Actor, *, pull: bool = False) -> Event:
    issue = ISSUE.model_copy(update={"is_pull_request": pull})
    return events.CommentCreated(
        sender=by, repository=HERE, issue=issue, comment=Comment(id=3, body=body, author=by)
    )


def changed(kind: type, by: Actor, author: Actor) -> Event:
    comment = Comment(id=3, body="hm", author=author)
    event: Event = kind(sender=by, repository=HERE, issue=ISSUE, comment=comment)
    return event


def on_line(kind: type, by: Actor, author: Actor, body: str = "hm") -> Event:
    comment = ReviewComment(id=3, body=body, author=author, path="a.py")
    event: Event = kind(sender=by, repository=HERE, pull_request=PULL, comment=comment)
    return event


@pytest.mark.parametrize(
    ("event", "tasks"),
    [
        (said("Me too.", BOB), ()),
        (said("Me too.", BOT), ()),
        (said("> /bouncer recheck", BOB), ()),
        (said("It is version 4.2.", ANN), ("closing", "triage", "reproduce")),
        (said("/bouncer recheck", BOB), ("commands", "triage", "reproduce")),
        (said("/bouncer help", BOB), ("commands", "reproduce")),
        (said("/bouncer reproduce", BOT), ()),
        (said("Looks good.", BOB, pull=True), ()),
        (said("It is version 4.2.", ANN, pull=True), ()),
        (said("/bouncer review", BOB, pull=True), ("commands", "review")),
        (said("/bouncer verify", BOB, pull=True), ("commands", "verify")),
        (said("/bouncer recheck", BOB, pull=True), ("commands", "verify", "review")),
        (changed(events.CommentEdited, ANN, ANN), ("closing", "triage")),
        (changed(events.CommentEdited, BOB, BOB), ()),
        (changed(events.CommentEdited, BOB, BOT), ("feedback",)),
        (changed(events.CommentDeleted, BOB, BOB), ()),
        (changed(events.CommentDeleted, BOB, BOT), ("feedback",)),
        (on_line(events.ReviewCommentCreated, BOB, BOB), ()),
        (on_line(events.ReviewCommentCreated, BOT, BOT), ()),
        (on_line(events.ReviewCommentCreated, BOB, BOB, "/bouncer dismiss"), ("commands", "review")),
        (on_line(events.ReviewCommentDeleted, BOB, BOB), ()),
        (on_line(events.ReviewCommentDeleted, BOB, BOT), ("feedback",)),
        (events.IssueLabeled(sender=BOT, repository=HERE, issue=ISSUE, label="needs-info"), ()),
        (events.IssueLabeled(sender=BOB, repository=HERE, issue=ISSUE, label="bug"), ("triage", "reproduce")),
        (events.CheckRerequested(sender=BOB, repository=HERE, name="another's", head_sha="a" * 40), ()),
        (events.CheckRerequested(sender=BOB, repository=HERE, head_sha="a" * 40), ("verify", "review")),
        (events.BranchPushed(sender=BOB, repository=HERE, head_sha="a" * 40), ()),
        (
            events.BranchPushed(sender=BOB, repository=HERE, head_sha="a" * 40, may_change_config=True),
            ("config",),
        ),
    ],
)
def test_an_event_is_dealt_with_by_those_whom_it_can_concern(event: Event, tasks: tuple[str, ...]) -> None:
    assert router.tasks(event) == tasks
