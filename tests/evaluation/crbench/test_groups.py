"""Findings that were proven, seen by several looks or dropped are counted apart."""

from __future__ import annotations

from typing import Any

from evaluation.crbench.filters import bugs_hit
from evaluation.crbench.judge import Judgement, ReviewComment, comments_in
from evaluation.crbench.sections import groups
from evaluation.run.folder import Record
from tests.builders import finding


def posted(**values: Any) -> dict[str, Any]:
    options = {key: value for key, value in finding().items() if key not in ("quote", "symbol")}
    return {**options, "code": ["return data.value"], "fingerprint": "f", **values}


def test_precision_is_told_apart_for_what_is_proven_agreed_on_and_dropped() -> None:
    proven = {"outcome": "proven", "command": "pytest t.py::test_a"}
    evidence = {
        "posted": [
            posted(comment="a", looks=3, models=["a:b", "c:d"], proof=proven),
            posted(comment="b", proof={"outcome": "not proven"}),
        ],
        "suppressed": [
            {"finding": posted(comment="c"), "reason": "doubted"},
            {"finding": posted(comment="d"), "reason": "repair_changes_nothing"},
        ],
    }
    usage: dict[str, Any] = {}
    record = Record(task_id="t", decision={"evidence": evidence}, raw_reply=None, usage=usage, seconds=0.0)
    replies = list(comments_in([record], "reported"))
    labels = ("BUG_HIT", "NOISE", "BUG_HIT", "NOISE")
    judgements = [(comment, judgement(comment, label)) for comment, label in zip(replies, labels, strict=True)]
    assert {
        name: [judgement_of.label for judgement_of in of_name] for name, of_name in groups(judgements).items()
    } == {
        "dropped after the second question": ["BUG_HIT"],
        "dropped: its repair changes nothing": ["NOISE"],
        "not proven": ["NOISE"],
        "not proven, but tried": ["NOISE"],
        "proven by a test": ["BUG_HIT"],
        "seen by 2 looks or more": ["BUG_HIT"],
        "seen by 2 models or more": ["BUG_HIT"],
        "seen by 3 looks or more": ["BUG_HIT"],
    }
    assert [comment.text for comment in comments_in([record], "posted")] == ["a", "b"]


def judgement(comment: ReviewComment, label: Any) -> Judgement:
    return Judgement(task_id=comment.task_id, key=comment.key, label=label, votes=())


def test_a_bug_that_several_comments_hit_is_found_once() -> None:
    hits = [("t", 0), ("t", 0), ("t", 1), ("u", 0), ("u", None)]
    judgements = [Judgement(task_id=task, key="k", label="BUG_HIT", bug=bug, votes=()) for task, bug in hits]

    assert bugs_hit(judgements) == 3
