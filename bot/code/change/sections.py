r"""Cut a unified diff into one section per file, by the counts in its hunk headers, and read the file names.

The counts keep a removed line ``-- x`` (shown as ``--- x``) from being read as a file header, and an error in one
file from hiding the others. Lines end at ``\n`` only: a form feed, a lone carriage return or a Unicode line
separator is part of a line, as it is for git.

Names are read as ``git apply`` reads them: git quotes names with control characters, quotes or (by default) any
byte beyond ASCII like C strings, ends a name with spaces by a tab, and puts ``a/`` and ``b/`` (or
``i/ w/ c/ o/ 1/ 2/``) before it, or nothing at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Nine digits are more lines than a file can have; ASCII digits only, unlike ``\d``.
_HUNK = re.compile(r"^@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@(.*)$", re.DOTALL)
_COMBINED = ("diff --cc ", "diff --combined ")
_HEADERS = ("diff --git ", *_COMBINED)
# An empty line is a blank context line whose space was trimmed away.
_MARKS = frozenset((" ", "+", "-", "\\", ""))
_TOO_LONG = "the hunk has more lines than its header says"


@dataclass(frozen=True, slots=True)
class Flaw:
    """A part of a diff that could not be read; nothing in it can be commented on."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path or 'diff'}: line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class RawHunk:
    """A hunk as it stands in the diff; ``counts`` are old start, old lines, new start, new lines."""

    counts: tuple[int, int, int, int]
    context: str
    lines: tuple[str, ...]


@dataclass(slots=True)
class Section:
    """One file's part of the diff, filled line by line."""

    line: int
    header: list[str] = field(default_factory=list)
    hunks: list[RawHunk] = field(default_factory=list)
    flaws: list[tuple[int, str]] = field(default_factory=list)
    is_unreadable: bool = False
    names_files: bool = False

    @property
    def from_git(self) -> bool:
        """True if the diff is git's: only a ``diff --git`` line begins the next file."""
        return self.header[0].startswith("diff --")

    def head(self, *lines: str) -> None:
        """Add lines to the header."""
        self.header += lines
        self.names_files = self.names_files or any(line.startswith("+++ ") for line in lines)

    def mark_unreadable(self, line: int, reason: str) -> None:
        """Skip everything up to the next certain hunk or file."""
        self.flaws.append((line, reason))
        self.is_unreadable = True


