"""A diff is applied to texts as git would apply it, or refused with a reason; nothing is ever written."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unidiff.patch import PatchedFile, PatchSet

from evaluation.brt.judge import added_tests
from evaluation.brt.patching import PatchRejected, apply, read_text
from evaluation.dataset import read_rows

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
PATCH = "--- a/t.py\n+++ b/t.py\n@@ -2,3 +2,4 @@\n two\n three\n+new\n four\n"


def applied(patch: str, text: str | None = OLD) -> dict[str, str]:
    return apply(patch, lambda path: text if path == "t.py" else None)


def test_lines_are_added_where_their_context_stands() -> None:
    assert applied(PATCH) == {"t.py": OLD.replace("three\n", "three\nnew\n")}


def test_line_numbers_may_be_off() -> None:
    assert applied(PATCH, "zero\n" * 5 + OLD) == {"t.py": "zero\n" * 5 + OLD.replace("three\n", "three\nnew\n")}


def test_the_nearest_place_counts() -> None:
    text = "a\nb\n" * 10
    patch = "--- a/t.py\n+++ b/t.py\n@@ -9,2 +9,3 @@\n a\n+new\n b\n"
    assert applied(patch, text)["t.py"] == "a\nb\n" * 4 + "a\nnew\nb\n" + "a\nb\n" * 5


def test_a_later_hunk_is_looked_for_as_far_off_as_the_one_before() -> None:
    """The file has two more lines at its beginning, so that the second ``dup`` is meant, not the nearer first."""
    lines = ["first", "mark", "x", "dup", "y", "dup", "z"]
    patch = "--- a/t.py\n+++ b/t.py\n@@ -2 +2 @@\n-mark\n+MARK\n@@ -6 +6 @@\n-dup\n+DUP\n"
    text = "".join(f"{line}\n" for line in ["new", "new", *lines])

    changed = "".join(f"{line}\n" for line in ["new", "new", "first", "MARK", "x", "dup", "y", "DUP", "z"])
    assert applied(patch, text) == {"t.py": changed}


def test_a_new_file_and_a_renamed_one() -> None:
    assert applied("--- /dev/null\n+++ b/n/t.py\n@@ -0,0 +1 @@\n+x = 1\n") == {"n/t.py": "x = 1\n"}
    renamed = "diff --git a/t.py b/u.py\nsimilarity index 90%\nrename from t.py\nrename to u.py\n" + PATCH.replace(
        "+++ b/t.py", "+++ b/u.py"
    )
    assert applied(renamed) == {"u.py": OLD.replace("three\n", "three\nnew\n")}


def test_names_that_git_quotes_are_read() -> None:
    patch = PATCH.replace("a/t.py", '"a/t\\303\\274.py"').replace("b/t.py", '"b/t\\303\\274.py"')
    assert list(apply(patch, {"tü.py": OLD}.get)) == ["tü.py"]
    assert applied('--- /dev/null\n+++ "b/n \\"t\\".py"\t\n@@ -0,0 +1 @@\n+x = 1\n') == {'n "t".py': "x = 1\n"}


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ("", "no change in it"),
        ("Sure! Here is the test you asked for.", "no change in it"),
        (PATCH.replace(" two\n", " zwei\n"), r"t\.py: hunk 1 \(line 2\) does not fit"),
        (PATCH.replace("-2,3", "-2,9"), "not a unified diff"),
        (PATCH.replace("t.py", "u.py"), "u.py: no such file"),
        (PATCH.replace("b/t.py", "b/../../t.py").replace("a/t.py", "a/../../t.py"), "no path inside"),
        ("--- /dev/null\n+++ /etc/cron.d/x\n@@ -0,0 +1 @@\n+x\n", "no path inside"),
        ("--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+x\n", "no path inside"),
        ("--- /dev/null\n+++ b/t.py\n@@ -0,0 +1 @@\n+x\n", "to be created, and there already"),
        ("--- a/t.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "deleted, where tests are to be added"),
        ("--- a/t.py\n+++ b/t.py\n@@ -3,0 +4 @@\n+x\n", "does not fit"),
        (PATCH + PATCH, "changed twice|does not fit"),
        ("diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ\n", "binary|no change"),
    ],
)
def test_what_cannot_be_applied_is_refused_with_a_reason(patch: str, reason: str) -> None:
    with pytest.raises(PatchRejected, match=reason):
        applied(patch)


def test_odd_characters_end_no_line() -> None:
    text = "a\x0cb\n\u2028c\r\nd\n"
    patch = "--- a/t.py\n+++ b/t.py\n@@ -1,3 +1,4 @@\n a\x0cb\n \u2028c\r\n+new\n d\n"
    assert applied(patch, text)["t.py"] == "a\x0cb\n\u2028c\r\nnew\nd\n"


def test_headers_may_end_with_a_carriage_return() -> None:
    patch = PATCH.replace("\n", "\r\n")
    assert applied(patch, OLD.replace("\n", "\r\n"))["t.py"] == applied(PATCH)["t.py"].replace("\n", "\r\n")
    assert applied("--- /dev/null\r\n+++ b/n/t.py\r\n@@ -0,0 +1 @@\r\n+x = 1\n") == {"n/t.py": "x = 1\n"}
    git = "diff --git a/n.py b/n.py\r\nnew file mode 100644\r\n"
    assert applied(f"{git}--- /dev/null\r\n+++ b/n.py\r\n@@ -0,0 +1 @@\r\n+x\n") == {"n.py": "x\n"}
    with pytest.raises(PatchRejected, match="deleted, where tests are to be added"):
        applied("--- a/t.py\r\n+++ /dev/null\r\n@@ -1 +0,0 @@\r\n-one\n")


def test_hunk_without_context_after_it_goes_to_the_end_as_with_git() -> None:
    text = "zero\nzero\nb\na\na\nb\nb\na\nb\nb\n"
    patch = "--- a/t.py\n+++ b/t.py\n@@ -6,3 +6,4 @@\n a\n b\n b\n+a\n"
    assert applied(patch, text)["t.py"] == f"{text}a\n"


lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d\n"]), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None)
@given(lines, lines, st.integers(0, 3), st.booleans())
def test_what_git_applies_comes_out_as_git_leaves_it(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], before: int, cut: bool
) -> None:
    if cut:
        old = [*old[:-1], old[-1].rstrip("\n") or "x"]
    diff = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, "a/t.py", "b/t.py")
    )
    text = "zero\n" * before + "".join(old)
    folder = tmp_path_factory.mktemp("git")
    (folder / "t.py").write_bytes(text.encode())
    done = subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=folder, capture_output=True, check=False)
    if done.returncode == 0 and diff:
        assert applied(diff, text) == {"t.py": (folder / "t.py").read_bytes().decode()}


def _around(file: PatchedFile, mark: str) -> str:
    """A file that has one side of every hunk, at its place, and lines of no meaning around them."""
    lines: list[str] = []
    for hunk in file:
        start = hunk.source_start if mark == "+" else hunk.target_start
        length = hunk.source_length if mark == "+" else hunk.target_length
        shift = 0 if mark == "+" else hunk.target_start - hunk.source_start
        lines += [f"# {number - shift}\n" for number in range(len(lines) + 1, start + (length == 0))]
        lines += [line.value for line in hunk if line.line_type not in (mark, "\\")]
    return "".join(lines)


def test_every_recorded_test_patch_is_applied(shared_data: Path) -> None:
    names = ("golden_test_patch", "otter_gpt4o_test_patch", "otter_plus_gpt4o_test_patch")
    rows = list(read_rows(str(shared_data / "brt" / "tdd_bench_verified.jsonl.gz")))
    assert len(rows) == 307
    for row in rows:
        for name in names:
            files = [file for file in PatchSet(row.data[name]) if len(file)]
            before = {file.source_file[2:]: _around(file, "+") for file in files if not file.is_added_file}
            after = {file.target_file[2:]: _around(file, "-") for file in files}
            result = apply(row.data[name], before.get)
            assert {path: result[path].rstrip("\n") for path in after} == {
                path: text.rstrip("\n") for path, text in after.items()
            }


def test_a_link_in_a_checkout_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "t.py").symlink_to(tmp_path / "secret")
    (checkout / "folder").symlink_to(tmp_path)
    for path in ("t.py", "folder/secret"):
        with pytest.raises(PatchRejected):
            read_text(checkout, path)
    assert read_text(checkout, "nowhere/t.py") is None


BEFORE = "import x\n\nDATA = [1]\n\ndef test_a(): pass\n\nclass TestC:\n    def test_b(self): pass\n"


@pytest.mark.parametrize(
    ("after", "names", "alone"),
    [
        (BEFORE + "def test_n(): pass\n", ["test_n"], True),
        (BEFORE.replace("def test_a(): pass", "def test_a():  # why\n    pass\n"), [None], False),
        (BEFORE.replace("def test_a(): pass", "def test_a(): assert x"), ["test_a"], True),
        (BEFORE + "    def test_n(self): pass\n", ["TestC::test_n"], True),
        (BEFORE + "class TestD(TestC):\n    async def test_n(self): pass\n", ["TestD::test_n"], True),
        (BEFORE.replace("[1]", "[1, 2]"), [None], False),
        (BEFORE + "def test_n(:\n", [None], True),
    ],
)
def test_the_tests_that_a_change_adds_are_found(after: str, names: list[str | None], alone: bool) -> None:
    added = added_tests("t.py", BEFORE, after)
    assert added is not None
    assert ([target.name for target in added.targets], added.alone) == (names, alone)


def test_a_byte_order_mark_hides_no_tests() -> None:
    added = added_tests("t.py", f"\ufeff{BEFORE}", f"\ufeff{BEFORE}def test_n(): pass\n")
    assert added is not None
    assert [target.name for target in added.targets] == ["test_n"]


def test_a_new_file_is_run_as_a_whole_and_one_without_tests_not_at_all() -> None:
    added = added_tests("t.py", None, "def test_n(): pass\n")
    assert added is not None
    assert ([target.name for target in added.targets], added.alone) == ([None], True)
    assert added_tests("helper.py", None, "def help_out(): pass\n") is None
