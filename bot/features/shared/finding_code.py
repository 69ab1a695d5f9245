"""The code that a finding is about, as a second question shows it."""

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
#: A function that is longer is shown around the finding only.
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Code:
    """What is shown around a finding: the change near it, the function that it lies in, and their bare lines.

    ``whole`` is the whole change where it is short, ``context`` the code around its file's part of it.
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
        """Whether the quoted line stands in it."""
        beside = (without_margin(line) for line in f"{self.whole}\n{self.context}".split("\n"))
        known = "\n" + "\n".join(squeeze(line) for line in (*self.lines, *beside)) + "\n"
        return any(len(words) > 1 and words in known for words in (bare(quote), bare(without_margin(quote))))


def around(finding: Finding, diff: Diff, source: str | None) -> Code:
    """The part of the change that a finding is about, and the function of the head that it lies in."""
    rows: list[str] = []
    lines: list[str] = []
    for file in diff.named(finding.path):
        for hunk in file.hunks:
            shown = [line for line in hunk.lines if _near(line, finding)]
            if shown:
                rows += [f"@@ {hunk.context}".rstrip(), *(render_line(line) for line in shown)]
                lines += [line.text for line in shown]
        rows = [render(file, rows)]
    if source is None or finding.line is None or finding.side == "LEFT":
        return Code("\n".join(rows), "", tuple(lines))
    text = source.split("\n")
    first, last = _span(source, finding)
    whole = text[first - 1 : last]
    numbered = (render_line(DiffLine(" ", at, at, line)) for at, line in enumerate(whole, start=first))
    header = f"=== {show(finding.path)} (after the change)"
    return Code("\n".join(rows), "\n".join([header, *numbered]), (*lines, *whole))


def _near(line: DiffLine, finding: Finding) -> bool:
    number = line.number(finding.side) or line.number("LEFT" if finding.side == "RIGHT" else "RIGHT")
    return finding.line is None or number is None or abs(number - finding.line) <= AROUND


def _span(source: str, finding: Finding) -> tuple[int, int]:
    """First and last line of the function around a finding; of a long or unknown one, what lies near."""
    assert finding.line is not None
    near = max(1, finding.line - AROUND), finding.line + AROUND
    found = enclosing(definitions(source, finding.path), finding.start_line or finding.line, finding.line)
    if found is None or found.last - found.first >= LONGEST:
        return near
    return found.first, found.last
