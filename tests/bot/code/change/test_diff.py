"""Reading a diff: whatever git, people or models write, every file that can be read is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.code.change.diff import Diff, FileDiff, Sides, parse, render
from bot.github.offline import RecordedTree
from tests.bot.code.change.diffs import git


def only(text: str) -> FileDiff:
    diff = parse(text)
    assert diff.flaws == ()
    (file,) = diff.files
    return file


def texts(file: FileDiff) -> list[str]:
    return [line.mark + line.text for hunk in file.hunks for line in hunk.lines]


AWKWARD_NAMES = ["plain.py", "with space.py", "tab\there.py", 'quo"te.py', "naïve/日本.py", "a b/b a.py", "b/b.py"]


@pytest.mark.parametrize("options", [[], ["--no-prefix"], ["-c", "x"]], ids=["git", "no-prefix", "quoted"])
def test_names_and_counts_agree_with_git_for_any_file_name(tmp_path: Path, options: list[str]) -> None:
    git(tmp_path, "init", "-q")
    for name in AWKWARD_NAMES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"one\ntwo\nthree\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    for name in AWKWARD_NAMES:
        (tmp_path / name).write_bytes(b"one\n-- two\n++ two\nthree")
    quoting = "true" if "-c" in options else "false"
    flags = [option for option in options if option.startswith("--")]
    diff = parse(git(tmp_path, "-c", f"core.quotepath={quoting}", "diff", *flags))
    numbers = git(tmp_path, "diff", "--numstat", "-z").split("\0")[:-1]
    expected = {
        name: (int(added), int(removed)) for added, removed, name in (row.split("\t", 2) for row in numbers)
    }
    assert diff.flaws == ()
    assert {file.path: (file.added, file.removed) for file in diff.files} == expected


def test_renames_copies_modes_binaries_additions_deletions_are_separate(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name in ("moved.py", "moved and changed.py", "gone.py", "script.sh", "picture.bin", "empty.txt"):
        (tmp_path / name).write_text("".join(f"{name} {number}\n" for number in range(9)))
    (tmp_path / "picture.bin").write_bytes(b"\0\1\2")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "mv", "moved.py", "new place.py")
    git(tmp_path, "mv", "moved and changed.py", "other.py")
    (tmp_path / "other.py").write_text((tmp_path / "other.py").read_text() + "more\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "script.sh").chmod(0o755)
    (tmp_path / "picture.bin").write_bytes(b"\0\3")
    (tmp_path / "new empty.py").write_text("")
    (tmp_path / "new.py").write_text("x = 1")
    git(tmp_path, "add", "-A")
    diff = parse(git(tmp_path, "diff", "--cached", "--binary", "-M"))
    assert diff.flaws == ()
    facts = {file.path: (file.change, file.old_path, file.binary, file.mode) for file in diff.files}
    assert facts == {
        "gone.py": ("deleted", "gone.py", False, None),
        "new empty.py": ("added", None, False, "100644"),
        "new place.py": ("renamed", "moved.py", False, None),
        "new.py": ("added", None, False, "100644"),
        "other.py": ("renamed", "moved and changed.py", False, None),
        "picture.bin": ("modified", "picture.bin", True, None),
        "script.sh": ("modified", "script.sh", False, "100755"),
    }
    assert diff.named("moved.py") == diff.named("new place.py")


def test_a_move_to_a_name_that_needs_quotes_is_a_move() -> None:
    text = 'diff --git a/x.py "b/t\\tab.py"\nsimilarity index 100%\nrename from x.py\nrename to "t\\tab.py"\n'
    file = only(text)
    assert (file.old_path, file.path, file.change) == ("x.py", "t\tab.py", "renamed")


HEADER = "--- a/x\n+++ b/x\n"
FORMS = {
    "code like a header": (
        f"{HEADER}@@ -1,4 +1,4 @@\n a\n--- old\n+++ new\n @@ -1 +1 @@\n diff --git a/x b/x\n",
        [" a", "--- old", "+++ new", " @@ -1 +1 @@", " diff --git a/x b/x"],
    ),
    "Windows line ends": (
        "diff --git a/x b/x\r\n--- a/x\r\n+++ b/x\r\n@@ -1,3 +1,3 @@\r\n a\r\n\r\n-b\r\n+c\r\n",
        [" a", " ", "-b", "+c"],
    ),
    "a blank line without its space": (f"{HEADER}@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", [" a", " ", "-b", "+c"]),
    "a mailed patch": (
        "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n x | 2 +-\n\n"
        f"diff --git a/x b/x\nindex 1..2 100644\n{HEADER}@@ -1 +1 @@\n-a\n+b\n-- \n2.30.0\n\n",
        ["-a", "+b"],
    ),
}


@pytest.mark.parametrize(("text", "lines"), FORMS.values(), ids=FORMS)
def test_odd_forms_of_a_diff_are_read(text: str, lines: list[str]) -> None:
    file = only(text)
    assert (file.path, texts(file)) == ("x", lines)


def test_a_hunk_that_ends_like_a_file_header_is_followed_by_the_next() -> None:
    text = "--- a/q.sql\n+++ b/q.sql\n@@ -1 +1 @@\n--- x\n+++ y\n@@ -9 +9 @@\n-a\n+b\n"
    file = only(text)
    assert [len(hunk.lines) for hunk in file.hunks] == [2, 2]


@pytest.mark.parametrize("char", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r"])
def test_only_a_newline_ends_a_line(char: str) -> None:
    file = only(f"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a{char}b\n-c{char}d\n+e{char}f\n")
    assert texts(file) == [f" a{char}b", f"-c{char}d", f"+e{char}f"]
    assert file.commentable("RIGHT") == {1, 2}


def test_files_without_a_newline_at_the_end_number_like_others() -> None:
    end = "\\ No newline at end of file\n"
    file = only(f"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n{end}+c\n{end}")
    assert file.commentable("LEFT") == {1, 2}
    assert file.commentable("RIGHT") == {1, 2}
    in_german = only("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n\\ Kein Zeilenumbruch am Dateiende.\n+c\n")
    assert in_german.commentable("RIGHT") == {1}


def test_a_count_that_is_left_out_is_one() -> None:
    file = only("--- a/x\n+++ b/x\n@@ -7 +9 @@ def f():\n-a\n+b\n")
    assert (file.commentable("LEFT"), file.commentable("RIGHT")) == ({7}, {9})
    assert file.hunks[0].context == "def f():"


def test_a_plain_diff_with_times_is_read() -> None:
    text = "--- old/x.c\t2024-01-01 00:00:00 +0000\n+++ new/x.c\t2024-01-02 00:00:00 +0000\n@@ -1 +1 @@\n-a\n+b\n"
    assert only(text).path == "new/x.c"


@pytest.mark.parametrize(
    "text",
    [
        "diff --git a/x.sh b/x.sh\nold mode 100644\nnew mode 100755\n",
        "diff --git a/old b/x.sh\nsimilarity index 100%\nrename from old\nrename to x.sh\n",
        "--- a/x.sh\n+++ b/x.sh\n@@ -1 +1 @@\n-a\n+b\n",
    ],
)
def test_a_byte_order_mark_does_not_hide_the_first_file(text: str) -> None:
    assert parse("\ufeff" + text) == parse(text)
    assert [file.path for file in parse("\ufeff" + text).files] == ["x.sh"]


def test_an_empty_diff_is_no_change_and_no_error() -> None:
    assert parse("") == parse("\n") == Diff()


MALFORMED = {
    "prose": ("just words\n", "no file header"),
    "too long by a line after": ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c\n", "more lines than its header says"),
    "too long inside": ("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n+b\n+c\n-d\n", "more lines than its header says"),
    "too short": (
        "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        "fewer lines than its header says",
    ),
    "not a line of a hunk": ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\nnonsense\n+b\n", "fewer lines"),
    "a torn header": ("--- a/x\n+++ b/x\n@@ -1,2 +1\n-a\n+b\n", "has not the form"),
    "no number": ("--- a/x\n+++ b/x\n@@ -a,b +c,d @@\n-a\n+b\n", "has not the form"),
    "a number with thousands of digits": (
        f"--- a/x\n+++ b/x\n@@ -{'9' * 5000} +1 @@\n-a\n+b\n",
        "has not the form",
    ),
    "digits of another script": ("--- a/x\n+++ b/x\n@@ -١ +١ @@\n-a\n+b\n", "has not the form"),
    "a merge": ("diff --cc x\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n -b\n++c\n", "combined diff"),
    "no name": ("--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n", "names no file"),
}


@pytest.mark.parametrize(("text", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_unreadable_parts_are_reported_and_take_no_comment(text: str, reason: str) -> None:
    diff = parse(text)
    assert reason in str(diff.flaws[0])
    assert all(file.path != "x" or not file.hunks for file in diff.files)


def test_one_broken_file_does_not_hide_the_others() -> None:
    good = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"
    broken = "diff --git a/bad b/bad\n--- a/bad\n+++ b/bad\n@@ -1,5 +1,5 @@\n-a\n--- q\n+++ r\n"
    diff = parse(good.format("one") + broken + good.format("two"))
    assert [file.path for file in diff.files] == ["one", "two"]
    assert [(flaw.path, flaw.line) for flaw in diff.flaws] == [("bad", 14)]


def test_a_diff_that_was_cut_off_keeps_the_lines_that_came() -> None:
    diff = parse("--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n a\n-b\n+c\n")
    assert texts(diff.files[0]) == [" a", "-b", "+c"]
    assert "ends in the middle" in diff.flaws[0].reason


#: A link gets another target, and a file takes the place of a link.
LINKS = """diff --git a/link.py b/link.py
index 1111111..2222222 120000
--- a/link.py
+++ b/link.py
@@ -1 +1 @@
-lib/a.py
\\ No newline at end of file
+lib/b.py
\\ No newline at end of file
diff --git a/tool.py b/tool.py
deleted file mode 120000
index 1111111..0000000
--- a/tool.py
+++ /dev/null
@@ -1 +0,0 @@
-lib/tool.py
\\ No newline at end of file
diff --git a/tool.py b/tool.py
new file mode 100644
index 0000000..2222222
--- /dev/null
+++ b/tool.py
@@ -0,0 +1 @@
+run()
diff --git a/lib b/lib
index 1111111..2222222 160000
--- a/lib
+++ b/lib
@@ -1 +1 @@
-Subproject commit 1111111111111111111111111111111111111111
+Subproject commit 2222222222222222222222222222222222222222
"""


def test_links_and_submodules_are_named_by_their_mode() -> None:
    headers = [render(file, ()) for file in parse(LINKS).files]
    assert headers == [
        "=== link.py (mode 120000)",
        "=== tool.py (deleted, mode 120000)",
        "=== tool.py (added, mode 100644)",
        "=== lib (mode 160000)",
    ]


def test_a_file_in_the_place_of_a_link_has_a_text_of_its_own() -> None:
    diff = parse(LINKS)
    link, tool = diff.named("tool.py")
    sides = Sides(RecordedTree({"tool.py": b"run()\n"}))
    assert (sides.before(link), sides.after(link)) == ("lib/tool.py\n", None)
    assert (sides.before(tool), sides.after(tool)) == (None, "run()\n")
