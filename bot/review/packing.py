"""Cut a change into pieces that fit a model call, most urgent first, and name everything that is left out.

Pure. No piece costs more tokens than the budget, whatever the change holds (see ``tokens``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.core.config import gitignore
from bot.core.frozen import Frozen
from bot.core.text import show
from bot.review.diff import Diff, DiffLine, FileDiff, Hunk
from bot.review.file_classes import language, left_out, risk, topic
from bot.review.moves import Notes, moved

# Characters of one line that a reviewer is shown: more is data or minified.
_WIDEST = 400
# Files of a list, and characters of a name in it.
_LISTED, _NAME = 150, 200

#: Why a file is not shown that says the same in another layout.
REFORMATTED = "layout only, the code means the same"


class Skipped(Frozen):
    """A file, or a part of one, that no model was shown."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Piece:
    """What one model call is shown: text in the form that ``render`` gives it, and its tokens at most."""

    text: str
    tokens: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Packed:
    """A change, ready to be reviewed. ``diff`` holds the files that are shown, and those alone.

    ``files`` names every file of the change with what happened to it and where it is shown; ``reformatted`` says
    that the change holds nothing else than code which means the same before and after.
    """

    pieces: tuple[Piece, ...]
    diff: Diff
    skipped: tuple[Skipped, ...]
    files: tuple[str, ...] = ()
    reformatted: bool = False
    omitted: tuple[str, ...] = ()
    """Files that the forge did not show."""


def pack(
    diff: Diff,
    budget: int,
    max_pieces: int,
    ignore: Sequence[str] = (),
    omitted: Iterable[str] = (),
    same: Mapping[str, frozenset[int]] | None = None,
    only: Sequence[str] = (),
) -> Packed:
    """Sort out, order and pack a change.

    ``budget`` is in tokens per piece; ``ignore`` are patterns as in ``.gitignore`` (the config refuses what is
    none); ``omitted`` are files that the forge did not show; ``same`` are the hunks (from 0) by path whose code
    means the same before and after: they are left out. ``only`` are patterns of the files that count; empty = all.
    """
    omitted = tuple(omitted)
    kept, skipped = _sort_out(diff, ignore, only)
    whole, kept, told = len(kept), *_only_meaning(kept, same or {})
    skipped += told
    skipped += [Skipped(path=path, reason="too large to be shown") for path in omitted]
    skipped += [
        Skipped(path=flaw.path or "(the diff)", reason=f"unreadable: {flaw.reason}") for flaw in diff.flaws
    ]
    boxes: list[_Box] = []
    shown: set[str] = set()
    notes = moved(Diff(tuple(kept)))
    for group in _groups(kept):
        blocks = [(file, list(_blocks(file, budget, notes))) for file in group]
        together = _roomy(sum(block.tokens for _, each in blocks for block in each), boxes, budget, max_pieces)
        for file, each in blocks:
            placed = [_place(block, boxes, budget, max_pieces, together) for block in each]
            if not all(placed):
                part = "the rest of it is " if any(placed) else ""
                skipped.append(Skipped(path=file.path, reason=f"{part}beyond the limit of one review"))
            if any(placed):
                shown.add(file.path)
            if any(len(line.text) > _WIDEST for hunk in file.hunks for line in hunk.lines):
                skipped.append(Skipped(path=file.path, reason=f"lines are shown up to {_WIDEST} characters"))
    pieces = tuple(Piece("\n\n".join(box.texts), box.tokens, tuple(dict.fromkeys(box.paths))) for box in boxes)
    unread = any(each.reason != REFORMATTED for each in told) or omitted or diff.flaws
    return Packed(
        pieces,
        diff.only(shown),
        tuple(skipped),
        _listed(diff, pieces, skipped),
        omitted=omitted,
        reformatted=bool(whole and not kept and told and not unread),
    )


def _only_meaning(
    files: Sequence[FileDiff], same: Mapping[str, frozenset[int]]
) -> tuple[list[FileDiff], list[Skipped]]:
    """The files without the hunks that change no meaning; those of which nothing is left are named."""
    kept: list[FileDiff] = []
    told: list[Skipped] = []
    for file in files:
        equal = same.get(file.path, frozenset())
        hunks = tuple(hunk for number, hunk in enumerate(file.hunks) if number not in equal)
        if equal and not hunks:
            told.append(Skipped(path=file.path, reason=REFORMATTED))
        else:
            kept.append(replace(file, hunks=hunks) if equal else file)
    return kept, told


