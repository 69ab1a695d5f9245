"""A unified diff as values: files, hunks, lines, and how a model sees them; the texts on both of its sides.

Files are separated and named here, because one odd header must not hide the other files (see ``sections``).
unidiff numbers the lines of a file. Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from bot.code.change.sections import Flaw, RawHunk, Section, cut, read_names
from bot.core.subjects import Side
from bot.core.text import show
from bot.github.protocol import SourceTree

#: Modes of a symbolic link and of a submodule: the text is a path or a commit, no code.
_SPECIAL = ("120000", "160000")
#: Characters that are shown of one line: longer ones are data or minified.
WIDEST = 400

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
        """Return its number in the old (LEFT) or new (RIGHT) file, or None if it is not in that file."""
        return self.old if side == "LEFT" else self.new


@dataclass(frozen=True, slots=True)
class Hunk:
    """A run of neighbouring lines. ``context`` is the text behind the ``@@``, often the function around."""

    old_start: int
    new_start: int
    context: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The change of one file. ``path`` is the new name, or the old one if the file was deleted."""

    path: str
    old_path: str | None
    change: Change
    binary: bool = False
    mode: str | None = None
    hunks: tuple[Hunk, ...] = ()

    @property
    def added(self) -> int:
        """Number of added lines."""
        return sum(line.mark == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """Number of removed lines."""
        return sum(line.mark == "-" for hunk in self.hunks for line in hunk.lines)

    def commentable(self, side: Side) -> frozenset[int]:
        """Return the lines that can take a comment: changed lines on their own side, context on both."""
        numbers = (line.number(side) for hunk in self.hunks for line in hunk.lines)
        return frozenset(number for number in numbers if number is not None)


@dataclass(frozen=True)
class Diff:
    """The readable files of a diff; ``flaws`` lists the parts that could not be read."""

    files: tuple[FileDiff, ...] = ()
    flaws: tuple[Flaw, ...] = ()

    @cached_property
    def _by_path(self) -> dict[str, list[FileDiff]]:
        by_path: dict[str, list[FileDiff]] = {}
        by_old_path: dict[str, list[FileDiff]] = {}
        for file in self.files:
            by_path.setdefault(file.path, []).append(file)
            if file.old_path is not None:
                by_old_path.setdefault(file.old_path, []).append(file)
        return by_old_path | by_path

    def named(self, path: str) -> tuple[FileDiff, ...]:
        """Return the sections of a file, by its new name, else by its old one.

        Concatenated diffs and copies of one file have several.
        """
        return tuple(self._by_path.get(path, ()))

    def only(self, paths: Set[str]) -> Diff:
        """Return the diff with only the files of these (new) names."""
        return Diff(tuple(file for file in self.files if file.path in paths), self.flaws)


def lines_shown(files: Iterable[FileDiff]) -> dict[str, frozenset[int]]:
    """Return the lines of the new files that their hunks show, by path."""
    lines: dict[str, frozenset[int]] = {}
    for file in files:
        lines[file.path] = lines.get(file.path, frozenset()) | file.commentable("RIGHT")
    return lines


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


def changed_paths(text: str) -> tuple[str, ...]:
    """Return the new and the old name of each file in a unified diff."""
    return tuple(name for file in parse(text).files for name in (file.path, file.old_path) if name)


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
        hunks = _number(section.hunks)
    except UnidiffParseError as error:
        flaws.append(Flaw(path, section.line, str(error).strip()))
        return
    header = section.header
    is_binary = any(line.startswith(("Binary files ", "GIT binary patch")) for line in header)
    files.append(FileDiff(path, old, _change(header, old, new), is_binary, _mode(header), hunks))


def _mode(header: Sequence[str]) -> str | None:
    """Return the new mode, or that of a link or a submodule; None for another file whose mode did not change."""
    for line in header:
        mode = line.rpartition(" ")[2].strip()
        is_special = mode in _SPECIAL and line.startswith(("index ", "deleted file mode "))
        if is_special or line.startswith(("new mode ", "new file mode ")):
            return mode
    return None


def _number(hunks: Sequence[RawHunk]) -> tuple[Hunk, ...]:
    """Let unidiff number the lines of a file's hunks."""
    text = "--- a\n+++ b\n"
    for raw in hunks:
        old_start, old_count, new_start, new_count = raw.counts
        text += f"@@ -{old_start},{old_count} +{new_start},{new_count} @@\n" + "\n".join((*raw.lines, ""))
    numbered: list[Hunk] = []
    for raw, hunk in zip(hunks, PatchSet(text)[0] if hunks else (), strict=True):
        lines: list[DiffLine] = []
        for line in hunk:
            if line.line_type in ("+", "-", " "):
                # Any other control character belongs to the line.
                content = line.value.removesuffix("\n").removesuffix("\r")
                mark = cast(Mark, line.line_type)
                lines.append(DiffLine(mark, line.source_line_no, line.target_line_no, content))
        numbered.append(Hunk(raw.counts[0], raw.counts[2], raw.context, tuple(lines)))
    return tuple(numbered)


def _change(header: list[str], old: str | None, new: str | None) -> Change:
    if old is None:
        return "added"
    if new is None:
        return "deleted"
    if any(line.startswith("copy to ") for line in header):
        return "copied"
    return "renamed" if old != new else "modified"


def apply_hunks(text: str, hunks: Collection[Hunk], *, reverse: bool) -> str | None:
    """Apply the hunks to a text, or revert them. Return None if a line of them does not match.

    The text is as a ``SourceTree`` reads it: without a byte order mark or carriage returns at the ends of lines.
    """
    lines = text.split("\n")
    result: list[str] = []
    position = 0
    for hunk in hunks:
        expected = [_content(line) for line in hunk.lines if line.mark != ("-" if reverse else "+")]
        new = [_content(line) for line in hunk.lines if line.mark != ("+" if reverse else "-")]
        start = (hunk.new_start if reverse else hunk.old_start) - (1 if expected else 0)
        if start < position or lines[start : start + len(expected)] != expected:
            return None
        result += lines[position:start]
        result += new
        position = start + len(expected)
    return "\n".join(result + lines[position:])


def _content(line: DiffLine) -> str:
    """Return the text of a line without a byte order mark."""
    return line.text.removeprefix("\ufeff") if 1 in (line.old, line.new) else line.text


class Sides:
    """The texts of a change's files on both sides. ``tree`` holds the new side, or the old one if ``is_old``.

    One side is read, the other computed from the diff. A file that does not match the diff (another commit, not
    text) has neither.
    """

    def __init__(self, tree: SourceTree, *, is_old: bool = False) -> None:
        self.tree = tree
        self.is_old = is_old
        # A file in the place of a link is one that was deleted and one that was added.
        self._texts: dict[tuple[str, Change], tuple[str | None, str | None]] = {}

    def before(self, file: FileDiff) -> str | None:
        """Return the text before the change, or None if there was none or it is unknown."""
        return None if file.old_path is None or file.change == "added" else self._both(file)[0]

    def after(self, file: FileDiff) -> str | None:
        """Return the text after the change, or None if there is none or it is unknown."""
        return None if file.change == "deleted" else self._both(file)[1]

    def _both(self, file: FileDiff) -> tuple[str | None, str | None]:
        key = file.path, file.change
        if key not in self._texts:
            self._texts[key] = self._read(file)
        return self._texts[key]

    def _read(self, file: FileDiff) -> tuple[str | None, str | None]:
        if file.change == ("added" if self.is_old else "deleted"):
            text = apply_hunks("", file.hunks, reverse=not self.is_old)
            return text, text
        source = self.tree.read(file.old_path or file.path if self.is_old else file.path)
        other = None if source is None else apply_hunks(source, file.hunks, reverse=not self.is_old)
        if other is None:
            # The diff does not apply: the file belongs to another change on both sides.
            return None, None
        other = other.encode("utf-8", "replace").decode()
        return (source, other) if self.is_old else (other, source)


def render(file: FileDiff, lines: Iterable[str]) -> str:
    """Render a file's header and its lines for the model. A header names all that changed but lines."""
    facts: list[str] = [] if file.change == "modified" else [file.change]
    if file.change in ("renamed", "copied"):
        facts = [f"{file.change} from {show(file.old_path or '')}"]
    if file.mode:
        facts.append(f"mode {file.mode}")
    return "\n".join((f"=== {show(file.path)}" + (f" ({', '.join(facts)})" if facts else ""), *lines))


def render_line(line: DiffLine) -> str:
    """Render a line with its number in the new file (none for a removed line) and its mark."""
    text = show(line.text)
    text = text if len(text) <= WIDEST else f"{text[:WIDEST]}…"
    return f"{'' if line.new is None else line.new:>5} {line.mark} {text}"
