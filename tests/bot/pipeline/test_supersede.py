"""A newer event takes an older one's place only where nothing can get lost by it."""

from __future__ import annotations

import pytest

from bot.core import events
from bot.core.subjects import Actor, Comment, Issue, PullRequest, Repository
from bot.pipeline.job import supersedes

HUMAN = Actor(id=1, login="ana")
OTHER = Actor(id=2, login="ben")
BOT = Actor(id=3, login="helper[bot]", is_bot=True)
REPOSITORY = Repository(id=1, owner="acme", name="rocket")
ISSUE = Issue(number=7, title="t", author=HUMAN)
PULL = PullRequest(number=8, title="t", author=HUMAN, head_sha="a" * 40)


def issue(kind, sender=HUMAN):
    return kind(repository=REPOSITORY, sender=sender, issue=ISSUE)


def said(body, sender=HUMAN):
    comment = Comment(id=1, body=body, author=sender)
    return events.CommentCreated(repository=REPOSITORY, sender=sender, issue=ISSUE, comment=comment)


def pull(kind, sender=HUMAN):
    return kind(repository=REPOSITORY, sender=sender, pull_request=PULL)


OPENED, EDITED, REOPENED = (issue(kind) for kind in (events.IssueOpened, events.IssueEdited, events.IssueReopened))
PUSHED, PR_OPENED, READIED, RETITLED = (
    pull(kind)
    for kind in (
        events.PullRequestSynchronized,
        events.PullRequestOpened,
        events.PullRequestReadied,
        events.PullRequestEdited,
    )
)
RERUN = events.CheckRerequested(repository=REPOSITORY, sender=HUMAN, head_sha="a" * 40, numbers=(8,))


@pytest.mark.parametrize(
    ("task", "newer", "older", "expected"),
    [
        ("triage", EDITED, OPENED, True),
        ("triage", REOPENED, EDITED, True),
        ("triage", said("It is 4.2"), said("hm"), True),
        # A comment alone is no reason to read an issue that nobody has read yet.
        ("triage", said("It is 4.2"), OPENED, False),
        # An edit that puts back what was judged before is passed over; the answer would be lost with it.
        ("triage", EDITED, said("It is 4.2"), False),
        ("triage", said("thanks", OTHER), said("It is 4.2"), False),
        ("triage", said("/bouncer recheck"), said("It is 4.2"), False),
        ("triage", said("It is 4.2"), said("/bouncer recheck"), False),
        ("triage", issue(events.IssueEdited, BOT), OPENED, False),
        ("triage", issue(events.IssueEdited, BOT), issue(events.IssueOpened, BOT), True),
        ("triage", issue(events.IssueClosed), OPENED, False),
        ("review", PUSHED, PR_OPENED, True),
        ("review", PUSHED, PUSHED, True),
        ("review", READIED, PUSHED, True),
        ("review", RETITLED, PUSHED, False),
        ("review", pull(events.PullRequestSynchronized, BOT), PUSHED, False),
        ("review", PUSHED, RERUN, False),
        ("verify", RETITLED, PUSHED, True),
        ("verify", PUSHED, RETITLED, True),
        ("commands", said("/bouncer help"), said("/bouncer accept"), False),
        ("feedback", issue(events.IssueClosed), issue(events.IssueClosed), False),
        ("reproduce", EDITED, OPENED, False),
        ("config", OPENED, OPENED, False),
    ],
)
def test_what_takes_whose_place(task, newer, older, expected):
    assert supersedes(task, newer, older) is expected