def _listed(diff: Diff, pieces: Sequence[Piece], skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """One line a file: its change and size, and the part that shows it or why none does."""
    reasons = {each.path: each.reason for each in skipped}
    lines = []
    for file in diff.files:
        parts = [str(number) for number, piece in enumerate(pieces, start=1) if file.path in piece.paths]
        where = f"part {', '.join(parts)}" if parts else f"not shown: {reasons.get(file.path, 'nothing to show')}"
        lines.append(f"{show(file.path)[:_NAME]} ({file.change}, +{file.added} -{file.removed}): {where}")
    more = len(lines) - _LISTED
    return tuple([*lines[:_LISTED], f"and {more} more files"] if more > 0 else lines)


def render(file: FileDiff, lines: Iterable[str]) -> str:
    """A file's header as the model sees it, then its lines."""
    name = f"renamed from {show(file.old_path or '')}, " if file.change in ("renamed", "copied") else ""
    facts = ", ".join(fact for fact in (f"{name}{file.change}", language(file.path)) if fact)
    mode = f", mode {file.mode}" if file.mode else ""
    return "\n".join((f"=== {show(file.path)} ({facts}{mode})", *lines))


def render_line(line: DiffLine) -> str:
    """A line with its number in the new file (none for a removed line) and its mark."""
    text = show(line.text)
    text = text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
    return f"{'' if line.new is None else line.new:>5} {line.mark} {text}"


def _sort_out(diff: Diff, ignore: Sequence[str], only: Sequence[str]) -> tuple[list[FileDiff], list[Skipped]]:
    ignored, counted = gitignore(ignore), gitignore(only)
    kept: list[FileDiff] = []
    skipped: list[Skipped] = []
    for file in diff.files:
        path = file.path.encode("utf-8", "replace").decode()
        if only and not counted.match_file(path):
            reason: str | None = "pulls.paths"
        else:
            reason = "review.ignore" if ignored.match_file(path) else left_out(file)
        if reason is None:
            kept.append(file)
        else:
            skipped.append(Skipped(path=file.path, reason=reason))
    return sorted(kept, key=_urgency), skipped


def _urgency(file: FileDiff) -> tuple[int, str, int, str]:
    """Risk, then language, then size: one huge file must not keep many small ones from being read."""
    return risk(file), language(file.path), file.added + file.removed, file.path


class _Box:
    """A piece while it is being filled."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.paths: list[str] = []
        self.tokens = 0

    def add(self, path: str, text: str, tokens: int) -> None:
        self.texts.append(text)
        self.paths.append(path)
        self.tokens += tokens


@dataclass(frozen=True, slots=True)
class _Block:
    path: str
    text: str
    tokens: int


def _groups(files: Sequence[FileDiff]) -> list[list[FileDiff]]:
    """Files that are read together: a source file with its tests, settings with settings; the first one leads."""
    groups: dict[str, list[FileDiff]] = {}
    for file in files:
        groups.setdefault(topic(file), []).append(file)
    return list(groups.values())


def _roomy(tokens: int, boxes: list[_Box], budget: int, max_boxes: int) -> _Box | None:
    """The first box that holds a whole group, or a new one for it; None where no one box can."""
    if tokens > budget:
        return None
    box = next((box for box in boxes if box.tokens + tokens <= budget), None)
    if box is None and len(boxes) < max_boxes:
        boxes.append(box := _Box())
    return box


def _place(block: _Block, boxes: list[_Box], budget: int, max_boxes: int, together: _Box | None) -> bool:
    """Put a block into its group's box, else the first one with room, or a new one; False where there is none."""
    if block.tokens > budget:
        return False
    box = together or next((box for box in boxes if box.tokens + block.tokens <= budget), None)
    if box is None:
        if len(boxes) == max_boxes:
            return False
        boxes.append(box := _Box())
    box.add(block.path, block.text, block.tokens)
    return True


def _blocks(file: FileDiff, budget: int, notes: Notes) -> Iterator[_Block]:
    """The file as one block; where it is too large for a piece, in several, cut between hunks or lines."""
    lines: list[str] = []
    head = tokens = estimate(render(file, ())) + _BETWEEN
    for number, hunk in enumerate(file.hunks):
        for row in _rows(hunk, file.path, number, notes):
            cost = estimate(row) + 1
            if lines and tokens + cost > budget:
                yield _Block(file.path, render(file, lines), tokens)
                lines, tokens = [], head
            lines.append(row)
            tokens += cost
    yield _Block(file.path, render(file, lines), tokens)


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


# In twentieths of a token. Bytes beyond ASCII: byte-level encodings never spend more than one token on a byte.
_UNIT = 20


def _weight(byte: int) -> int:
    char = chr(byte)
    if byte >= 0x80 or char == "\n":
        return 20
    if char == " ":
        return 10
    if char.islower():
        return 12
    if char.isdigit():
        return 22
    return 40 if char.isspace() else 20


_WEIGHTS = bytes(_weight(byte) for byte in range(256))


def estimate(text: str) -> int:
    """Tokens that ``text`` costs at most; never less than the sum over its parts rounds down to."""
    return math.ceil(sum(text.encode("utf-8", "replace").translate(_WEIGHTS)) / _UNIT)
