"""Cut a change into pieces that fit a model call, most urgent first, and list everything that is left out.

Pure. No piece costs more tokens than the budget, whatever the change contains (see ``estimate``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bot.code.diff import Diff, FileDiff, Hunk
from bot.code.file_classes import claim, language, risk, skip_reason, topic
from bot.code.moves import Notes, Texts, find_moves
from bot.code.page import Skipped
from bot.code.rendering import WIDEST, render, render_line
from bot.code.syntax import compares
from bot.core.config import gitignore
from bot.core.text import estimate, show

# Most files in the list, and characters of a name in it.
_LISTED, _NAME = 150, 200

#: Reasons to skip a file with changed layout: compared by its grammar, or line by line without one.
REFORMATTED = "layout only, the code means the same"
SPACED = "layout only, white space inside lines"


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a change for one model call: rendered text and an upper limit of its tokens."""

    text: str
    tokens: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Packed:
    """A change, ready for review. ``diff`` holds only the files that are shown.

    ``files`` lists every file of the change with its size and its part. ``reformatted`` describes a change of
    layout only, and is empty for every other change.
    """

    pieces: tuple[Piece, ...]
    diff: Diff
    skipped: tuple[Skipped, ...]
    files: tuple[str, ...] = ()
    reformatted: str = ""
    omitted: tuple[str, ...] = ()
    """Files that the forge did not include in the diff."""


def pack(
    diff: Diff,
    budget: int,
    max_pieces: int,
    ignore: Sequence[str] = (),
    omitted: Iterable[str] = (),
    same: Mapping[str, frozenset[int]] | None = None,
    only: Sequence[str] = (),
    texts: Texts | None = None,
) -> Packed:
    """Filter, order and pack a change.

    ``budget`` is in tokens per piece. ``ignore`` are patterns as in ``.gitignore``, validated by the config.
    ``omitted`` are files that the forge did not include. ``same`` are hunks (from 0) by path whose code means the
    same before and after: they are left out. ``only`` are patterns of the files that count; empty = all. ``texts``
    are the files before and after the change, if they are known.
    """
    omitted = tuple(omitted)
    files, skipped = _sort_out(diff, ignore, only)
    files, equal = _only_meaning(files, same or {})
    skipped += equal
    skipped += [Skipped(path=path, reason="too large to be shown") for path in omitted]
    skipped += [
        Skipped(path=flaw.path or "(the diff)", reason=f"unreadable: {flaw.reason}") for flaw in diff.flaws
    ]
    filling = _Filling(budget, max_pieces)
    notes = find_moves(Diff(tuple(files)), texts)
    for group in _groups(files):
        filling.add([(file, list(_blocks(file, budget, notes))) for file in group])
    pieces = filling.pieces()
    skipped += filling.skipped
    return Packed(
        pieces,
        diff.only({path for piece in pieces for path in piece.paths}),
        tuple(skipped),
        _listed(diff, pieces, skipped),
        omitted=omitted,
        reformatted="" if files or omitted or diff.flaws else _reformatted(equal),
    )


def _only_meaning(
    files: Sequence[FileDiff], same: Mapping[str, frozenset[int]]
) -> tuple[list[FileDiff], list[Skipped]]:
    """Return the files without the hunks that change no meaning, and the files without any other hunk."""
    remaining: list[FileDiff] = []
    unchanged: list[Skipped] = []
    for file in files:
        equal = same.get(file.path, frozenset())
        hunks = tuple(hunk for number, hunk in enumerate(file.hunks) if number not in equal)
        if equal and not hunks:
            unchanged.append(Skipped(path=file.path, reason=REFORMATTED if compares(file.path) else SPACED))
        else:
            remaining.append(replace(file, hunks=hunks) if equal else file)
    return remaining, unchanged


def _reformatted(equal: Sequence[Skipped]) -> str:
    """Describe the files with changed layout in one phrase."""
    if any(skipped.reason == SPACED for skipped in equal):
        return "only layout and white space inside lines changed"
    return "the code means the same before and after" if equal else ""


