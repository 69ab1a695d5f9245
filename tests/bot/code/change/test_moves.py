"""Moved code is shown as a move, with what differs; a file before and after a change follows from one side."""

from __future__ import annotations

import pytest

from bot.code.change.diff import Sides, apply_hunks, parse
from bot.code.change.packing import ChangeFilters, pack
from bot.core.actions import REFORMATTED
from bot.features.review.meaning import reformatted
from bot.github.offline import RecordedTree

BODY = [f"    step_{number} = call_{number}(value)" for number in range(10)]


def moved(change: str = "") -> str:
    old = "".join(f"-{line}\n" for line in ["def work(value):", *BODY])
    new = "".join(
        f"+{line}\n" for line in ["def work(value):", *BODY[:7], *([change] if change else []), *BODY[7:]]
    )
    size = len(new.splitlines())
    return (
        f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,12 +1,1 @@\n import os\n{old}"
        f"diff --git a/b.py b/b.py\n--- a/b.py\n+++ b/b.py\n@@ -1,1 +1,{size + 1} @@\n import sys\n{new}"
    )


def test_a_moved_function_is_named_in_both_places_and_read_in_neither() -> None:
    (piece,) = pack(parse(moved()), 2_000, 4).pieces
    assert "[11 lines moved to b.py line 2]" in piece.text
    assert "[10 more lines, moved unchanged from a.py line 2]" in piece.text
    assert "step_5" not in piece.text


def test_a_move_names_what_the_new_file_neither_defines_nor_imports() -> None:
    diff = parse(moved())
    body = "\n".join(["def work(value):", *BODY])
    before = f"import os\n{body}\n\nfrom calls import call_3, call_4\n\n\ndef call_5(value):\n    pass\n"
    after = f"import sys\n{body}\nfrom calls import call_4\n"
    files = {"b.py": after, "a.py": "import os\n" + before.split(f"{body}\n")[1]}
    (piece,) = pack(
        diff, 2_000, 4, sides=Sides(RecordedTree({name: text.encode() for name, text in files.items()}))
    ).pieces
    uses = "it uses call_3, call_5, call_4; b.py neither defines nor imports call_3, call_5]"
    assert f"moved unchanged from a.py line 2; {uses}" in piece.text


def test_changes_within_a_move_stay_visible() -> None:
    (piece,) = pack(parse(moved("    value = None")), 2_000, 4).pieces
    assert "   10 +     value = None" in piece.text
    assert "step_5" not in piece.text
    assert "[8 lines moved to b.py line 2]" in piece.text


@pytest.mark.parametrize("back", [False, True])
def test_a_diff_that_does_not_fit_the_file_gives_no_other_side(back: bool) -> None:
    (file,) = parse("--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n").files
    assert apply_hunks("a\nb\n", file.hunks, reverse=False) == "a\nc\n"
    assert apply_hunks("a\nc\n", file.hunks, reverse=True) == "a\nb\n"
    assert apply_hunks("other\n", file.hunks, reverse=back) is None


def test_a_change_beside_a_byte_order_mark_is_applied() -> None:
    (file,) = parse("--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n \ufeffa\n-b\n+c\n").files
    sides = Sides(RecordedTree({"x.py": b"\xef\xbb\xbfa\r\nc\r\n"}))
    assert (sides.before(file), sides.after(file)) == ("a\nb\n", "a\nc\n")


def test_of_two_hunks_the_one_that_changes_nothing_is_left_out() -> None:
    old = "a = 1\nb = 2\n" + "c = 3\n" * 20 + "d = [1,2]\n"
    text = (
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 4\n"
        "@@ -22,2 +22,4 @@\n c = 3\n-d = [1,2]\n+d = [\n+    1, 2,\n+]\n"
    )
    diff = parse(text)
    same = reformatted(diff, Sides(RecordedTree({"x.py": old.encode()}), is_old=True))
    assert same == {"x.py": frozenset({1})}
    (piece,) = pack(diff, 2_000, 4, ChangeFilters(same=same)).pieces
    assert "b = 4" in piece.text
    assert "d = [" not in piece.text


def test_every_file_is_listed_with_the_part_that_shows_it() -> None:
    text = "".join(
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        "@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n"
        for path in ("src/load.py", "tests/test_load.py", "go.sum", "a.cfg", "b.cfg", "layout.py")
    )
    diff = parse(text)
    result = pack(diff, 125, 9, ChangeFilters(same={"layout.py": frozenset({0})}))
    assert [piece.paths for piece in result.pieces] == [("src/load.py", "tests/test_load.py"), ("a.cfg", "b.cfg")]
    assert result.files == (
        "src/load.py (added, +2 -0): part 1",
        "tests/test_load.py (added, +2 -0): part 1",
        "go.sum (added, +2 -0): not shown: lock file",
        "a.cfg (added, +2 -0): part 2",
        "b.cfg (added, +2 -0): part 2",
        f"layout.py (added, +2 -0): not shown: {REFORMATTED}",
    )
