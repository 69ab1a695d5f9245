r"""Cut a unified diff into the sections of its files, by the counts in its hunk headers.

Counting is what keeps a removed line ``-- x`` (shown as ``--- x``) from being read as a file header, and an error
in one file from hiding the others. Lines end at ``\n`` and nowhere else: a form feed, a lone carriage return or a
Unicode line separator is part of a line, as it is for git.
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
    """What one file's part of the diff holds, while it is being gathered."""

    line: int
    header: list[str] = field(default_factory=list)
    hunks: list[RawHunk] = field(default_factory=list)
    flaws: list[tuple[int, str]] = field(default_factory=list)
    lost: bool = False
    names_files: bool = False

    @property
    def from_git(self) -> bool:
        """Whether the next file is announced by a line of git's own, and by nothing else."""
        return self.header[0].startswith("diff --")

    def head(self, *lines: str) -> None:
        """Add lines to the header."""
        self.header += lines
        self.names_files = self.names_files or any(line.startswith("+++ ") for line in lines)

    def lose(self, line: int, reason: str) -> None:
        """Skip what follows, up to the next hunk or file that can be told for certain."""
        self.flaws.append((line, reason))
        self.lost = True


def cut(text: str) -> list[Section]:
    """The sections of a diff in their order. Text before the first header (a mail, a log) is skipped."""
    lines = text.split("\n")
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
                sections[-1].lose(at + 1, "a combined diff of a merge takes no comments")
        elif current is not None and current.lost and current.header[0].startswith(_COMBINED):
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
    """Whether ``---`` and ``+++`` at ``at`` name files, rather than being code that was taken away and added."""
    if not lines[at].startswith("--- ") or not _line(lines, at + 1).startswith("+++ "):
        return False
    if current is not None and current.from_git and not current.names_files:
        return not current.hunks
    return _line(lines, at + 2).startswith("@@ -") and not (current and current.from_git and current.lost)


def _take_hunk(lines: list[str], at: int, section: Section) -> int:
    """Read the hunk whose header is at ``at``; returns the index of the first line after it."""
    section.lost = False
    match = _HUNK.match(lines[at])
    if match is None:
        section.lose(at + 1, "the hunk header has not the form @@ -a,b +c,d @@")
        return at + 1
    old_count, new_count = (1 if count is None else int(count) for count in match.group(2, 4))
    body, old, new = _take_body(lines, at + 1, old_count, new_count)
    end = at + 1 + len(body)
    if old < 0 or new < 0:
        section.lose(end, _TOO_LONG)
        return end
    if old or new:
        if end < len(lines):
            section.lose(end + 1, "the hunk has fewer lines than its header says")
            return end
        section.flaws.append((end, "the diff ends in the middle of a hunk"))
    if body:
        counts = (int(match[1]), old_count - old, int(match[3]), new_count - new)
        section.hunks.append(RawHunk(counts, match[5].strip(), tuple(body)))
    return end


def _take_body(lines: list[str], at: int, old: int, new: int) -> tuple[list[str], int, int]:
    """The lines of a hunk, and how many old and new lines its header promised beyond them (< 0: too few)."""
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
    """A line outside hunks: part of a header, or the proof that the last hunk was longer than it said."""
    if section.lost:
        return
    if not section.hunks:
        section.head(line)
    elif line.startswith(("+", "-")) and line.rstrip() not in ("--", "---"):
        section.hunks.pop()
        section.lose(at + 1, _TOO_LONG)


def _line(lines: list[str], at: int) -> str:
    return lines[at] if at < len(lines) else ""
