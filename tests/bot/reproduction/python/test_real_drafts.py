"""Real tests by people and models for reported bugs can be added to the surrounding code."""

from __future__ import annotations

import ast
import gzip
import json
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

from unidiff import PatchSet
from unidiff.patch import Hunk, PatchedFile

from bot.reproduction.language import DraftRejected
from bot.reproduction.python.language import Python

#: Where no hunk of a patch is a program by itself, the test goes into this file.
PLAIN = "import os\n\n\ndef test_a():\n    assert os\n"


class AnyImport:
    """Import statements for any name: most hunks omit the imports at the top of their file."""

    def provider(self, name: str) -> str | None:
        return f"from somewhere import {name}"


def parses(source: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source)
        except SyntaxError:
            return False
    return True


def drafts(data: Path) -> Iterator[tuple[str, str]]:
    """Return draft and host for each test patch whose added lines are a program with a test."""
    rows = gzip.decompress((data / "brt" / "tdd_bench_verified.jsonl.gz").read_bytes()).splitlines()
    for row in rows[::4]:
        for name in ("golden_test_patch", "otter_gpt4o_test_patch", "otter_plus_gpt4o_test_patch"):
            for file in PatchSet(json.loads(row)[name]):
                added = textwrap.dedent("".join(_lines(file, added=True)))
                if file.path.endswith(".py") and "def test" in added and parses(added):
                    hosts = [textwrap.dedent("".join(_hunk(hunk, added=False))) for hunk in file]
                    yield added, next((host for host in hosts if host.strip() and parses(host)), PLAIN)


def _lines(file: PatchedFile, *, added: bool) -> Iterator[str]:
    for hunk in file:
        yield from _hunk(hunk, added=added)


def _hunk(hunk: Hunk, *, added: bool) -> Iterator[str]:
    return (line.value for line in hunk if line.is_added == added)


def test_test_patches_of_tdd_bench_become_candidates(shared_data: Path) -> None:
    """Use every fourth instance. Of all 307 instances, 663 of 674 usable patches become candidates."""
    python = Python()
    count = 0
    refused: list[str] = []
    for draft, host in drafts(shared_data):
        count += 1
        try:
            injected = python.inject(draft, host, "test_issue_1", AnyImport())
        except DraftRejected as error:
            refused.append(str(error))
            continue
        rest = iter(injected.content.splitlines())
        assert all(line in rest for line in host.splitlines())
        assert parses(injected.content)
        assert "test_issue_1" in injected.name

    assert count > 140
    assert len(refused) <= 0.03 * count
    assert all("runs on import" in why or "means something else" in why for why in refused)
