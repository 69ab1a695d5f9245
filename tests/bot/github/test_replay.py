"""A replay answers only what was recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.core.errors import NotFound, NotRecorded
from bot.github.offline import ReplayForge, Snapshot
from bot.github.protocol import Forge

#: A call of every method.
QUESTIONS: dict[str, Callable[[Forge], object]] = {
    "about": lambda forge: forge.about(),
    "identity": lambda forge: forge.identity(),
    "issue": lambda forge: forge.issue(1),
    "comments": lambda forge: forge.comments(1),
    "pull_request": lambda forge: forge.pull_request(1),
    "diff": lambda forge: forge.diff(1),
    "linked_issues": lambda forge: forge.linked_issues(1),
    "pull_facts": lambda forge: forge.pull_facts(1),
    "pulls_for_issue": lambda forge: forge.pulls_for_issue(1),
    "review_comments": lambda forge: forge.review_comments(1),
    "reviews": lambda forge: forge.reviews(1),
    "resolved_threads": lambda forge: forge.resolved_threads(1),
    "check_runs": lambda forge: forge.check_runs("a", "b"),
    "pulls_for_commit": lambda forge: forge.pulls_for_commit("a"),
    "permission": lambda forge: forge.permission("alice"),
    "reactions": lambda forge: forge.reactions(1),
    "head": lambda forge: forge.head("main"),
    "commits": lambda forge: forge.commits("a", 9),
    "tags": lambda forge: forge.tags(),
    "file": lambda forge: forge.file("README.md", "main"),
    "checkout": lambda forge: forge.checkout("main", Path("nowhere")),
    "sources": lambda forge: forge.sources("main"),
}


def test_every_method_of_the_protocol_is_covered() -> None:
    methods = {name for name, _ in inspect.getmembers(Forge, inspect.isfunction) if not name.startswith("_")}
    assert set(QUESTIONS) == methods


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_call_that_was_not_recorded_raises_an_error(question: str) -> None:
    with pytest.raises(NotRecorded, match="the snapshot of octo/demo does not hold"):
        QUESTIONS[question](ReplayForge(Snapshot(repository="octo/demo")))


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
