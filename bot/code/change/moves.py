"""Code that a change moves: identical lines are replaced by notes, so that they are read only once. Pure.

Lines that differ between the two places stay in the diff, between the notes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import re2

from bot.code.change.diff import Diff, DiffLine, Mark, Sides
from bot.core.text import show

#: Non-blank lines that make a move; fewer are equal by chance.
LEAST = 6
#: A line with more places than this starts no move: it is too common.
_PLACES = 5
#: Names of a moved block that are looked for in both files.
MAX_USED = 100
#: Names that a note lists.
MAX_NAMED = 8

#: Path, hunk and line (both from 0) to the note that replaces the line; empty to hide it.
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


def find_moves(diff: Diff, sides: Sides | None) -> Notes:
    """Find lines that a change removes in one hunk and adds in another, equal but for their indentation.

    With ``sides``, the note of a move to another file names what the moved lines use of their old file, and
    what of that the new file lacks.
    """
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
            for number, start in seeds if len(seeds) <= _PLACES else ():
                block = _alike(run[at:], added[number][start:], notes)
                best = max(best, block, key=lambda candidate: len(candidate[0]))
            if sum(bool(line.text) for line in best[0]) < LEAST:
                at += 1
                continue
            old, new = best
            _note(notes, old, new, "" if sides is None else _uses(diff, sides, old, new))
            at += len(old)
    return notes


def _runs(diff: Diff, mark: Mark) -> Iterator[list[_Line]]:
    parts = Counter(file.path for file in diff.files)
    for file in diff.files:
        if parts[file.path] > 1:  # concatenated diffs: path and line number are ambiguous
            continue
        for number, hunk in enumerate(file.hunks):
            lines = (_Line(file.path, number, at, line) for at, line in enumerate(hunk.lines))
            for has_mark, run in groupby(lines, lambda entry: entry.line.mark == mark):
                if has_mark:
                    yield list(run)


def _alike(old: list[_Line], new: list[_Line], notes: Notes) -> tuple[list[_Line], list[_Line]]:
    """Return the longest common start of both runs, with a constant difference of indentation."""
    if (old[0].path, old[0].hunk) == (new[0].path, new[0].hunk):
        return [], []
    count, shift = 0, new[0].indent - old[0].indent
    for old_line, new_line in zip(old, new, strict=False):
        if old_line.text != new_line.text or new_line.key in notes:
            break
        if old_line.text and new_line.indent - old_line.indent != shift:
            break
        count += 1
    return old[:count], new[:count]


_WORD = re.compile(r"(?<![\w.$])[A-Za-z_$][\w$]*")
_KEYWORD = r"(?:def|class|function|func|fn|const|let|var|static|type|struct|enum|interface|trait|#define)"
_IMPORT = r"(?:import|from|require|use|#include)\b"


def _uses(diff: Diff, sides: Sides, old: list[_Line], new: list[_Line]) -> str:
    """Describe what moved lines use that the old file defines or imports, and what of it the new one lacks."""
    (source, *_), (target, *_) = diff.named(old[0].path), diff.named(new[0].path)
    before, after = sides.before(source), sides.after(target)
    if source is target or before is None or after is None:
        return ""
    block = [line.text for line in new]
    words = Counter(word for text in block for word in _WORD.findall(text))
    others = Counter(_WORD.findall(after)) - words
    # A name that the new file does not hold elsewhere is the more telling one.
    names = sorted((name for name in words if len(name) > 1), key=lambda name: others[name] > 0)
    moved = "\n".join(block)
    used = [name for name in names[:MAX_USED] if _brings(name, before) and not _brings(name, moved)]
    lacking = [name for name in used if not others[name]]
    parts = [f"; it uses {_named(used)}"] if used else []
    parts += [f"; {show(target.path)} neither defines nor imports {_named(lacking)}"] if lacking else []
    return "".join(parts)


def _named(names: Sequence[str]) -> str:
    """Return the first of several names."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(map(show, names[:MAX_NAMED])) + more


def _brings(name: str, text: str) -> bool:
    """Return True if a text defines or imports a name."""
    word = re2.escape(name)
    pattern = rf"(?m)^.*\b{_IMPORT}.*\b{word}\b|\b{_KEYWORD}\s+{word}\b|^\s*(?:export |pub )*{word}\s*[=:]"
    return re2.search(pattern, text) is not None


def _note(notes: dict[tuple[str, int, int], str], old: list[_Line], new: list[_Line], uses: str) -> None:
    count = len(old)
    # The first line, usually the head of the moved code, stays visible in the new place.
    notes.update({line.key: "" for line in (*old, *new[1:])})
    notes[old[0].key] = f"[{count} lines moved to {show(new[0].path)} line {new[0].line.new}]"
    notes[new[1].key] = (
        f"[{count - 1} more lines, moved unchanged from {show(old[0].path)} line {old[0].line.old}{uses}]"
    )
