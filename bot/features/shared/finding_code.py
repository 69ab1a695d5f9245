"""The code around a finding, for the second question and for ``/bouncer why``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from bot.code.change.diff import Diff, DiffLine, FileDiff, Hunk, render, render_line
from bot.code.change.quotes import bare, without_margin
from bot.code.parsing.definitions import enclosing
from bot.code.parsing.syntax import definitions
from bot.code.symbols.names import names_in
from bot.core.subjects import Side
from bot.core.text import show, squeeze
from bot.features.shared.findings import REMOVED, Finding

#: Lines that are shown on each side of a place of the finding, and of a line with a name that it mentions.
AROUND, BESIDE_NAME = 60, 12
#: A function that is longer is shown around the finding only.
MAX_FUNCTION = 200
#: Most lines of hunks that are shown because of a name.
MAX_LINES = 300


@dataclass(frozen=True, slots=True)
class Code:
    """The code around a finding: the hunks about it, and the rest of its function.

    ``visible`` are the lines of the new files that it shows. ``whole`` is the whole change if that is short,
    ``context`` the code around.
    """

    change: str
    function: str
    visible: Mapping[str, Collection[int]] = field(default_factory=dict)
    whole: str = ""
    context: str = ""

    @property
    def text(self) -> str:
        """The hunks about the finding, and the rest of its function."""
        return "\n\n".join(filter(None, (self.change, self.function)))

    def holds(self, quote: str) -> bool:
        """Return True if the quoted lines stand in it; lines that the change removes may stand between them."""
        shown_code = without_margin("\n".join((self.text, self.whole, self.context)))
        text = "\n".join(map(squeeze, shown_code.split("\n")))
        quotes = (bare(quote), bare(without_margin(quote)))
        return any(len(words) > 1 and all(line in text for line in words.split("\n")) for words in quotes)


def around(finding: Finding, diff: Diff, source: str | None) -> Code:
    """Return the hunks near a place of the finding or with a name that it mentions, and the rest of its function.

    ``source`` is the finding's file after the change; None if the function is shown elsewhere.
    """
    places, pattern = _line_numbers(finding), _names_pattern(finding.comment)
    texts: list[str] = []
    remaining = MAX_LINES
    visible: dict[str, set[int]] = {}
    for file in sorted(diff.files, key=lambda file: file.path != finding.path):
        rows: list[str] = []
        for hunk in file.hunks:
            selected = _selected(file, hunk, places.get(file.path, ()), pattern, finding, remaining)
            if selected:
                rows += [f"@@ {hunk.context}".rstrip(), *(render_line(line) for line in selected)]
                remaining -= len(selected)
                new = {line.new for line in selected if line.new is not None}
                visible.setdefault(file.path, set()).update(new)
        if rows or file.path == finding.path:
            texts.append(render(file, rows))
    change = Code("\n\n".join(texts), "", visible)
    if source is None or finding.line is None or finding.side == "LEFT":
        return change
    return _with_function(change, finding, source)


def _line_numbers(finding: Finding) -> dict[str, list[int]]:
    """Return the line of a finding and those of its further places, by path."""
    numbers: dict[str, list[int]] = {}
    if finding.line is not None:
        numbers[finding.path] = [finding.line]
    for place in finding.places:
        path, _, number = place.removesuffix(REMOVED).rpartition(":")
        if number.isdigit():
            numbers.setdefault(path, []).append(int(number))
    return numbers


def _names_pattern(comment: str) -> re.Pattern[str] | None:
    """Return a pattern for the names of code in a comment; None if there are none."""
    names = {name.rpartition(".")[2] for name in names_in(comment)}
    words = "|".join(sorted(re.escape(name) for name in names if len(name) > 2))
    return re.compile(rf"(?<![\w$])(?:{words})(?![\w$])") if words else None


def _with_function(change: Code, finding: Finding, source: str) -> Code:
    """Add the lines of the function around a finding that the hunks do not show."""
    text = source.split("\n")
    first, last = _span(source, finding)
    before = change.visible.get(finding.path, ())
    numbers = [number for number in range(first, min(last, len(text)) + 1) if number not in before]
    visible = {**change.visible, finding.path: {*before, *numbers}}
    header = f"=== {show(finding.path)} (after the change, the rest of it)"
    numbered = (render_line(DiffLine(" ", number, number, text[number - 1])) for number in numbers)
    function = "\n".join([header, *numbered]) if any(text[number - 1].strip() for number in numbers) else ""
    return replace(change, function=function, visible=visible)


def _selected(
    file: FileDiff,
    hunk: Hunk,
    places: Collection[int],
    pattern: re.Pattern[str] | None,
    finding: Finding,
    remaining: int,
) -> list[DiffLine]:
    """Return the lines of a hunk that concern a finding."""
    if file.path == finding.path and finding.line is None:
        return list(hunk.lines)
    other_side: Side = "LEFT" if finding.side == "RIGHT" else "RIGHT"
    near: set[int] = set()
    for at, line in enumerate(hunk.lines):
        number = line.number(finding.side) or line.number(other_side)
        if number is not None and any(abs(number - place) <= AROUND for place in places):
            near.add(at)
    if pattern is not None and remaining > 0:
        mentions = [at for at, line in enumerate(hunk.lines) if pattern.search(line.text)]
        near.update(at for mention in mentions for at in range(mention - BESIDE_NAME, mention + BESIDE_NAME + 1))
    return [line for at, line in enumerate(hunk.lines) if at in near]


def _span(source: str, finding: Finding) -> tuple[int, int]:
    """Return first and last line of the function around a finding; of a long or unknown one, the lines near it."""
    assert finding.line is not None
    near = max(1, finding.line - AROUND), finding.line + AROUND
    function = enclosing(definitions(source, finding.path), finding.start_line or finding.line, finding.line)
    if function is None or function.last - function.first >= MAX_FUNCTION:
        return near
    return function.first, function.last
