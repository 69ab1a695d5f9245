"""``bouncer-eval build crbench --offline --until mapping``, as its reader sees it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from evaluation.run.lines import LineFile
from tests.evaluation.crbench.repositories import Scratch
from tests.evaluation.running import Ran, command, read, write

LINES = tuple(f"line {number}" for number in range(30))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three fixes of one repository: one kept, one that only adds, one of two pull requests."""
    scratch = Scratch(tmp_path / "repos" / "ada+engine")
    scratch.commit("First (#1)", "a.py", *LINES)
    scratch.commit("Second (#2)", "a.py", *LINES[:20], "line twenty", *LINES[21:])
    scratch.commit("Third (#3)", "b.py", *LINES)
    base = scratch.head()
    fixes = {
        "kept": scratch.fix("a.py", "line zero", *LINES[1:20], "line twenty", *LINES[21:]),
        "adds": scratch.fix("b.py", *LINES, "line thirty"),
        "two": scratch.fix("a.py", "line zero", *LINES[1:20], "line 20", *LINES[21:]),
    }
    rows = [
        {"instance_id": name, "repo": "ada/engine", "base_commit": base, "patch": patch, "version": "1.0"}
        for name, patch in fixes.items()
    ]
    write("fixes.jsonl.gz", rows)
    return tmp_path


def build(folder: Path, *more: str, code: int = 0) -> Ran:
    paths = ("--instances", folder / "fixes.jsonl.gz", "--repos", folder / "repos", "--out", folder / "out.jsonl")
    return command("build", "crbench", *paths, "--offline", "--until", "mapping", *more, code=code)


def lines(folder: Path) -> list[dict[str, Any]]:
    return read(folder / "out.jsonl")


def test_every_instance_gets_a_line_in_order_with_its_reason(project: Path) -> None:
    result = build(project)

    results = [{key: row[key] for key in ("instance_id", "prs", "kept", "reason")} for row in lines(project)]
    assert results == [
        {"instance_id": "kept", "prs": [1], "kept": True, "reason": None},
        {"instance_id": "adds", "prs": [], "kept": False, "reason": "nothing to blame: the fix only adds lines"},
        {"instance_id": "two", "prs": [1, 2], "kept": False, "reason": "2 pull requests: #1, #2"},
    ]
    assert all(len(commit) == 40 for row in lines(project) for commit in row["blame_commits"])
    assert result.out == ""
    assert result.err.splitlines() == ["     1  kept", "     1  nothing to blame", "     1  several pull requests"]


def test_a_build_that_was_stopped_goes_on_where_it_stopped(project: Path) -> None:
    build(project)
    whole = (project / "out.jsonl").read_bytes()
    first_line, rest = whole.split(b"\n", 1)
    (project / "out.jsonl").write_bytes(first_line + b"\n" + rest[:25])

    build(project)

    assert (project / "out.jsonl").read_bytes() == whole


def test_a_file_built_with_other_options_can_only_be_overwritten(project: Path) -> None:
    build(project)

    refused = build(project, "--unmapped", "discard", code=2)
    build(project, "--unmapped", "discard", "--overwrite")

    assert "was built from other instances or with other options" in refused.err
    assert len(lines(project)) == 3


def test_an_output_that_cannot_be_written_is_named(project: Path) -> None:
    out = project / "fixes.jsonl.gz" / "out.jsonl"
    assert f"{out}: cannot be written: " in build(project, "--out", str(out), code=2).err


def test_a_folder_without_a_needed_clone_is_refused_by_name(project: Path) -> None:
    (project / "repos" / "ada+engine").rename(project / "repos" / "something-else")

    refused = build(project, code=2).err

    assert "no clone of ada/engine: clones are folders named owner+name or owner/name" in refused


def test_git_starts_once_a_file_and_not_once_a_line(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = project / "git.log"
    shim = project / "bin" / "git"
    shim.parent.mkdir()
    real = next(Path(folder) / "git" for folder in os.get_exec_path() if (Path(folder) / "git").exists())
    shim.write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {real} "$@"\n')
    shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")

    build(project)

    started = log.read_text().split()
    assert started.count("blame") == 2, "two fixes take lines away, each from one file"
    assert started.count("log") == 1, "the history is read once"
    assert started.count("cat-file") == 1, "one process for all files"


def test_a_clone_without_any_base_commit_discards_the_rows(project: Path) -> None:
    row = {"instance_id": "ada__engine-1", "repo": "ada/engine", "base_commit": "a" * 40, "patch": "x"}
    write(project / "fixes.jsonl.gz", [row])
    build(project)
    (line,) = lines(project)
    assert line["reason"] == f"base commit {'a' * 40} is not in the clone"


@pytest.mark.parametrize("out", ["/dev/full", "repos"])
def test_an_output_that_is_no_file_is_refused_unread(project: Path, out: str) -> None:
    assert f"{out}: not a regular file" in build(project, "--out", str(project / out), code=2).err


def test_a_second_build_into_the_same_file_is_refused(project: Path) -> None:
    out = project / "mapping.jsonl"
    with LineFile(out, {}):
        assert f"{out}: another process is writing to it" in build(project, "--out", str(out), code=2).err
    build(project, "--out", str(out))
    assert len(read(out)) == 3
