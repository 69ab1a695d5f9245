"""The lines that a fix takes away: read from its patch, found again in the file at the base commit.

A published patch was often made against another commit than the one it is said to apply to, so the numbers
in its hunk headers are a hint and the text of the hunk decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from bot.errors import BouncerError
from bot.review.diff import FileDiff, Hunk, parse

_TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "e2e", "spec", "specs"})
_TEST_NAME = re.compile(
    r"^(test_.+|.+_test|conftest|tests?)\.\w+$|^.+\.(test|spec)\.\w+$|^.+Tests?\.(java|kt|cs)$"
)
_DOC_FOLDERS = frozenset({"doc", "docs", "documentation"})
#: Lines of context around a change in a diff of git's.
_CONTEXT = 3
_DOC_SUFFIXES = frozenset({".md", ".rst", ".adoc"})


class FixError(BouncerError):
    """A patch that cannot be read, or that does not belong to the commit it is said to fix."""


def parse_fix(patch: str) -> tuple[FileDiff, ...]:
    """Every file of a fix. Raises FixError where a part of the patch cannot be read.

    Up to three blank lines of context are put back at the end, where whoever published the patch stripped it.
    """
    diffs = [parse(patch.removesuffix("\n") + "\n" + " \n" * blank) for blank in range(_CONTEXT + 1)]
    whole = next((diff for diff in diffs if not diff.flaws), None)
    if whole is None:
        raise FixError(f"the patch cannot be read: {diffs[0].flaws[0]}")
    return whole.files


def is_test(path: str) -> bool:
    """Whether a path is test code: by whole path components and file name, so ``latest/contest.py`` is not."""
    parts = PurePosixPath(path).parts
    return any(part.lower() in _TEST_FOLDERS for part in parts[:-1]) or bool(_TEST_NAME.match(parts[-1]))


def is_documentation(path: str) -> bool:
    """Whether a path is prose about the program: by folder (``docs/``) or suffix."""
    file = PurePosixPath(path)
    return file.suffix.lower() in _DOC_SUFFIXES or any(part.lower() in _DOC_FOLDERS for part in file.parts[:-1])


def removed_lines(file: FileDiff, content: bytes) -> tuple[int, ...]:
    """The 1-based numbers, in ``content``, of the lines that ``file`` takes away, ascending.

    Each hunk is looked for by its text, context included; where it occurs several times, the place nearest to
    the header's number (moved by as much as the hunk before it) wins. Where the context differs it is dropped
    line by line from both ends. Raises FixError where a hunk is nowhere.
    """
    lines = [line.removesuffix("\r") for line in content.decode("utf-8", "replace").split("\n")]
    found: list[int] = []
    shift = floor = 0
    for hunk in file.hunks:
        if not any(line.mark == "-" for line in hunk.lines):
            continue
        place = _locate(hunk, lines, hunk.old_start - 1 + shift, floor)
        if place is None:
            raise FixError(f"removed lines of {file.old_path} (line {hunk.old_start}) are not in the base commit")
        shift = place - (hunk.old_start - 1)
        old = [line for line in hunk.lines if line.mark != "+"]
        numbers = [place + index + 1 for index, line in enumerate(old) if line.mark == "-"]
        floor = numbers[-1]
        found += numbers
    return tuple(found)


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as inclusive runs: 3 4 5 9 -> (3, 5) (9, 9)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] + 1 == number:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _locate(hunk: Hunk, lines: list[str], expected: int, floor: int) -> int | None:
    """Where the hunk's first old line is (0-based); its removed lines start at ``floor`` or later."""
    old = [line for line in hunk.lines if line.mark != "+"]
    wanted = [line.text for line in old]
    removed = [index for index, line in enumerate(old) if line.mark == "-"]
    first, last = removed[0], removed[-1] + 1
    for dropped in range(max(first, len(wanted) - last) + 1):
        start, stop = min(dropped, first), max(len(wanted) - dropped, last)
        places = [place - start for place in _occurrences(wanted[start:stop], lines)]
        if usable := [place for place in places if place + first >= floor]:
            return min(usable, key=lambda place: (abs(place - expected), place))
    return None


def _occurrences(needle: list[str], lines: list[str]) -> Iterable[int]:
    """Every place where the lines of ``needle`` stand one after the other."""
    width = len(needle)
    for start in range(len(lines) - width + 1):
        if lines[start] == needle[0] and lines[start : start + width] == needle:
            yield start
