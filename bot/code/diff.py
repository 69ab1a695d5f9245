"""A unified diff as values: files, hunks, lines, and which of the lines can take a comment. Pure, and total.

Files are told apart and named here, because one odd header must not hide the other files (see ``sections``); the
lines of a hunk are numbered by unidiff.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from bot.code.sections import Flaw, RawHunk, Section, cut, read_names
from bot.core.subjects import Side

Change = Literal["added", "deleted", "modified", "renamed", "copied"]
Mark = Literal["+", "-", " "]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a hunk; ``text`` is without its mark and its line ending."""

    mark: Mark
    old: int | None
    new: int | None
    text: str

    def number(self, side: Side) -> int | None:
        """Its number in the old (LEFT) or new (RIGHT) file; None where it does not stand there."""
        return self.old if side == "LEFT" else self.new


@dataclass(frozen=True, slots=True)
class Hunk:
    """A run of neighbouring lines. ``context`` is what git shows behind the ``@@``: often the function around."""

    old_start: int
    new_start: int
    context: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What happened to one file. ``path`` is the new name, and the old one where the file was deleted."""

    path: str
    old_path: str | None
    change: Change
    binary: bool = False
    mode: str | None = None
    hunks: tuple[Hunk, ...] = ()

    @property
    def added(self) -> int:
        """Lines that were added."""
        return sum(line.mark == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """Lines that were taken away."""
        return sum(line.mark == "-" for hunk in self.hunks for line in hunk.lines)

    def commentable(self, side: Side) -> frozenset[int]:
        """Line numbers on that side that GitHub accepts: changed lines on their own side, context on both."""
        numbers = (line.number(side) for hunk in self.hunks for line in hunk.lines)
        return frozenset(number for number in numbers if number is not None)


@dataclass(frozen=True)
class Diff:
    """Everything that could be read, and in ``flaws`` everything that could not."""

    files: tuple[FileDiff, ...] = ()
    flaws: tuple[Flaw, ...] = ()

    @cached_property
    def _by_path(self) -> dict[str, list[FileDiff]]:
        named: dict[str, list[FileDiff]] = {}
        for file in self.files:
            for name in {file.path, file.old_path}:
                if name is not None:
                    named.setdefault(name, []).append(file)
        return named

    def named(self, path: str) -> tuple[FileDiff, ...]:
        """The parts about a file, by its new or old name. More than one only where diffs were strung together."""
        return tuple(self._by_path.get(path, ()))

    def only(self, paths: Set[str]) -> Diff:
        """The same diff with the files of these (new) names alone."""
        return Diff(tuple(file for file in self.files if file.path in paths), self.flaws)


def parse(text: str) -> Diff:
    """Read a unified diff (``git diff``, ``diff -u``, a mailed patch). Never raises: see ``Diff.flaws``."""
    sections = cut(text)
    if not sections and text.strip():
        return Diff(flaws=(Flaw("", 1, "no file header (--- and +++, or diff --git) in this text"),))
    files: list[FileDiff] = []
    flaws: list[Flaw] = []
    for section in sections:
        _read(section, files, flaws)
    return Diff(tuple(files), tuple(flaws))


def _read(section: Section, files: list[FileDiff], flaws: list[Flaw]) -> None:
    old, new = read_names(section.header)
    path = new if new is not None else old
    if not path:
        flaws.append(Flaw("", section.line, "the header names no file"))
        return
    flaws += [Flaw(path, line, reason) for line, reason in section.flaws]
    if section.flaws and not section.hunks:
        return
    try:
        hunks = tuple(_number(raw) for raw in section.hunks)
    except UnidiffParseError as error:
        flaws.append(Flaw(path, section.line, str(error).strip()))
        return
    files.append(
        FileDiff(path, old, _change(section.header, old, new), _is_binary(section.header), _mode(section), hunks)
    )


def _number(raw: RawHunk) -> Hunk:
    """Let unidiff number the lines of a hunk."""
    old_start, old_count, new_start, new_count = raw.counts
    head = f"--- a\n+++ b\n@@ -{old_start},{old_count} +{new_start},{new_count} @@\n"
    patch = PatchSet(head + "\n".join(raw.lines) + "\n")
    lines = tuple(
        DiffLine(cast(Mark, line.line_type), line.source_line_no, line.target_line_no, _text(line.value))
        for line in patch[0][0]
        if line.line_type in ("+", "-", " ")
    )
    return Hunk(old_start, new_start, raw.context, lines)


def _text(value: str) -> str:
    """Without ``\\n`` or ``\\r\\n``; any other control character belongs to the line."""
    return value.removesuffix("\n").removesuffix("\r")


def _change(header: list[str], old: str | None, new: str | None) -> Change:
    if old is None:
        return "added"
    if new is None:
        return "deleted"
    if any(line.startswith("copy to ") for line in header):
        return "copied"
    return "renamed" if old != new else "modified"


def _is_binary(header: list[str]) -> bool:
    return any(line.startswith(("Binary files ", "GIT binary patch")) for line in header)


def _mode(section: Section) -> str | None:
    """The new file mode, where the change is (also) one of mode."""
    modes = (line for line in section.header if line.startswith(("new mode ", "new file mode ")))
    return next((line.rsplit(" ", 1)[1].strip() for line in modes), None)


def replaced(text: str, hunks: Collection[Hunk], *, back: bool) -> str | None:
    """The text with the hunks applied, or taken back; None where a line of them is not where it should be."""
    lines = text.split("\n")
    made: list[str] = []
    at = 0
    for hunk in hunks:
        there = [line.text for line in hunk.lines if line.mark != ("-" if back else "+")]
        new = [line.text for line in hunk.lines if line.mark != ("+" if back else "-")]
        start = (hunk.new_start if back else hunk.old_start) - (1 if there else 0)
        if start < at or lines[start : start + len(there)] != there:
            return None
        made += lines[at:start]
        made += new
        at = start + len(there)
    return "\n".join(made + lines[at:])
