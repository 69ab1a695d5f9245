"""A diff built from the list of files is the diff of git, and lists the omitted files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.code.change.diff import parse
from bot.github.payloads import assemble, quoted
from bot.simgithub import diffs
from tests.bot.code.change.diffs import git

PATCH = "@@ -1 +1 @@\n-a\n+b"


def test_every_type_of_change_has_the_headers_of_git() -> None:
    diff = assemble(
        [
            {"filename": "new.py", "status": "added", "patch": "@@ -0,0 +1 @@\n+b", "changes": 1},
            {"filename": "old.py", "status": "removed", "patch": "@@ -1 +0,0 @@\n-a", "changes": 1},
            {"filename": "same.py", "status": "modified", "patch": PATCH, "changes": 2},
            {"filename": "to.py", "previous_filename": "from.py", "status": "renamed", "changes": 0},
            {
                "filename": "moved.py",
                "previous_filename": "before.py",
                "status": "renamed",
                "patch": PATCH,
                "changes": 2,
            },
        ],
        changed=5,
    )
    assert (diff.omitted, diff.unlisted) == ((), 0)
    patch = parse(diff.text)
    assert [(file.path, file.change) for file in patch.files] == [
        ("new.py", "added"),
        ("old.py", "deleted"),
        ("same.py", "modified"),
        ("to.py", "renamed"),
        ("moved.py", "renamed"),
    ]
    assert patch.flaws == ()


def test_binary_large_and_unlisted_files_are_reported() -> None:
    files = [
        {"filename": "same.py", "status": "modified", "patch": PATCH, "changes": 2},
        {"filename": "logo.png", "status": "added", "changes": 0},
        {"filename": "lock.json", "status": "modified", "changes": 90_000},
    ]
    diff = assemble(files, changed=3005)
    assert (diff.omitted, diff.unlisted) == (("logo.png", "lock.json"), 3002)
    assert diff.text.count("diff --git") == 1


ODD = ["plain.py", "with space.py", "é.py", 'a"b.py', "back\\slash", "tab\there", "日本語/x.py", "new\nline"]


@pytest.mark.debian("git")
def test_odd_paths_are_written_as_git_writes_them(tmp_path: Path) -> None:
    for path in ODD:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git_diff = git(tmp_path, "-c", "core.quotePath=true", "diff", "--cached")
    headers = {line for line in git_diff.splitlines() if line.startswith("diff --git ")}
    assert headers == {f"diff --git {quoted('a/' + path)} {quoted('b/' + path)}" for path in ODD}


PATHS = st.from_regex(r"[^\x00/.][^\x00/]{0,8}(/[^\x00/.][^\x00/]{0,8})?", fullmatch=True)


@given(path=PATHS, old=st.text("ab\n", max_size=30), new=st.text("ab\n", max_size=30))
def test_the_simulated_diff_parses_to_the_original_change(path: str, old: str, new: str) -> None:
    if old == new:
        return
    changes = diffs.changes({path: old.encode()}, {path: new.encode()})
    patch = parse(diffs.unified(changes))
    assert patch.flaws == ()
    [file] = patch.files
    assert file.path == path
    assert file.added == changes[0].additions
    assert file.removed == changes[0].deletions
    ours = diffs.commentable(changes[0].patch or "")
    assert {line for side, line in ours if side == "RIGHT"} == set(file.commentable("RIGHT"))
    assert {line for side, line in ours if side == "LEFT"} == set(file.commentable("LEFT"))
