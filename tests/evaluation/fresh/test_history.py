"""A project's news fragments say what a change is, and which issue it closes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evaluation.crbench.own import Change
from evaluation.fresh.bench import variants
from evaluation.fresh.history import Export, _closed, _mends, _statement
from evaluation.git.repository import GitRepository
from tests.evaluation.crbench.repositories import Scratch

CHANGE = Change("c" * 40, "p" * 40, is_merge=False, message="Fix a crash", at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("news", "mends"),
    [
        (["changelog/1.feature.rst"], False),
        (["changelog/1.feature.rst", "changelog/2.doc.rst"], False),
        (["changelog/1.feature.rst", "changelog/2.bugfix.rst"], True),
        (["changelog/1.feature.rst", "changelog/2.trivial.rst"], True),
        (["CHANGELOG.md"], True),
    ],
)
def test_a_change_mends_nothing_if_all_its_fragments_say_so(news: list[str], mends: bool) -> None:
    assert _mends(CHANGE, news, [], []) is mends


def test_a_fragment_names_the_issue_that_a_change_closes() -> None:
    nothing: Any = None
    news = ["changelog/1234.bugfix.rst", "changelog/1234.doc.rst", "changelog/README.rst"]
    assert _closed(nothing, CHANGE, None, news, "ada/lists", "https://github.com", Export()) == [1234]


def test_the_entry_of_a_changelog_is_what_a_fix_adds_to_it(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "ada+lists")
    scratch.commit("Begin", "CHANGELOG.md", "Changes", "", "- Old.")
    scratch.commit("Fix a crash", "CHANGELOG.md", "Changes", "", "- `first([])` no longer fails.", "- Old.")
    parent, commit = scratch.git("rev-parse", "HEAD~1"), scratch.git("rev-parse", "HEAD")
    change = replace(CHANGE, parent=parent, commit=commit)
    with GitRepository(scratch.folder) as repository:
        statement = _statement(repository, change, None, ["CHANGELOG.md"], [], Export())
    assert statement == ("- `first([])` no longer fails.", "changelog entry")


def test_a_variant_that_is_the_fix_itself_is_none() -> None:
    text = "".join(f"{number}\n" for number in range(20))
    patch = "--- a/m.txt\n+++ b/m.txt\n@@ -1,2 +1,2 @@\n-0\n+zero\n 1\n@@ -11,2 +11,2 @@\n 10\n 11\n"
    unchanged = [variant.texts["m.txt"] == text for variant in variants(patch, lambda path: text)]
    assert unchanged == [True], "without its one change; without the other hunk it is the fix"
