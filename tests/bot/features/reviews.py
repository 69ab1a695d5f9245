"""A pull request to review, and what a model says about it."""

from __future__ import annotations

from typing import Any

from bot.github.offline import Snapshot
from bot.github.protocol import PullDiff
from tests import builders

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
