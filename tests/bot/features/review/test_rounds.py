"""Which lines a later round reviews: what changed since the last head, and what depends on it."""

from __future__ import annotations

from time import monotonic

import pytest

from bot.code.change.diff import Diff, parse
from bot.features.review.rounds import MAX_LINES, Scope, line_hashes
from bot.features.shared.findings import Finding
from tests.builders import placed_finding


def diff(*hunks: tuple[int, str], path: str = "app.py") -> str:
    """Build the diff of one file; a hunk is its first line and its lines."""
    body = ""
    for start, text in hunks:
        lines = text.strip("\n").split("\n")
        counts = [sum(line[0] in marks for line in lines) for marks in ("- ", "+ ")]
        body += f"@@ -{start},{counts[0]} +{start},{counts[1]} @@\n" + "".join(f"{line}\n" for line in lines)
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{body}"


def scope(before: str, after: str) -> Scope:
    old = parse(before)
    return Scope(parse(after), line_hashes(old, {file.path for file in old.files}))


def lines_in_scope(before: str, after: str) -> list[str]:
    """The changed lines of the change ``after`` that are reviewed once ``before`` was."""
    where, new = scope(before, after), parse(after)
    texts = {line: line.text for file in new.files for hunk in file.hunks for line in hunk.lines}
    return [
        f"{line.mark}{texts[line].strip()}"
        for file in new.files
        for hunk in file.hunks
        for line in hunk.lines
        if line.mark != " " and where.holds(_finding(file.path, line.new or line.old or 0, line.mark == "-"))
    ]


def _finding(path: str, line: int, is_removed: bool) -> Finding:
    return placed_finding(path=path, line=line, side="LEFT" if is_removed else "RIGHT")


FIRST = "+one(1)\n+two(2)\n+three(3)\n"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ((5, FIRST), (90, FIRST), []),
        ((5, FIRST), (5, "+one(1)\n+between()\n+two(2)\n+three(3)\n"), ["+between()"]),
        ((5, FIRST), (5, "+one(1)\n+two(5)\n+three(3)\n"), ["+two(5)"]),
        ((5, FIRST), (5, "+three(3)\n+one(1)\n+two(2)\n"), ["+three(3)", "+two(2)"]),
        ((5, FIRST), (5, "+one(1)\n+three(3)\n"), ["+one(1)", "+three(3)"]),
        ((5, FIRST), (5, f"-zero(0)\n{FIRST}"), ["-zero(0)"]),
        ((5, f"-zero(0)\n{FIRST}"), (5, FIRST), ["+one(1)"]),
    ],
    ids=["rebased", "added", "changed", "moved", "taken back", "removes more", "removes less"],
)
def test_lines_that_changed_since_are_reviewed(
    before: tuple[int, str], after: tuple[int, str], lines: list[str]
) -> None:
    assert lines_in_scope(diff(before), diff(after)) == lines


CALLER = diff((3, "+total = load_all(1)\n+other = 5\n"), path="caller.py")


def test_lines_that_depend_on_a_change_are_reviewed_too() -> None:
    before = diff((10, "+def load_all(count):\n+    limit = 5\n+    return limit\n")) + CALLER
    after = before.replace("def load_all(count)", "def load_all(count, kind)")
    assert lines_in_scope(before, after) == ["+def load_all(count, kind):", "+total = load_all(1)"]
    after = before.replace("limit = 5", "limit = None")
    assert lines_in_scope(before, after) == ["+limit = None", "+return limit"]


def test_hunks_without_such_a_line_are_left_out() -> None:
    hunks = (10, "+first()\n"), (50, "+second()\n"), (90, "+third()\n")
    where = scope(diff(*hunks), diff(hunks[0], (50, "+second(2)\n"), hunks[2]) + CALLER)
    assert where.unchanged == {"app.py": frozenset({0, 2})}
    assert where.changed == {"app.py": 1, "caller.py": 2}


def test_a_large_change_is_reviewed_as_a_whole_each_time() -> None:
    big = parse(diff((1, "+x()\n" * (MAX_LINES + 1))))
    assert line_hashes(big, {"app.py"}) == {}
    assert Scope(big, {}).unchanged == {}


@pytest.mark.parametrize("lines", [2_000, 900])
def test_lines_made_to_be_slow_to_compare_are_reviewed_without_delay(lines: int) -> None:
    before = diff((1, "".join(f"+f({number % 7})\n+g()\n" for number in range(lines // 2))))
    after = diff((1, "".join(f"+g()\n+f({number % 5})\n" for number in range(lines // 2))))
    start = monotonic()
    assert held_count(before, after) > 0
    assert monotonic() - start < 10


def held_count(before: str, after: str) -> int:
    return sum(scope(before, after).changed.values())


def test_nothing_is_left_out_of_two_sections_of_one_file() -> None:
    twice: Diff = parse(diff((5, FIRST)) + diff((50, FIRST)))
    assert Scope(twice, {"app.py": ""}).unchanged == {}
