"""Cut a change into pieces that fit a model call, most urgent first, and list everything that is left out.

Pure. No piece costs more tokens than the budget, whatever the change contains (see ``estimate``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.code.change.diff import WIDEST, Diff, FileDiff, Sides
from bot.code.change.file_classes import claim, language, risk, skip_reason
from bot.code.change.filling import Filling, Piece, fill
from bot.code.change.moves import find_moves
from bot.code.parsing.grammars import compares
from bot.core.actions import REFORMATTED, SPACED, Skipped
from bot.core.config import gitignore
from bot.core.text import show

# Most files in the list, and characters of a name in it.
_LISTED, _NAME = 150, 200

#: The end of the reason for what did not fit.
BEYOND = "beyond the limit of one review"

Hunks = Mapping[str, frozenset[int]]


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
    unchanged: tuple[str, ...] = ()
    """Files that are left out because an earlier review read all that matters of them."""

    @property
    def files_shown(self) -> tuple[FileDiff, ...]:
        """The files of all pieces, of a split file its parts."""
        return tuple(file for piece in self.pieces for file in piece.files)


@dataclass(frozen=True, slots=True)
class ChangeFilters:
    """The files and hunks of a change that are packed. Hunks are numbers from 0, by path."""

    ignore: Sequence[str] = ()
    """Patterns as in ``.gitignore`` of files that are left out, validated by the config."""
    only: Sequence[str] = ()
    """Patterns of the files that count; empty = all."""
    same: Hunks = field(default_factory=dict)
    """Hunks whose code means the same before and after: they are left out."""
    unchanged: Hunks = field(default_factory=dict)
    """Hunks that an earlier review read: they are left out, too."""


def pack(
    diff: Diff,
    budget: int,
    max_pieces: int,
    filters: ChangeFilters = ChangeFilters(),
    omitted: Sequence[str] = (),
    sides: Sides | None = None,
) -> Packed:
    """Filter, order and pack a change.

    ``budget`` is in tokens per piece. ``omitted`` are files that the forge did not include. ``sides`` has the
    files before and after the change, if they are known.
    """
    files, skipped = _sort_out(diff, omitted, filters)
    files, same_files, read_files = _without_known_hunks(files, filters)
    skipped += same_files
    skipped += [
        Skipped(path=flaw.path or "(the diff)", reason=f"unreadable: {flaw.reason}") for flaw in diff.flaws
    ]
    notes = find_moves(Diff(tuple(files)), sides)
    filling, pieces = fill(files, budget, max_pieces, notes, sides)
    skipped += _beyond(files, filling)
    left_out = [*skipped, *(Skipped(path=path, reason="unchanged since the last review") for path in read_files)]
    return Packed(
        pieces,
        diff.only({path for piece in pieces for path in piece.paths}),
        tuple(skipped),
        _listed(diff, pieces, left_out),
        omitted=tuple(omitted),
        reformatted="" if files or read_files or omitted or diff.flaws else _reformatted(same_files),
        unchanged=tuple(read_files),
    )


def _beyond(files: Sequence[FileDiff], filling: Filling) -> Iterator[Skipped]:
    """Yield the files that are not shown in full."""
    for file in files:
        # A file without lines, such as a renamed one, has no parts.
        placed = filling.placed.get(id(file), ())
        if not all(placed):
            part = "the rest of it is " if any(placed) else ""
            yield Skipped(path=file.path, reason=f"{part}{BEYOND}")
        if any(len(line.text) > WIDEST for hunk in file.hunks for line in hunk.lines):
            yield Skipped(path=file.path, reason=f"lines are shown up to {WIDEST} characters")


def _without_known_hunks(
    files: Sequence[FileDiff], filters: ChangeFilters
) -> tuple[list[FileDiff], list[Skipped], list[str]]:
    """Leave out the hunks that change no meaning, and those that an earlier review read.

    Return the files with other hunks, those whose hunks all change no meaning, and those that were read before.
    """
    remaining: list[FileDiff] = []
    same_files: list[Skipped] = []
    read_files: list[str] = []
    for file in files:
        same_hunks, read_hunks = filters.same.get(file.path, frozenset()), filters.unchanged.get(file.path)
        hunks = [(number, hunk) for number, hunk in enumerate(file.hunks) if number not in same_hunks]
        rest = tuple(hunk for number, hunk in hunks if number not in (read_hunks or ()))
        if same_hunks and not hunks:
            same_files.append(Skipped(path=file.path, reason=REFORMATTED if compares(file.path) else SPACED))
        elif read_hunks is not None and not rest:
            read_files.append(file.path)
        else:
            remaining.append(replace(file, hunks=rest) if len(rest) < len(file.hunks) else file)
    return remaining, same_files, read_files


def _reformatted(same_files: Sequence[Skipped]) -> str:
    """Describe the files with changed layout in one phrase."""
    if any(skipped.reason == SPACED for skipped in same_files):
        return "only layout and white space inside lines changed"
    return "the code means the same before and after" if same_files else ""


def _listed(diff: Diff, pieces: Sequence[Piece], skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """Return one line per file: its change and size, and the part that shows it or the reason that none does."""
    reasons = {skip.path: skip.reason for skip in skipped}
    paths_of_parts = [frozenset(piece.paths) for piece in pieces]
    lines = []
    for file in diff.files:
        parts = [str(number) for number, paths in enumerate(paths_of_parts, start=1) if file.path in paths]
        where = f"part {', '.join(parts)}" if parts else f"not shown: {reasons.get(file.path, 'nothing to show')}"
        lines.append(f"{show(file.path)[:_NAME]} ({file.change}, +{file.added} -{file.removed}): {where}")
    more = len(lines) - _LISTED
    return tuple([*lines[:_LISTED], f"and {more} more files"] if more > 0 else lines)


def _sort_out(diff: Diff, omitted: Sequence[str], filters: ChangeFilters) -> tuple[list[FileDiff], list[Skipped]]:
    """Return the files to pack, most urgent first, and those that are left out."""
    ignored, included = gitignore(filters.ignore), gitignore(filters.only)

    def reason(file: FileDiff) -> str | None:
        path = file.path.encode("utf-8", "replace").decode()
        if filters.only and not included.match_file(path):
            return "pulls.paths"
        return "review.ignore" if ignored.match_file(path) else skip_reason(file)

    reasons = [(file, reason(file)) for file in diff.files]
    skipped = [Skipped(path=file.path, reason=why) for file, why in reasons if why is not None]
    hidden = (FileDiff(path, None, "added") for path in omitted)
    skipped += [Skipped(path=file.path, reason=reason(file) or "too large to be shown") for file in hidden]
    return sorted((file for file, why in reasons if why is None), key=_urgency), skipped


def _urgency(file: FileDiff) -> tuple[bool, int, str, int, str]:
    """Sort by risk, then language, then size: one huge file must not displace many small ones.

    Files that the change itself marks as vendored or generated come last.
    """
    return claim(file) is not None, risk(file), language(file.path), file.added + file.removed, file.path
