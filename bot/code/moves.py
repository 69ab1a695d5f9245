"""Code that a change moves: the lines that are the same in both places need not be read twice. Pure.

What differs between the two places stays as it is in the diff, between the notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from bot.code.diff import Diff, DiffLine, Mark
from bot.core.text import show

#: Lines with something in them that make a move; fewer are alike by chance.
LEAST = 6
#: Places of one line that are looked at; what stands everywhere tells nothing.
_PLACES = 5

#: Path, hunk and line (both counted from 0) to the note that is shown instead; empty for none.
Notes = Mapping[tuple[str, int, int], str]


class _Line(NamedTuple):
    path: str
    hunk: int
    at: int
    line: DiffLine

    @property
    def key(self) -> tuple[str, int, int]:
        return self.path, self.hunk, self.at

    @property
    def text(self) -> str:
        return self.line.text.strip()

    @property
    def indent(self) -> int:
        return len(self.line.text) - len(self.line.text.lstrip())


def moved(diff: Diff) -> Notes:
    """The lines that a change takes away in one hunk and adds unchanged (but for their depth) in another."""
    added = list(_runs(diff, "+"))
    places: dict[str, list[tuple[int, int]]] = {}
    for number, run in enumerate(added):
        for at, line in enumerate(run):
            if len(line.text) > 3:
                places.setdefault(line.text, []).append((number, at))
    notes: dict[tuple[str, int, int], str] = {}
    for run in _runs(diff, "-"):
        at = 0
        while at < len(run):
            seeds = places.get(run[at].text, ())
            best: tuple[list[_Line], list[_Line]] = [], []
            for number, there in seeds if len(seeds) <= _PLACES else ():
                block = _alike(run[at:], added[number][there:], notes)
                best = max(best, block, key=lambda each: len(each[0]))
            if sum(bool(line.text) for line in best[0]) < LEAST:
                at += 1
                continue
            _note(notes, *best)
            at += len(best[0])
    return notes


def _runs(diff: Diff, mark: Mark) -> Iterator[list[_Line]]:
    parts = Counter(file.path for file in diff.files)
    for file in diff.files:
        if parts[file.path] > 1:  # diffs strung together: a path and a number name no one line
            continue
        for number, hunk in enumerate(file.hunks):
            lines = (_Line(file.path, number, at, line) for at, line in enumerate(hunk.lines))
            for marked, run in groupby(lines, lambda each: each.line.mark == mark):
                if marked:
                    yield list(run)


def _alike(old: list[_Line], new: list[_Line], taken: Notes) -> tuple[list[_Line], list[_Line]]:
    """The longest common beginning, at one difference of depth."""
    if (old[0].path, old[0].hunk) == (new[0].path, new[0].hunk):
        return [], []
    count, shift = 0, new[0].indent - old[0].indent
    for left, right in zip(old, new, strict=False):
        if left.text != right.text or (left.text and right.indent - left.indent != shift) or right.key in taken:
            break
        count += 1
    return old[:count], new[:count]


def _note(notes: dict[tuple[str, int, int], str], old: list[_Line], new: list[_Line]) -> None:
    count = len(old)
    # The first line, most often the head of what was moved, stays visible in the new place.
    notes.update({line.key: "" for line in (*old, *new[1:])})
    notes[old[0].key] = f"[{count} lines moved to {show(new[0].path)} line {new[0].line.new}]"
    notes[new[1].key] = (
        f"[{count - 1} more lines, moved unchanged from {show(old[0].path)} line {old[0].line.old}]"
    )
