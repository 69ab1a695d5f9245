"""Score the code that a question shows against ``needs.txt``: the symbols that a reader of real changes needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.code.change.diff import Diff

#: Every third change of a language is kept for the end: nothing was tuned on it.
KEPT_BACK = 3
#: Lines with text of a long definition that suffice, and lines around a needed line that count as near.
ENOUGH, NEAR = 20, 5

#: Path and number of a line.
Place = tuple[str, int]

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


def places_in_text(text: str, read: Callable[[str], str | None]) -> set[Place]:
    """Return the lines that a context shows, by the numbers above them. ``read`` returns the text of a file."""
    places: set[Place] = set()
    path, number, lines = "", 0, list[str]()
    for row in filter(None, text.split("\n")):
        if row.startswith("--- "):
            path = row[4:]
            lines = (read(path) or "").split("\n")
        elif row.startswith(("@ ", "... ")):
            number = int(row.split()[1])
        else:
            while not lines[number - 1].strip():  # blank lines are not shown
                number += 1
            places.add((path, number))
            number += 1
    return places
