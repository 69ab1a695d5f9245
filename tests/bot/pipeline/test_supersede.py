"""A newer event takes an older one's place only where nothing can get lost by it."""

from __future__ import annotations

import pytest

from bot.core import events
from bot.pipeline.inbox import supersedes
from tests.builders import ANN, BOB, HELPER, REPOSITORY, comment_created, event, issue, pull

ISSUE, PULL = issue(), pull()
OPENED, EDITED, REOPENED = (
    event(kind, ISSUE) for kind in (events.IssueOpened, events.IssueEdited, events.IssueReopened)
)
PUSHED, PR_OPENED, READIED, RETITLED = (
    event(kind, PULL)
    for kind in (
        events.PullRequestSynchronized,
        events.PullRequestOpened,
        events.PullRequestReadied,
        events.PullRequestEdited,
    )
)
RERUN = events.CheckRerequested(repository=REPOSITORY, sender=ANN, head_sha="a" * 40, numbers=(8,))


@pytest.mark.parametrize(
    ("task", "newer", "older", "expected"),
    [
        ("triage", EDITED, OPENED, True),
        ("triage", REOPENED, EDITED, True),
        ("triage", comment_created("It is 4.2"), comment_created("hm"), True),
        # A comment alone is no reason to judge an issue that was not judged before.
        ("triage", comment_created("It is 4.2"), OPENED, False),
        # An edit that puts back what was judged before is passed over; the answer would be lost with it.
        ("triage", EDITED, comment_created("It is 4.2"), False),
        ("triage", comment_created("thanks", BOB), comment_created("It is 4.2"), False),
        ("triage", comment_created("/bouncer recheck"), comment_created("It is 4.2"), False),
        ("triage", comment_created("It is 4.2"), comment_created("/bouncer recheck"), False),
        ("triage", event(events.IssueEdited, ISSUE, HELPER), OPENED, False),
        ("triage", event(events.IssueEdited, ISSUE, HELPER), event(events.IssueOpened, ISSUE, HELPER), True),
        ("triage", event(events.IssueClosed, ISSUE), OPENED, False),
        ("review", PUSHED, PR_OPENED, True),
        ("review", PUSHED, PUSHED, True),
        ("review", READIED, PUSHED, True),
        ("review", RETITLED, PUSHED, False),
        ("review", event(events.PullRequestSynchronized, PULL, HELPER), PUSHED, False),
        ("review", PUSHED, RERUN, False),
        ("verify", RETITLED, PUSHED, True),
        ("verify", PUSHED, RETITLED, True),
        ("commands", comment_created("/bouncer help"), comment_created("/bouncer accept"), False),
        ("feedback", event(events.IssueClosed, ISSUE), event(events.IssueClosed, ISSUE), False),
        ("reproduce", EDITED, OPENED, False),
        ("config", OPENED, OPENED, False),
        ("config", PUSHED, PR_OPENED, True),
    ],
)
def test_what_takes_whose_place(task, newer, older, expected):
    assert supersedes(task, newer, older) is expected
