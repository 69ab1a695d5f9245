"""A pull request to review, and what a model says about it."""

from __future__ import annotations

from typing import Any

from bot.core import events
from bot.core.subjects import Actor, PullRequest
from bot.github.offline import Snapshot
from bot.github.protocol import PullDiff
from tests.bot.features.conftest import REPOSITORY

ANN = Actor(id=11, login="ann")
MIA = Actor(id=13, login="mia")
BOUNCER = Actor(id=1, login="bouncer[bot]", is_bot=True)

DIFF = """diff --git a/src/app.py b/src/app.py
index 1..2 100644
--- a/src/app.py
+++ b/src/app.py
@@ -10,3 +10,4 @@ def load(path):
     with open(path) as file:
-        return parse(file)
+        data = parse(file)
+        return data.value
     raise Missing(path)
"""

CLEAN: dict[str, Any] = {"reasoning": "It reads a file.", "findings": []}


def finding(**values: Any) -> dict[str, Any]:
    given = {
        "path": "src/app.py",
        "quote": "return data.value",
        "line": 12,
        "symbol": "data",
        "comment": "Fails for an empty file. `parse` returns None then.",
        "category": "data",
        "impact": "reliability",
        "severity": "high",
        "suggestion": None,
    }
    return {**given, **values}


def reply(*findings: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "It reads a file.", "findings": list(findings)}


def pull(**values: Any) -> PullRequest:
    given = {
        "number": 20,
        "title": "Read files",
        "author": ANN,
        "head_sha": "a" * 40,
        "head_repository": "acme/rocket",
        "base_repository": "acme/rocket",
    }
    return PullRequest(**{**given, **values})


def snapshot(diff: str = DIFF, omitted: tuple[str, ...] = (), recorded: Any = None, **values: Any) -> Snapshot:
    """The pull request (``values`` are its fields) and its diff; ``recorded`` are further answers."""
    given = {
        "repository": REPOSITORY.full_name,
        "identity": BOUNCER,
        "pull_requests": {20: pull(**values)},
        "diffs": {20: PullDiff(text=diff, omitted=omitted)},
        "permissions": {"ann": "read", "mia": "write"},
        "comments": {20: ()},
        "review_comments": {20: ()},
    }
    return Snapshot(**{**given, **(recorded or {})})


def opened(**values: Any) -> events.PullRequestOpened:
    return events.PullRequestOpened(sender=ANN, repository=REPOSITORY, pull_request=pull(**values))


def pushed(**values: Any) -> events.PullRequestSynchronized:
    return events.PullRequestSynchronized(sender=ANN, repository=REPOSITORY, pull_request=pull(**values))
