"""Score the code that a question shows against ``needs.txt``: the symbols that a reader of real changes needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.code.diff import Diff

#: Every third change of a language is kept for the end: nothing was tuned on it.
KEPT_BACK = 3
#: Lines with text of a long definition that suffice, and lines around a needed line that count as near.
ENOUGH, NEAR = 20, 5

#: Path and number of a line.
Place = tuple[str, int]

_TITLE = re.compile(r"^--- ([^\s(),:]+\.\w+)\b")
_ROW = re.compile(r"^ *(\d+)(?:  |$)")
_USE = re.compile(r"^(\S+\.\w+):(\d+): ")
_NEED = re.compile(r"^  (\S+) (\S+) (\d+)-(\d+)(?: > (\S+))?$")


@dataclass(frozen=True, slots=True)
class Need:
    """A symbol that a reader of a change needs, with its lines; with ``mentions``, only those with that name."""

    path: str
    name: str
    first: int
    last: int
    mentions: str = ""

    def is_met(self, source: str, places: set[Place]) -> bool:
        """Return True if the shown lines are enough: a line with the name, or the head and half of the rest."""
        lines = source.split("\n")
        numbers = [number for number in range(self.first, self.last + 1) if lines[number - 1].strip()]
        visible = [number for number in numbers if (self.path, number) in places]
        if self.mentions:
            pattern = re.compile(rf"(?<![\w$#]){re.escape(self.mentions)}(?![\w$])")
            return any(pattern.search(lines[number - 1]) for number in visible)
        return self.first in visible and 2 * len(visible) >= min(len(numbers), 2 * ENOUGH)

    def lines(self) -> Iterator[Place]:
        """Yield its lines and those near to it."""
        for number in range(self.first - NEAR, self.last + NEAR + 1):
            yield self.path, number


@dataclass(frozen=True, slots=True)
class Case:
    """A change and what its reader needs. ``is_final`` marks a change that is kept for the last measurement."""

    language: str
    repository: str
    commit: str
    needs: tuple[Need, ...]
    is_final: bool


def read_cases(path: Path) -> tuple[Case, ...]:
    """Read the list of changes with their needs."""
    blocks: list[tuple[list[str], list[Need]]] = []
    for line in path.read_text("utf-8").splitlines():
        if (match := _NEED.match(line)) is not None:
            file, name, first, last, mentions = match.groups()
            blocks[-1][1].append(Need(file, name, int(first), int(last), mentions or ""))
        elif line and not line.startswith("#"):
            blocks.append((line.split(), []))
    counts: dict[str, int] = {}
    cases: list[Case] = []
    for (language, repository, commit), needs in blocks:
        counts[language] = counts.get(language, 0) + 1
        is_final = counts[language] % KEPT_BACK == 0
        cases.append(Case(language, repository, commit, tuple(needs), is_final))
    return tuple(cases)


def places_in_diff(diff: Diff) -> set[Place]:
    """Return the lines of the new files that a diff shows."""
    return {
        (file.path, line.new)
        for file in diff.files
        for hunk in file.hunks
        for line in hunk.lines
        if line.new is not None
    }


def places_in_text(text: str) -> set[Place]:
    """Return the lines that a context shows, by its titles and line numbers."""
    places: set[Place] = set()
    path = ""
    for row in text.split("\n"):
        if (title := _TITLE.match(row)) is not None:
            path = title[1]
        elif (numbered := _ROW.match(row)) is not None:
            places.add((path, int(numbered[1])))
        elif (use := _USE.match(row)) is not None:
            places.add((use[1], int(use[2])))
    return places
