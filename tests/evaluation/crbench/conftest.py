"""A repository with two bugs that came in with pull requests, the fixes, and what recorded models say about
them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from evaluation.crbench.judge import ReviewComment, comments_in
from evaluation.run.folder import RunFolder
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import command, write

SAFE = ("def first(items):", "    return items[0] if items else None")
WRONG = ("def first(items):", "    return items[0]")
TOTAL = ("def total(items):", "    return sum(items)")
TOTAL_WRONG = ("def total(items):", "    return sum(items[1:])")


def recording(path: Path, model: str, replies: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """A file of recorded replies by subject; returns the model id that answers from it."""
    write(path, ({"model": model, "subject": subject, "text": json.dumps(reply)} for subject, reply in replies))
    return f"recorded:{path}#{model}"


def comments_of(run: Path) -> list[ReviewComment]:
    """The comments of a run, those that were held back too."""
    return list(comments_in(RunFolder.read(run).records(), "reported"))


def judge_of(
    file: Path, comments: Iterable[ReviewComment], label: Callable[[ReviewComment], str | None], **more: Any
) -> str:
    """A recorded judge that gives each comment a class; None = it has nothing to say."""
    replies = [
        (f"{comment.task_id}/{comment.key}", {"reason": "because", "classification": name, **more})
        for comment in comments
        if (name := label(comment)) is not None
    ]
    return recording(file, file.stem, replies)


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``project`` is a copy of."""
    folder = tmp_path_factory.mktemp("project")
    scratch = Scratch(folder / "repos" / "ada+engine")
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
    write(folder / "fixes.jsonl", rows)
    scratch.commit("Fix everything (#120)", "engine.py", "def first(items):", "    return next(iter(items), None)")
    _record_builder(folder / "builder.jsonl")
    return folder


def _record_builder(file: Path) -> None:
    """Record the answers to the three construction steps."""
    tags = {"reasoning": "it is an index", "category": "structural", "impact": "reliability", "severity": "high"}
    data = {
        "reasoning": "it is a slice",
        "category": "Data Bugs",
        "impact": "Functional Suitability",
        "severity": "medium",
    }
    yes = {"reasoning": "an earlier change took the check away", "category": "PREVENTABLE", "confidence": 0.9}
    recording(
        file,
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


@pytest.fixture(scope="session")
def original_tasks(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that ``tasks`` is a copy of."""
    out = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    paths = ("--instances", original / "fixes.jsonl", "--repos", original / "repos", "--out", out)
    command("build crbench --offline", *paths, "--model", f"recorded:{original}/builder.jsonl#builder")
    return out


@pytest.fixture
def project(original: Path, tmp_path: Path) -> Path:
    """``repos/ada+engine`` and ``fixes.jsonl``: a merged bug, a squashed bug, one that no review could
    prevent."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def builder(project: Path) -> str:
    """A recorded model that knows the answers to the three construction steps."""
    return f"recorded:{project}/builder.jsonl#builder"


@pytest.fixture
def tasks(project: Path, original_tasks: Path) -> Path:
    """The two tasks of the project, built."""
    return Path(shutil.copy(original_tasks, project))


@pytest.fixture(scope="session")
def golden_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clone that ``scratch`` is a copy of."""
    scratch = Scratch(tmp_path_factory.mktemp("golden") / "ada+engine")
    scratch.commit("Begin", "a.py", "x = 1")
    scratch.branch("five")
    scratch.commit("Count from two\n\nBecause.", "a.py", "x = 2")
    scratch.git("update-ref", "refs/pull/5/head", "HEAD")
    scratch.go("main")
    scratch.merge_pull(5, "five")
    scratch.branch("six")
    scratch.commit("Add b", "b.py", "y = 1")
    scratch.git("update-ref", "refs/pull/6/head", "HEAD")
    scratch.go("main")
    scratch.commit("Meanwhile", "c.py", "z = 1")
    scratch.git("merge", "--squash", "-q", "six")
    scratch.commit("Add b (#6)")
    return scratch.folder


@pytest.fixture
def scratch(golden_repository: Path, tmp_path: Path) -> Scratch:
    """Pull request 5 was merged, 6 was squashed; both heads stand in the clone's pull refs."""
    return Scratch(Path(shutil.copytree(golden_repository, tmp_path / "repos" / "ada+engine")))
