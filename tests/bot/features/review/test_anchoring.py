"""A finding stands on the line that it quotes, or nowhere: held against GitHub's rules, written apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.code.change.diff import FileDiff, parse, render, render_line
from bot.core.text import squeeze_lines
from bot.features.review.anchoring import anchor
from bot.features.review.strategies import merge_causes
from bot.features.shared.findings import Finding, Reported
from tests.bot.code.change.diffs import Generated, diffs
from tests.bot.code.change.github_rules import parse_shown

LONG = "rows = [" + ", ".join(map(str, range(1000, 1200))) + "]"
DIFF = """diff --git a/src/app.py b/src/app.py
index 1..2 100644
--- a/src/app.py
+++ b/src/app.py
@@ -10,4 +10,6 @@ def load(path):
     with open(path) as file:
-        return parse(file)
+        data = parse(file)
+        check(data)
+        return data.value

     raise Missing(path)
@@ -40,3 +42,4 @@ class Store:
     def get(self, key):
+        check(data)
         return self.items[key]

diff --git a/old name.py b/new name.py
similarity index 90%
rename from old name.py
rename to new name.py
--- a/old name.py\t
+++ b/new name.py\t
@@ -1 +1 @@
-x = 1
+x = 2
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1,2 +0,0 @@
-def lost():
-    pass
diff --git a/logo.png b/logo.png
index 1..2 100644
Binary files a/logo.png and b/logo.png differ
"""


def reported(**values: Any) -> Reported:
    defaults = {
        "path": "src/app.py",
        "quote": "return data.value",
        "comment": "Fails.",
        "category": "data",
        "impact": "reliability",
        "severity": "high",
    }
    return Reported.model_validate({**defaults, **values})


def place(**values: Any) -> Finding:
    findings, dropped = anchor([reported(**values)], parse(DIFF))
    assert dropped == ()
    return findings[0]


def reason(**values: Any) -> str:
    findings, dropped = anchor([reported(**values)], parse(DIFF))
    assert findings == ()
    return dropped[0].reason


def spot(finding: Finding) -> tuple[int | None, int | None, str]:
    return finding.start_line, finding.line, finding.side


def test_the_quote_decides_the_line_whatever_number_the_model_gives() -> None:
    assert spot(place()) == spot(place(line=999)) == spot(place(line=11)) == (None, 13, "RIGHT")


@pytest.mark.parametrize(
    ("quote", "line", "where"),
    [
        ("check(data)", 12, (None, 12, "RIGHT")),
        ("check(data)", 44, (None, 43, "RIGHT")),
        ("check(data)", None, (None, 12, "RIGHT")),
        ("data = parse(file)\ncheck(data)\nreturn data.value", None, (11, 13, "RIGHT")),
        ("raise Missing(path)\ndef get(self, key):", None, "quote_not_in_diff"),
        ("return parse(file)", None, (None, 11, "LEFT")),
        ("-        return parse(file)\n+        data = parse(file)", None, (None, 11, "RIGHT")),
        ("parse(file)", 11, (None, 11, "RIGHT")),
        ("pat", None, "quote_not_in_diff"),
        ("heck(dat", None, "quote_not_in_diff"),
        ("   13 +         return data.value", None, (None, 13, "RIGHT")),
        ("+        return data.value", None, (None, 13, "RIGHT")),
        ("```python\nreturn data.value\n```", None, (None, 13, "RIGHT")),
    ],
)
def test_a_quote_stands_on_lines_of_one_hunk_and_side_or_nowhere(quote: str, line: int | None, where: Any) -> None:
    if isinstance(where, str):
        assert reason(quote=quote, line=line) == where
    else:
        assert spot(place(quote=quote, line=line)) == where


@pytest.mark.parametrize(
    ("path", "quote", "name"),
    [
        ("b/src/app.py", "return data.value", "src/app.py"),
        ("./src/app.py", "return data.value", "src/app.py"),
        (" `src/app.py` ", "return data.value", "src/app.py"),
        ("old name.py", "x = 2", "new name.py"),
        ("new name.py (renamed from old name.py)", "x = 2", "new name.py"),
        ("gone.py", "def lost():\n    pass", "gone.py"),
    ],
)
def test_a_path_is_known_with_what_models_and_headers_add(path: str, quote: str, name: str) -> None:
    assert place(path=path, quote=quote).path == name


def test_a_line_with_a_control_token_is_found_as_the_model_was_shown_it() -> None:
    diff = parse('--- a/chat.py\n+++ b/chat.py\n@@ -1 +1 @@\n-a\n+END = "<|im_end|>"\n')
    for quote in ('END = "<|im_end|>"', 'END = "< |im_end| >"'):
        findings, _ = anchor([reported(path="chat.py", quote=quote)], diff)
        assert [finding.line for finding in findings] == [1]


def test_what_is_not_in_the_diff_is_dropped_with_its_reason() -> None:
    assert reason(path="src/other.py") == "path_not_in_diff"
    assert reason(quote="return nothing.like(it)") == "quote_not_in_diff"
    assert reason(quote=" \n ") == "quote_missing"
    assert reason(symbol="no_such_name") == "symbol_not_in_diff"
    assert reason(symbol="check.missing()") == "symbol_not_in_diff"
    assert reason(comment="  ") == "comment_missing"
    assert reason(path="logo.png", quote="anything") == "quote_not_in_diff"


def test_a_header_says_what_a_path_may_be_copied_with() -> None:
    (file,) = parse(DIFF).named("new name.py")
    assert render(file, ()) == "=== new name.py (renamed from old name.py)"


def test_a_symbol_counts_where_it_stands_as_a_word() -> None:
    assert place(symbol="data.value").line == 13
    assert place(symbol="`load()`").line == 13
    assert place(symbol="load(path, fallback)").symbol == "load"
    assert reason(symbol="dat") == "symbol_not_in_diff"


def test_a_symbol_may_be_in_the_code_around_the_diff() -> None:
    around = "=== src/app.py\n   20  def parse_all(paths):\n   21      return [load(path) for path in paths]"
    findings, dropped = anchor([reported(symbol="parse_all"), reported(symbol="parse")], parse(DIFF), around)
    assert [finding.symbol for finding in findings] == ["parse_all", "parse"]
    assert dropped == ()
    (lost,) = anchor([reported(symbol="parse_al")], parse(DIFF), around)[1]
    assert lost.reason == "symbol_not_in_diff"


def test_what_no_line_can_carry_is_kept_without_a_line() -> None:
    assert place(quote="def load(path):").line is None
    assert place(path="logo.png", quote="logo.png").line is None


def test_a_suggestion_takes_the_indentation_of_the_code() -> None:
    assert place(suggestion="return data.get()").suggestion == "        return data.get()"
    assert place(suggestion="        return 1").suggestion == "        return 1"
    quote = "   13 +         return data.value"
    assert place(quote=quote, suggestion="        return 1").suggestion == "        return 1"
    both = place(
        quote="check(data)\nreturn data.value", suggestion="if data:\n    return data.value\n\nreturn None"
    )
    assert both.suggestion == "        if data:\n            return data.value\n\n        return None"


@pytest.mark.parametrize(
    "values",
    [
        {"suggestion": ""},
        {"suggestion": "return data.value"},
        {"suggestion": "\n".join("x" for _ in range(60))},
        {"suggestion": "return 1 \u202e# 0 nruter"},
        {"quote": "data.value", "suggestion": "data.get()"},
        {"quote": "return parse(file)", "suggestion": "return None"},
    ],
    ids=["empty", "no change", "too long", "hides text", "part of a line", "removed line"],
)
def test_a_suggestion_that_cannot_be_taken_with_one_click_is_left_out(values: dict[str, Any]) -> None:
    assert place(**values).suggestion is None


def _pieces(file: FileDiff) -> list[tuple[str, list[str]]]:
    """Every run of neighbouring lines on one side of a hunk, as text."""
    return [
        (side, [line.text for line in hunk.lines if line.number(side) is not None])
        for hunk in file.hunks
        for side in ("LEFT", "RIGHT")
    ]


@given(diffs(), st.data())
def test_every_comment_on_quoted_lines_is_one_that_github_accepts(
    generated: Generated, data: st.DataObject
) -> None:
    diff = parse(generated.text)
    assert diff.flaws == ()
    rules = parse_shown(generated.text)
    for file in diff.files:
        for _side, rows in _pieces(file):
            start = data.draw(st.integers(0, max(0, len(rows) - 1)))
            quote = "\n".join(rows[start : start + data.draw(st.integers(1, 4))])
            findings, dropped = anchor([reported(path=file.path, quote=quote)], diff)
            if not squeeze_lines(quote):
                assert dropped[0].reason == "quote_missing"
                continue
            (finding,) = findings
            assert rules[finding.path].accepts(finding.line, finding.side, finding.start_line)
            first = finding.start_line or finding.line
            numbers = range(first, finding.line + 1)
            there = "\n".join(rules[finding.path].text(number, finding.side) for number in numbers)
            assert squeeze_lines(quote) in squeeze_lines(there)


@given(diffs(), st.text("ab x=1-+@\n", max_size=12), st.integers(-5, 50), st.sampled_from(["x.py", "src/a b.py"]))
def test_invented_quote_is_dropped_or_on_a_line_that_github_accepts(
    generated: Generated, quote: str, line: int, path: str
) -> None:
    findings, dropped = anchor([reported(path=path, quote=quote, line=line)], parse(generated.text))
    assert len(findings) + len(dropped) == 1
    rules = parse_shown(generated.text)
    for finding in findings:
        assert finding.line is None or rules[path].accepts(finding.line, finding.side, finding.start_line)


@given(diffs())
def test_lines_that_can_be_commented_on_are_github_s(generated: Generated) -> None:
    rules = parse_shown(generated.text)
    for file in parse(generated.text).files:
        for side in ("LEFT", "RIGHT"):
            hunks = rules[file.path].hunks if file.path in rules else []
            assert file.commentable(side) == {number for hunk in hunks for number in hunk[side]}


@given(st.text() | diffs().flatmap(lambda d: st.integers(0, len(d.text)).map(lambda at: d.text[at:])))
def test_no_text_at_all_makes_the_reader_fall_over(text: str) -> None:
    diff = parse(text)
    assert diff.files or diff.flaws or not text.strip()
    anchor([reported()], diff)


def test_a_line_that_was_shown_cut_can_be_quoted_as_it_was_shown() -> None:
    diff = parse(f"--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n a = 1\n+{LONG}\n")
    (line,) = (line for line in diff.files[0].hunks[0].lines if line.mark == "+")
    row = render_line(line)
    assert row.endswith("…")
    for quote in (row, row.partition("+ ")[2]):
        (finding,), dropped = anchor([reported(path="a.py", quote=quote, symbol="")], diff)
        assert (finding.line, dropped) == (2, ())


def test_a_removed_line_is_no_place_of_the_new_line_with_its_number() -> None:
    diff = parse(
        "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n-check(path)\n+read(path)\n+read(path, mode)\n keep()\n"
    )
    new = reported(
        path="a.py", quote="read(path, mode)", symbol="", places=[{"path": "a.py", "quote": "read(path)"}]
    )
    old = reported(path="a.py", quote="check(path)", symbol="", comment="Nothing is checked any more.")
    both = {"path": "a.py", "quote": "read(path)\nread(path, mode)"}, {"path": "a.py", "quote": "check(path)"}
    whole = reported(path="a.py", quote="keep()", symbol="", places=both)
    findings, _ = anchor([new, old, whole], diff)
    assert [finding.places for finding in findings] == [("a.py:1",), (), ("a.py:1", "a.py:1 (removed)")]
    assert [finding.comment for finding in merge_causes(findings[:2])] == [new.comment, old.comment]
