"""A change that is too large for one question, split by symbol: what is removed stays with what replaces it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bot.code.diff import DiffLine, FileDiff, Hunk
from bot.code.moves import Texts
from bot.code.syntax import Definition, definitions

#: Hunk and line, both from 0.
Place = tuple[int, int]
_HEAD = re.compile(
    r"^\s*(?:[\w@()]+\s+){0,5}(?:def|class|function|func|fn|struct|interface|trait|enum|type|impl|module)\b\s+\S"
)


@dataclass(frozen=True)
class Symbols:
    """The functions and classes of a changed file, by line, on both sides; empty if a side is unknown."""

    file: FileDiff
    old: Mapping[int, str] = field(default_factory=dict)
    new: Mapping[int, str] = field(default_factory=dict)
    heads: frozenset[int] = frozenset()
    """Lines of the new file that are the head of a function or class."""

    @classmethod
    def of(cls, file: FileDiff, texts: Texts | None) -> Symbols:
        before, after = (texts.before(file), texts.after(file)) if texts is not None else (None, None)
        old = definitions(before, file.old_path or file.path) if before is not None else ()
        new = definitions(after, file.path) if after is not None else ()
        heads = (number for definition in new for number in range(definition.first, definition.body + 1))
        return cls(file, _by_line(old), _by_line(new), frozenset(heads))

    @property
    def removed(self) -> frozenset[str]:
        """Bare names that only the old file defines."""
        return frozenset(map(_bare, self.old.values())) - frozenset(map(_bare, self.new.values()))

    @property
    def added(self) -> frozenset[str]:
        """Bare names that only the new file defines."""
        return frozenset(map(_bare, self.new.values())) - frozenset(map(_bare, self.old.values()))

    def keys(self, elsewhere: Collection[str]) -> dict[Place, str]:
        """Return the symbol of each line of the hunks. ``elsewhere`` are bare names that other files now define.

        A removed line counts to the function of its name; if that is gone, to the added lines that stand in its
        place. Lines outside of all functions and classes count to their hunk.
        """
        known_names = frozenset(self.new.values())
        keys: dict[Place, str] = {}
        for number, hunk in enumerate(self.file.hunks):
            for run in _runs(hunk):
                added = [self.new.get(line.new or 0, "") for _, line in run if line.mark == "+"]
                for at, line in run:
                    name = self.old.get(line.old or 0, "") if line.mark == "-" else self.new.get(line.new or 0, "")
                    is_gone = line.mark == "-" and name not in known_names and _bare(name) not in elsewhere
                    keys[number, at] = (added[0] if is_gone and added else name) or f"\0{number}"
        return keys

    def is_signature(self, line: DiffLine) -> bool:
        """Return True if an added line is in the head of a function or class."""
        return line.new in self.heads if self.new else _HEAD.match(line.text) is not None


def _runs(hunk: Hunk) -> Iterator[list[tuple[int, DiffLine]]]:
    """Yield the lines of a hunk with their places: those between context lines together."""
    for _, run in groupby(enumerate(hunk.lines), lambda entry: entry[1].mark == " "):
        yield list(run)


def _by_line(candidates: Sequence[Definition]) -> dict[int, str]:
    """Return the outermost function around each line, else the innermost class or call with a function."""
    names: dict[int, str] = {}
    by_size = sorted(candidates, key=lambda definition: definition.first - definition.last)
    for definition in by_size:
        if definition.kind == "class" or not definition.name:
            names.update(dict.fromkeys(range(definition.first, definition.last + 1), definition.qualified))
    inside: set[int] = set()
    for definition in by_size:
        if definition.kind == "function" and definition.name and definition.first not in inside:
            lines = range(definition.first, definition.last + 1)
            names.update(dict.fromkeys(lines, definition.qualified))
            inside.update(lines)
    return names


def _bare(name: str) -> str:
    return name.rpartition(".")[2]
