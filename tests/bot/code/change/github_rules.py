"""GitHub's rules for review comments, written from its documentation and the raw diff text alone.

Nothing of ``bot`` is used here: the reviewer's anchors are compared with this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class ShownFile:
    """Per hunk, the line numbers that can carry a comment, by side."""

    hunks: list[dict[str, dict[int, str]]] = field(default_factory=list)

    def accepts(self, line: int, side: str, start_line: int | None = None) -> bool:
        """Return True if GitHub accepts a comment on these lines: in one hunk, on one side, first before last."""
        if start_line is not None and start_line >= line:
            return False
        numbers = range(start_line or line, line + 1)
        return any(all(number in hunk[side] for number in numbers) for hunk in self.hunks)

    def text(self, line: int, side: str) -> str:
        return next(hunk[side][line] for hunk in self.hunks if line in hunk[side])


def parse_shown(raw: str) -> dict[str, ShownFile]:
    """Return the files of a ``git diff`` by their new name (the old one if deleted)."""
    files: dict[str, ShownFile] = {}
    current = ShownFile()
    old = new = old_lines = new_lines = 0
    source = ""
    for line in raw.removesuffix("\n").split("\n"):
        if old_lines > 0 or new_lines > 0:
            sign, text = line[:1] or " ", line[1:].removesuffix("\r")
            if sign == "\\":
                continue
            if sign in " -":
                current.hunks[-1]["LEFT"][old] = text
                old, old_lines = old + 1, old_lines - 1
            if sign in " +":
                current.hunks[-1]["RIGHT"][new] = text
                new, new_lines = new + 1, new_lines - 1
        elif line.startswith("--- "):
            source = _name(line[4:])
        elif line.startswith("+++ "):
            target = _name(line[4:])
            current = files.setdefault(source if target == "/dev/null" else target, ShownFile())
        elif header := re.match(r"@@ -(\d+),?(\d*) \+(\d+),?(\d*) @@", line):
            old, new = int(header[1]), int(header[3])
            old_lines, new_lines = int(header[2] or 1), int(header[4] or 1)
            current.hunks.append({"LEFT": {}, "RIGHT": {}})
    return files


def _name(shown_as: str) -> str:
    if shown_as.startswith('"'):
        raw = shown_as.rstrip("\r")[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()
    else:
        raw = shown_as.split("\t")[0].rstrip("\r")
    return raw if raw == "/dev/null" else raw[2:]
