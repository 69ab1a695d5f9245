"""Every patch in the research data is read, packed and anchored, and what came of it is counted."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.code.change.diff import Diff, parse
from bot.code.change.packing import pack
from bot.core.text import estimate
from bot.features.review.anchoring import anchor
from bot.features.shared.findings import Reported
from tests.bot.code.change.github_rules import parse_shown
from tests.builders import finding

SOURCES = {
    "swebench/instances.jsonl.gz": ("patch", "test_patch"),
    "swebench/labelled_patches.jsonl.gz": ("model_patch",),
    "brt/tdd_bench_verified.jsonl.gz": (
        "golden_test_patch",
        "otter_gpt4o_test_patch",
        "otter_plus_gpt4o_test_patch",
    ),
    "bouncerbench/output_tasks.jsonl.gz": ("patch",),
}
BUDGET = 4_000


def patches(folder: Path) -> Iterator[str]:
    for name, keys in SOURCES.items():
        with gzip.open(folder / name, "rt", encoding="utf-8") as rows:
            for row in rows:
                record = json.loads(row)
                yield from (record[key] for key in keys if record.get(key))


def quotes(diff: Diff) -> list[Reported]:
    """Return a finding about the first changed line with text, for every file."""
    findings = []
    for file in diff.files:
        lines = (line for hunk in file.hunks for line in hunk.lines if line.mark != " " and line.text.strip())
        if (line := next(lines, None)) is not None:
            fields = finding(path=file.path, quote=line.text, line=line.new, symbol="", category="coding")
            findings.append(Reported.model_validate(fields))
    return findings


def test_real_patches_are_parsed_anchored_and_packed(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: Counter[str] = Counter()
    for text in patches(shared_data):
        diff = parse(text)
        counts.update(patches=1, files=len(diff.files), flawed=bool(diff.flaws))
        counts.update(flaw.reason for flaw in diff.flaws)
        counts["lines"] += sum(len(hunk.lines) for file in diff.files for hunk in file.hunks)
        rules = parse_shown(text)
        counts.update(file.change for file in diff.files)
        counts["binary"] += sum(file.binary for file in diff.files)
        for path in {file.path for file in diff.files}:
            for side in ("LEFT", "RIGHT"):
                hunks = rules[path].hunks if path in rules else []
                # Some of these diffs are concatenated and name a file twice.
                ours = frozenset[int]().union(*(file.commentable(side) for file in diff.named(path)))
                assert ours == {number for hunk in hunks for number in hunk[side]}
        findings, dropped = anchor(quotes(diff), diff)
        assert not dropped
        for placed in findings:
            assert placed.line is not None
            assert rules[placed.path].accepts(placed.line, placed.side, placed.start_line)
        counts["findings placed"] += len(findings)
        for piece in pack(diff, BUDGET, 50).pieces:
            assert estimate(piece.text) <= piece.tokens <= BUDGET
            counts["pieces"] += 1
    with capsys.disabled():
        print("\nreal patches:", ", ".join(f"{value:,} {name}" for name, value in counts.most_common()))
    assert counts["patches"] >= 4_000
    assert counts["flawed"] == counts["the diff ends in the middle of a hunk"]
