"""A replay answers only what was recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.core.errors import NotFound, NotRecorded
from bot.github.offline import ReplayForge, Snapshot
from bot.github.protocol import Forge

EMPTY = ReplayForge(Snapshot(repository="octo/demo"))

QUESTIONS: dict[str, Callable[[Path], object]] = {
    "about": lambda folder: EMPTY.about(),
    "identity": lambda folder: EMPTY.identity(),
    "issue": lambda folder: EMPTY.issue(1),
    "comments": lambda folder: EMPTY.comments(1),
    "pull_request": lambda folder: EMPTY.pull_request(1),
    "diff": lambda folder: EMPTY.diff(1),
    "linked_issues": lambda folder: EMPTY.linked_issues(1),
    "pull_facts": lambda folder: EMPTY.pull_facts(1),
    "pulls_for_issue": lambda folder: EMPTY.pulls_for_issue(1),
    "review_comments": lambda folder: EMPTY.review_comments(1),
    "reviews": lambda folder: EMPTY.reviews(1),
    "resolved_threads": lambda folder: EMPTY.resolved_threads(1),
    "check_runs": lambda folder: EMPTY.check_runs("a", "b"),
    "pulls_for_commit": lambda folder: EMPTY.pulls_for_commit("a"),
    "permission": lambda folder: EMPTY.permission("alice"),
    "reactions": lambda folder: EMPTY.reactions(1),
    "head": lambda folder: EMPTY.head("main"),
    "commits": lambda folder: EMPTY.commits("a", 9),
    "tags": lambda folder: EMPTY.tags(),
    "file": lambda folder: EMPTY.file("README.md", "main"),
    "checkout": lambda folder: EMPTY.checkout("main", folder),
    "sources": lambda folder: EMPTY.sources("main"),
}


def test_every_method_of_the_protocol_is_covered() -> None:
    methods = {name for name, _ in inspect.getmembers(Forge, inspect.isfunction) if not name.startswith("_")}
    assert set(QUESTIONS) == methods


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_call_that_was_not_recorded_raises_an_error(question: str, tmp_path: Path) -> None:
    with pytest.raises(NotRecorded, match="the snapshot of octo/demo does not hold"):
        QUESTIONS[question](tmp_path)


def test_a_recorded_not_found_is_raised_again() -> None:
    forge = ReplayForge(Snapshot(repository="octo/demo", missing=("files main:.github/bouncer.yml", "issues 7")))
    with pytest.raises(NotFound):
        forge.file(".github/bouncer.yml", "main")
    with pytest.raises(NotFound):
        forge.issue(7)
    with pytest.raises(NotRecorded):
        forge.issue(8)


def test_a_recorded_empty_answer_is_an_answer() -> None:
    assert ReplayForge(Snapshot(repository="octo/demo", comments={7: ()})).comments(7) == ()


def test_recorded_files_are_a_checkout_and_sources(tmp_path: Path) -> None:
    forge = ReplayForge(Snapshot(repository="octo/demo", checkouts={"main": {"src/a.py": b"x = 1\n"}}))
    forge.checkout("main", tmp_path)
    assert (tmp_path / "src" / "a.py").read_bytes() == b"x = 1\n"
    tree = forge.sources("main")
    assert (tree.paths(), tree.read("src/a.py"), tree.read("../a.py")) == (["src/a.py"], "x = 1\n", None)


def test_a_snapshot_cannot_write_outside_of_a_checkout(tmp_path: Path) -> None:
    forge = ReplayForge(Snapshot(repository="octo/demo", checkouts={"main": {"../escaped": b"x"}}))
    folder = tmp_path / "checkout"
    folder.mkdir()
    with pytest.raises(NotRecorded, match="outside"):
        forge.checkout("main", folder)
    assert not (tmp_path / "escaped").exists()
