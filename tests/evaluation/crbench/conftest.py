"""A repository with two bugs that came in with pull requests, the fixes, and what recorded models say about
them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.crbench.repositories import Scratch

SAFE = ("def first(items):", "    return items[0] if items else None")
WRONG = ("def first(items):", "    return items[0]")
TOTAL = ("def total(items):", "    return sum(items)")
TOTAL_WRONG = ("def total(items):", "    return sum(items[1:])")


def recording(path: Path, model: str, replies: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """A file of recorded replies by subject; returns the model id that answers from it."""
    lines = [
        json.dumps({"model": model, "subject": subject, "text": json.dumps(reply)}) for subject, reply in replies
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return f"recorded:{path}#{model}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """``repos/ada+engine`` and ``fixes.jsonl``: a merged bug, a squashed bug, one that no review could
    prevent."""
    scratch = Scratch(tmp_path / "repos" / "ada+engine")
    scratch.commit("Begin", "engine.py", *SAFE)
    scratch.branch("simplify")
    scratch.commit("Simplify", "engine.py", *WRONG)
    scratch.go("main")
    scratch.merge_pull(7, "simplify")
    scratch.commit("Skip the header (#8)\n\nThe first item is a header.", "total.py", *TOTAL_WRONG)
    scratch.commit("Say hello (#9)", "hello.py", "print('hallo')")
    base = scratch.head()
    fixes = {
        "ada__engine-101": (
            scratch.fix("engine.py", "def first(items):", "    return next(iter(items), None)"),
            "empty",
        ),
        "ada__engine-102": (scratch.fix("total.py", *TOTAL), "The total is too small"),
        "ada__engine-103": (scratch.fix("hello.py", "print('hello')"), "Speak English"),
    }
    rows = [
        {"instance_id": name, "repo": "ada/engine", "base_commit": base, "patch": patch, "problem_statement": text}
        for name, (patch, text) in fixes.items()
    ]
    (tmp_path / "fixes.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    scratch.commit("Fix everything (#120)", "engine.py", "def first(items):", "    return next(iter(items), None)")
    return tmp_path


@pytest.fixture
def builder(project: Path) -> str:
    """A recorded model that knows the answers to the three construction steps."""
    tags = {"reasoning": "it is an index", "category": "structural", "impact": "reliability", "severity": "high"}
    data = {
        "reasoning": "it is a slice",
        "category": "Data Bugs",
        "impact": "Functional Suitability",
        "severity": "medium",
    }
    yes = {"reasoning": "an earlier change took the check away", "category": "PREVENTABLE", "confidence": 0.9}
    return recording(
        project / "builder.jsonl",
        "builder",
        [
            ("ada__engine-101/preventable", yes),
            ("ada__engine-101/paraphrase", {"description": "`items[0]` raises IndexError for an empty list."}),
            ("ada__engine-101/tags", tags),
            ("ada__engine-102/preventable", yes),
            ("ada__engine-102/paraphrase", {"description": "`sum(items[1:])` drops the first item."}),
            ("ada__engine-102/tags", data),
            (
                "ada__engine-103/preventable",
                {"reasoning": "a matter of taste", "category": "UNPREVENTABLE", "confidence": 0.8},
            ),
        ],
    )
