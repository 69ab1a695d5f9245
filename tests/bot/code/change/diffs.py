"""Diffs for property tests: difflib's, over lines that have every trap in them."""

from __future__ import annotations

import difflib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from bot.github.payloads import quoted

TRAPS = [
    "", " ", "\t", "}", "-- x", "++ y", "- x", "+ y", "-- a/x.py", "@@ -1 +1 @@", "diff --git a/x b/x",
    "\\ No newline at end of file", "index 1..2", "\f", "a\x85b", "a\u2028b", "x\r", "\u202e", "    return x",
    "return x", "x = 1  # ünï", "  12 + y",
]  # fmt: skip
lines = st.lists(st.sampled_from(TRAPS) | st.text("ab =()", max_size=6), max_size=14)
names = st.sampled_from(["x.py", "src/a b.py", "ünï/ö.py", 'q"uote.py', "tab\t.py", "b/b.py", "a b/c.py", "-- x"])


@dataclass(frozen=True)
class Generated:
    """A diff and how it was made."""

    text: str
    names: tuple[str, ...]


@st.composite
def diffs(draw: st.DrawFn) -> Generated:
    """One to three files: changed, added or deleted; with and without a newline at their ends."""
    file_names = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    parts = [draw(_file(name)) for name in file_names]
    return Generated("".join(parts), tuple(file_names))


@st.composite
def _file(draw: st.DrawFn, name: str) -> str:
    kind = draw(st.sampled_from(["modified", "modified", "added", "deleted"]))
    old = [] if kind == "added" else draw(lines)
    new = [] if kind == "deleted" else draw(_edited(old))
    eol = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    before, after = _content(old, eol, draw(st.booleans())), _content(new, eol, draw(st.booleans()))
    header = [f"diff --git {quoted('a/' + name)} {quoted('b/' + name)}\n"]
    header += {"added": ["new file mode 100644\n"], "deleted": ["deleted file mode 100644\n"]}.get(kind, [])
    body = list(difflib.unified_diff(before, after, n=draw(st.integers(0, 3))))[2:]
    if body:
        header.append(f"--- {'/dev/null' if kind == 'added' else _path('a/' + name)}\n")
        header.append(f"+++ {'/dev/null' if kind == 'deleted' else _path('b/' + name)}\n")
    body = [row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in body]
    return "".join(header + body)


@st.composite
def _edited(draw: st.DrawFn, old: list[str]) -> list[str]:
    if draw(st.booleans()):
        return draw(lines)
    at = draw(st.integers(0, len(old)))
    return old[:at] + draw(lines)[:3] + old[at + draw(st.integers(0, 3)) :]


def _content(rows: list[str], eol: str, ended: bool) -> list[str]:
    content = [row + eol for row in rows]
    if content and not ended and rows[-1].strip():
        content[-1] = rows[-1]
    return content


def _path(name: str) -> str:
    text = quoted(name)
    return f"{text}\t" if " " in name and text == name else text


def git(folder: Path, *argv: str) -> str:
    """Run git in a folder and return its output, with line ends as they are."""
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=false", *argv]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout.decode()
