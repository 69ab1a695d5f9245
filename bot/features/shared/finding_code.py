"""The code around a finding, for the second question and for ``/bouncer why``."""

from __future__ import annotations

from dataclasses import dataclass

from bot.code.diff import Diff, DiffLine
from bot.code.packing import render, render_line
from bot.code.quotes import bare, without_margin
from bot.code.syntax import definitions, enclosing
from bot.core.text import show, squeeze
from bot.features.shared.findings import Finding

#: Lines of a hunk, and of the file, that are shown on each side of a finding.
AROUND = 60
#: Lines of a function; of a longer one only the lines around the finding are shown.
MAX_FUNCTION = 200


@dataclass(frozen=True, slots=True)
class Code:
    """The code around a finding: the change near it, its function, and the lines of both.

    ``whole`` is the whole change if it is short, ``context`` the code around the change of its file.
    """

    change: str
    function: str
    lines: tuple[str, ...]
    whole: str = ""
    context: str = ""

    @property
    def text(self) -> str:
        """The change near the finding, and the function."""
        return "\n\n".join(filter(None, (self.change, self.function)))

    def holds(self, quote: str) -> bool:
        """Return True if the quoted line is in it."""
        other_lines = (without_margin(line) for line in f"{self.whole}\n{self.context}".split("\n"))
        text = "\n" + "\n".join(squeeze(line) for line in (*self.lines, *other_lines)) + "\n"
        return any(len(words) > 1 and words in text for words in (bare(quote), bare(without_margin(quote))))


def around(finding: Finding, diff: Diff, source: str | None) -> Code:
    """Return the part of the change near a finding, and the function around it on the head."""
    rows: list[str] = []
    lines: list[str] = []
    for file in diff.named(finding.path):
        for hunk in file.hunks:
            near = [line for line in hunk.lines if _is_near(line, finding)]
            if near:
                rows += [f"@@ {hunk.context}".rstrip(), *(render_line(line) for line in near)]
                lines += [line.text for line in near]
        rows = [render(file, rows)]
    if source is None or finding.line is None or finding.side == "LEFT":
        return Code("\n".join(rows), "", tuple(lines))
    text = source.split("\n")
    first, last = _span(source, finding)
    whole = text[first - 1 : last]
    numbered = (render_line(DiffLine(" ", at, at, line)) for at, line in enumerate(whole, start=first))
    header = f"=== {show(finding.path)} (after the change)"
    return Code("\n".join(rows), "\n".join([header, *numbered]), (*lines, *whole))


def _is_near(line: DiffLine, finding: Finding) -> bool:
    number = line.number(finding.side) or line.number("LEFT" if finding.side == "RIGHT" else "RIGHT")
    return finding.line is None or number is None or abs(number - finding.line) <= AROUND


def _span(source: str, finding: Finding) -> tuple[int, int]:
    """Return the first and last line of the function around a finding, or of the lines near it."""
    assert finding.line is not None
    near = max(1, finding.line - AROUND), finding.line + AROUND
    function = enclosing(definitions(source, finding.path), finding.start_line or finding.line, finding.line)
    if function is None or function.last - function.first >= MAX_FUNCTION:
        return near
    return function.first, function.last
