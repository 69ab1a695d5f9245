"""A stored reproducing test speaks about a patch: really executed, in the sandbox."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bot import events
from bot.actions import Decision
from bot.domain import Actor, Comment, Issue, PullRequest, Subject
from bot.forge.protocol import IssueLink, PullDiff
from bot.forge.replay import Snapshot
from bot.reproduce.evidence import StoredTest
from bot.router import decide
from bot.sandbox.bubblewrap import Bubblewrap
from bot.services import Services
from bot.testing.models import ScriptedModel
from tests.bot.handlers.conftest import REPOSITORY, Remembered

pytestmark = pytest.mark.debian("bubblewrap")

ANN = Actor(id=11, login="ann")
MAINTAINER = Actor(id=13, login="mia")
OURS = Actor(id=1, login="bouncer[bot]", is_bot=True)
BASE, HEAD = "b" * 40, "a" * 40
GOOD: dict[str, Any] = {"explanation": "Reads well.", "p_bounce": 4, "label": "CORRECT_AND_PRECISE"}
BAD: dict[str, Any] = {"explanation": "Looks wrong.", "p_bounce": 90, "label": "INCORRECT"}
TEST = "from rocket import half\n\n\ndef test_issue_12():\n    assert half(3) == 1.5\n"
BROKEN, FIXED = b"def half(x):\n    return x // 2\n", b"def half(x):\n    return x / 2\n"
Build = Callable[..., Services]


def pull(**values: Any) -> PullRequest:
    given = {
        "number": 20,
        "title": "Halve",
        "author": ANN,
        "head_sha": HEAD,
        "base_sha": BASE,
        "head_repository": "acme/rocket",
        "base_repository": "acme/rocket",
    }
    return PullRequest(**{**given, **values})


def snapshot(head: bytes, pull_request: PullRequest | None = None) -> Snapshot:
    return Snapshot(
        repository=REPOSITORY.full_name,
        identity=OURS,
        issues={12: Issue(number=12, title="half(3) is 1", body="It should be 1.5.", author=ANN)},
        pull_requests={20: pull_request or pull()},
        diffs={20: PullDiff(text="--- a/rocket.py\n+++ b/rocket.py\n@@ -2 +2 @@\n-    return 1\n+    return 2\n")},
        linked_issues={20: (IssueLink(repository="acme/rocket", number=12),)},
        permissions={"mia": "write"},
        checkouts={BASE: {"rocket.py": BROKEN}, HEAD: {"rocket.py": head}},
    )


@pytest.fixture
def reproduced(history: Remembered) -> Remembered:
    """The issue has a test that reproduced it."""
    test = StoredTest(
        path="test_issue.py",
        name="test_issue_12",
        content=TEST,
        code=TEST,
        new_file=True,
        command=(sys.executable, "-m", "pytest", "{tests}"),
        branch="main",
        sha=BASE,
    )
    history.past.append(
        Decision(
            kind="reproduce",
            subject=Subject(repository="acme/rocket", number=12, revision="text:1"),
            verdict="reproduced",
            evidence={"test": test.model_dump(mode="json")},
        )
    )
    return history


def verify(services: Services, event: events.Event | None = None) -> Decision:
    opened = events.PullRequestOpened(sender=ANN, repository=REPOSITORY, pull_request=pull())
    (decision,) = decide(event or opened, replace(services, sandbox=Bubblewrap()), only="verify")
    return decision


EXECUTE = "verify: {execute: true}"


@pytest.mark.usefixtures("reproduced")
def test_fails_on_base_and_passes_on_head_is_evidence_for(services: Build) -> None:
    decision = verify(services(ScriptedModel([BAD]), snapshot(FIXED), EXECUTE))
    check = decision.actions[0]
    assert check.title == "Solves #12: yes, evidence: its reproducing test fails on base and passes here"  # type: ignore[union-attr]
    assert check.conclusion == "success"  # type: ignore[union-attr]
    assert "Test `test_issue.py::test_issue_12`: failed on base, passed on head." in check.summary  # type: ignore[union-attr]
    assert "assert 1 == 1.5" in check.summary  # type: ignore[union-attr]


@pytest.mark.usefixtures("reproduced")
def test_fails_on_both_is_evidence_against(services: Build) -> None:
    decision = verify(services(ScriptedModel([GOOD]), snapshot(BROKEN), EXECUTE))
    check = decision.actions[0]
    assert check.title == "Does not solve #12: its reproducing test still fails here"  # type: ignore[union-attr]
    assert (check.conclusion, decision.evidence["bounced"]) == ("neutral", True)  # type: ignore[union-attr]


@pytest.mark.usefixtures("reproduced")
def test_nothing_is_executed_unless_the_repository_says_so(services: Build) -> None:
    assert verify(services(ScriptedModel([GOOD]), snapshot(BROKEN))).evidence["runs"] == []


def test_without_a_stored_test_reading_decides(services: Build) -> None:
    decision = verify(services(ScriptedModel([GOOD]), snapshot(BROKEN), EXECUTE))
    assert decision.evidence["runs"] == []
    assert not decision.evidence["bounced"]


@pytest.mark.parametrize(
    ("said", "seen", "executed"),
    [("verify --run", True, True), ("verify --run", False, False), ("verify", True, False)],
)
def test_a_fork_s_code_needs_a_maintainer_s_word_for_a_commit_they_saw(
    services: Build, reproduced: Remembered, said: str, seen: bool, executed: bool
) -> None:
    fork = pull(head_repository="ann/rocket")
    if seen:
        subject = Subject(repository="acme/rocket", number=20, revision=fork.revision)
        reproduced.past.append(Decision(kind="verify", subject=subject, verdict="CORRECT_AND_PRECISE"))
    issue = Issue(number=20, title="Halve", author=ANN, is_pull_request=True)
    event = events.CommentCreated(
        sender=MAINTAINER,
        repository=REPOSITORY,
        issue=issue,
        comment=Comment(id=1, body=f"/bouncer {said}", author=MAINTAINER),
    )
    decision = verify(services(ScriptedModel([GOOD]), snapshot(FIXED, fork), EXECUTE), event)
    assert bool(decision.evidence["runs"]) is executed


@pytest.mark.usefixtures("reproduced")
def test_a_fork_s_code_is_never_executed_by_itself(services: Build) -> None:
    event = events.PullRequestOpened(
        sender=ANN, repository=REPOSITORY, pull_request=pull(head_repository="ann/rocket")
    )
    decision = verify(services(ScriptedModel([GOOD]), snapshot(FIXED), EXECUTE), event)
    assert decision.evidence["runs"] == []