def cut(text: str) -> list[Section]:
    """Return the sections of a diff in order. Text before the first header (a mail, a log) is skipped."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    sections: list[Section] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        current = sections[-1] if sections else None
        if line.startswith(_HEADERS):
            sections.append(Section(at + 1, [line]))
            if line.startswith(_COMBINED):
                sections[-1].mark_unreadable(at + 1, "a combined diff of a merge takes no comments")
        elif current is not None and current.is_unreadable and current.header[0].startswith(_COMBINED):
            pass
        elif _names_files(lines, at, current):
            if current is None or current.names_files or not current.from_git:
                sections.append(current := Section(at + 1))
            current.head(*lines[at : at + 2])
            at += 1
        elif line.startswith("@@ ") and current is not None:
            at = _take_hunk(lines, at, current)
            continue
        elif current is not None:
            _take_other(line, at, current)
        at += 1
    return sections


def _names_files(lines: list[str], at: int, current: Section | None) -> bool:
    """Return True if ``---`` and ``+++`` at ``at`` name files, and are not removed and added code."""
    if not lines[at].startswith("--- ") or not _line(lines, at + 1).startswith("+++ "):
        return False
    if current is not None and current.from_git and not current.names_files:
        return not current.hunks
    return _line(lines, at + 2).startswith("@@ -") and not (current and current.from_git and current.is_unreadable)


def _take_hunk(lines: list[str], at: int, section: Section) -> int:
    """Read the hunk with its header at ``at``. Return the index of the first line after it."""
    section.is_unreadable = False
    match = _HUNK.match(lines[at])
    if match is None:
        section.mark_unreadable(at + 1, "the hunk header has not the form @@ -a,b +c,d @@")
        return at + 1
    old_count, new_count = (1 if count is None else int(count) for count in match.group(2, 4))
    body, old, new = _take_body(lines, at + 1, old_count, new_count)
    end = at + 1 + len(body)
    if old < 0 or new < 0:
        section.mark_unreadable(end, _TOO_LONG)
        return end
    if old or new:
        if end < len(lines):
            section.mark_unreadable(end + 1, "the hunk has fewer lines than its header says")
            return end
        section.flaws.append((end, "the diff ends in the middle of a hunk"))
    if body:
        counts = (int(match[1]), old_count - old, int(match[3]), new_count - new)
        section.hunks.append(RawHunk(counts, match[5].strip(), tuple(body)))
    return end


def _take_body(lines: list[str], at: int, old: int, new: int) -> tuple[list[str], int, int]:
    """Return the lines of a hunk, and how many old and new lines are missing (< 0: too many)."""
    body: list[str] = []
    for index in range(at, len(lines)):
        line, mark = lines[index], lines[index][:1]
        if not old and not new and mark != "\\":
            break
        if mark not in _MARKS and line != "\r":
            break
        body.append(line if mark and mark != "\r" else f" {line}")
        old -= mark not in ("+", "\\")
        new -= mark not in ("-", "\\")
        if old < 0 or new < 0:
            break
    return body, old, new


def _take_other(line: str, at: int, section: Section) -> None:
    """Read a line outside hunks: a header line, or proof that the last hunk is longer than its header says."""
    if section.is_unreadable:
        return
    if not section.hunks:
        section.head(line)
    elif line.startswith(("+", "-")) and line.rstrip() not in ("--", "---"):
        section.hunks.pop()
        section.mark_unreadable(at + 1, _TOO_LONG)


def _line(lines: list[str], at: int) -> str:
    return lines[at] if at < len(lines) else ""


NULL = "/dev/null"

_PREFIX = re.compile(r"^[abciow12]/")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_SINGLE = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def read_names(header: list[str]) -> tuple[str | None, str | None]:
    """Return old and new name: None for the side without the file, both None if no name can be read."""
    names = [_name(line[4:]) for line in header if line.startswith(("--- ", "+++ "))][:2]
    old, new = _bare(names[0], names[1]) if len(names) == 2 else (None, None)
    if old is None and new is None:
        old, new = _from_git_line(header[0])
    old = _field(header, "rename from ", "copy from ") or old
    new = _field(header, "rename to ", "copy to ") or new
    if any(line.startswith("new file mode ") for line in header):
        old = None
    if any(line.startswith("deleted file mode ") for line in header):
        new = None
    return old, new


def _from_git_line(line: str) -> tuple[str | None, str | None]:
    """Return the names in ``diff --git a/x b/x``. Names with spaces are split where both halves are equal."""
    rest = line.rstrip("\r").split(" ", 2)[-1]
    if (quoted := _QUOTED.match(rest)) is not None:
        return _bare(unquote(quoted[0]), unquote(rest[quoted.end() + 1 :]))
    if rest.endswith('"') and ' "' in rest:
        old, _, new = rest.partition(' "')
        return _bare(old, unquote(f'"{new}'))
    middle = (len(rest) - 1) // 2
    # If only one half has a prefix, the space is off the middle by one.
    for space in range(max(0, middle - 1), middle + 3):
        pair = _bare(rest[:space], rest[space + 1 :])
        if rest[space : space + 1] == " " and pair[0] == pair[1]:
            return pair
    old, _, new = rest.partition(" ")
    return _bare(old, new or old)


def _bare(old: str, new: str) -> tuple[str | None, str | None]:
    """Remove git's prefixes from both names. Two equal prefixes are a folder of that name."""
    if _PREFIX.match(old) and old[:2] == new[:2]:
        return old, new
    return _strip(old), _strip(new)


def _field(header: list[str], *keys: str) -> str | None:
    for line in header:
        for key in keys:
            if line.startswith(key):
                return unquote(line[len(key) :].rstrip("\r"))
    return None


def _name(text: str) -> str:
    """Return the name in a ``---`` or ``+++`` line, without a tab and time behind it."""
    if (quoted := _QUOTED.match(text)) is not None:
        return unquote(quoted[0])
    return text.split("\t")[0].rstrip("\r")


def _strip(name: str) -> str | None:
    return None if name == NULL else _PREFIX.sub("", name)


def unquote(text: str) -> str:
    """Undo C quoting; bytes that are not UTF-8 become U+FFFD. Unquoted text is returned as it is."""
    match = _QUOTED.fullmatch(text)
    if match is None:
        return text
    return _ESCAPE.sub(_unescape, match[1].encode("utf-8", "replace")).decode("utf-8", "replace")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _SINGLE.get(code, code)