def _listed(diff: Diff, pieces: Sequence[Piece], skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """Return one line per file: its change and size, and the part that shows it or the reason that none does."""
    reasons = {skip.path: skip.reason for skip in skipped}
    lines = []
    for file in diff.files:
        parts = [str(number) for number, piece in enumerate(pieces, start=1) if file.path in piece.paths]
        where = f"part {', '.join(parts)}" if parts else f"not shown: {reasons.get(file.path, 'nothing to show')}"
        lines.append(f"{show(file.path)[:_NAME]} ({file.change}, +{file.added} -{file.removed}): {where}")
    more = len(lines) - _LISTED
    return tuple([*lines[:_LISTED], f"and {more} more files"] if more > 0 else lines)


def _sort_out(diff: Diff, ignore: Sequence[str], only: Sequence[str]) -> tuple[list[FileDiff], list[Skipped]]:
    ignored, included = gitignore(ignore), gitignore(only)
    files: list[FileDiff] = []
    skipped: list[Skipped] = []
    for file in diff.files:
        path = file.path.encode("utf-8", "replace").decode()
        if only and not included.match_file(path):
            reason: str | None = "pulls.paths"
        else:
            reason = "review.ignore" if ignored.match_file(path) else skip_reason(file)
        if reason is None:
            files.append(file)
        else:
            skipped.append(Skipped(path=file.path, reason=reason))
    return sorted(files, key=_urgency), skipped


def _urgency(file: FileDiff) -> tuple[bool, int, str, int, str]:
    """Sort by risk, then language, then size: one huge file must not displace many small ones.

    Files that the change itself marks as vendored or generated come last.
    """
    return claim(file) is not None, risk(file), language(file.path), file.added + file.removed, file.path


class _Block(NamedTuple):
    """A file, or a part of one, as text."""

    text: str
    tokens: int


@dataclass(slots=True)
class _Box:
    """A piece while it is being filled."""

    texts: list[str] = field(default_factory=list)
    paths: dict[str, None] = field(default_factory=dict)
    tokens: int = 0


class _Filling:
    """At most ``most`` pieces of at most ``budget`` tokens, filled group by group."""

    def __init__(self, budget: int, most: int) -> None:
        self._budget, self._most = budget, most
        self._boxes: list[_Box] = []
        self.skipped: list[Skipped] = []

    def pieces(self) -> tuple[Piece, ...]:
        """Return the filled pieces."""
        return tuple(Piece("\n\n".join(box.texts), box.tokens, tuple(box.paths)) for box in self._boxes)

    def add(self, group: Sequence[tuple[FileDiff, Sequence[_Block]]]) -> None:
        """Put a group into one piece if it fits, else each block wherever there is room."""
        together = self._room(sum(block.tokens for _, blocks in group for block in blocks))
        for file, blocks in group:
            placed = [self._place(file.path, block, together) for block in blocks]
            if not all(placed):
                part = "the rest of it is " if any(placed) else ""
                self.skipped.append(Skipped(path=file.path, reason=f"{part}beyond the limit of one review"))
            if any(len(line.text) > WIDEST for hunk in file.hunks for line in hunk.lines):
                self.skipped.append(Skipped(path=file.path, reason=f"lines are shown up to {WIDEST} characters"))

    def _room(self, tokens: int) -> _Box | None:
        """Return the first box with that much room, or a new one; None if there can be none."""
        if tokens > self._budget:
            return None
        box = next((box for box in self._boxes if box.tokens + tokens <= self._budget), None)
        if box is None and len(self._boxes) < self._most:
            self._boxes.append(box := _Box())
        return box

    def _place(self, path: str, block: _Block, together: _Box | None) -> bool:
        box = together or self._room(block.tokens)
        if box is None:
            return False
        box.texts.append(block.text)
        box.paths[path] = None
        box.tokens += block.tokens
        return True


def _groups(files: Sequence[FileDiff]) -> list[list[FileDiff]]:
    """Group files that belong together: a source file with its tests, and all settings. Keep the order."""
    groups: dict[str, list[FileDiff]] = {}
    for file in files:
        groups.setdefault(topic(file), []).append(file)
    return list(groups.values())


def _blocks(file: FileDiff, budget: int, notes: Notes) -> Iterator[_Block]:
    """Yield the file as one block, or as several if it is too large for a piece, cut between lines."""
    lines: list[str] = []
    head = tokens = estimate(render(file, ())) + _BETWEEN
    for number, hunk in enumerate(file.hunks):
        for row in _rows(hunk, file.path, number, notes):
            cost = estimate(row) + 1
            if lines and tokens + cost > budget:
                yield _Block(render(file, lines), tokens)
                lines, tokens = [], head
            lines.append(row)
            tokens += cost
    yield _Block(render(file, lines), tokens)


# The blank line between two blocks, in tokens.
_BETWEEN = 2


def _rows(hunk: Hunk, path: str, number: int, notes: Notes) -> Iterator[str]:
    yield f"@@ {show(hunk.context)}".rstrip()
    for at, line in enumerate(hunk.lines):
        note = notes.get((path, number, at))
        if note is None:
            yield render_line(line)
        elif note:
            yield f"      {note}"
