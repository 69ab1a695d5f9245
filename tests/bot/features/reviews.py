"""A pull request to review, and what a model says about it."""

from __future__ import annotations

from typing import Any

from bot.core.actions import Action, Decision, InlineComment, SetCheck, SubmitReview
from bot.core.events import Event
from bot.features.services import Services
from bot.github.offline import Snapshot
from bot.github.protocol import PullDiff
from tests import builders
from tests.bot.features.conftest import decision_on

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


def reply(*findings: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "It reads a file.", "findings": list(findings)}


def snapshot(diff: str = DIFF, omitted: tuple[str, ...] = (), recorded: Any = None, **values: Any) -> Snapshot:
    """The pull request (``values`` are its fields) and its diff; ``recorded`` are further answers."""
    fields = {
        "pull_requests": {20: builders.pull(**values)},
        "diffs": {20: PullDiff(text=diff, omitted=omitted)},
        "comments": {20: ()},
        "review_comments": {20: ()},
    }
    return builders.snapshot(**{**fields, **(recorded or {})})


def review(event: Event, services: Services) -> Any:
    return decision_on(event, services, "review")


def inline(decision: Decision) -> list[InlineComment]:
    """Return the comments of a review on lines."""
    reviews = [action for action in decision.actions if isinstance(action, SubmitReview)]
    return [comment for review in reviews for comment in review.comments]


def comments(decision: Decision) -> tuple[Action, ...]:
    """Return the actions of a review without its check run: none after a clean round."""
    return tuple(action for action in decision.actions if not isinstance(action, SetCheck))


def check(decision: Decision) -> SetCheck:
    """The check run of a review, which is its last action."""
    assert isinstance(decision.actions[-1], SetCheck)
    return decision.actions[-1]
