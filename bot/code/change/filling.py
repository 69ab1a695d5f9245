"""Fill pieces that fit a model call with groups of files, or with symbols of files that are too large. Pure.

A symbol is a function or class: what is removed of it stays with what replaces it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from bot.code.change.diff import DiffLine, FileDiff, Sides, render, render_line
from bot.code.change.file_classes import topic
from bot.code.change.moves import Notes
from bot.code.parsing.definitions import Definition
from bot.code.parsing.syntax import definitions
from bot.core.text import estimate, show

# The blank line between two blocks, in tokens.
_BETWEEN = 2

#: Hunk and line, both from 0.
Place = tuple[int, int]
_HEAD = re.compile(
    r"^\s*(?:[\w@()]+\s+){0,5}(?:def|class|function|func|fn|struct|interface|trait|enum|type|impl|module)\b\s+\S"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a change for one model call: its files as text, and an upper limit of its tokens.

    ``files`` has of a file that is split only the lines that are shown.
    """

    blocks: tuple[str, ...]
    tokens: int
    files: tuple[FileDiff, ...]
    others: str = ""
    """Signatures that the other pieces change, and lines that they remove."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The (new) names of its files."""
        return tuple(file.path for file in self.files)

    @property
    def text(self) -> str:
        """All blocks."""
        return "\n\n".join(self.blocks)


class _Row(NamedTuple):
    """A shown line of a file: where it stands, as text, and its tokens."""

    place: Place
    text: str
    tokens: int


class _Unit(NamedTuple):
    """Rows of one file that belong together: a whole file, or the lines of one symbol."""

    file: FileDiff
    rows: Sequence[_Row]
    key: str = ""


@dataclass(slots=True)
class _Box:
    """A piece while it is being filled: rows by file, in the order in which the files came."""

    files: dict[int, tuple[FileDiff, list[_Row]]] = field(default_factory=dict)
    hunks: set[tuple[int, int]] = field(default_factory=set)
    tokens: int = 0

    def cost(self, units: Sequence[_Unit]) -> int:
        """Return the tokens that the units add, with the headers of files and hunks that are new here."""
        files = {id(unit.file): unit.file for unit in units if id(unit.file) not in self.files}
        hunks = {(id(unit.file), row.place[0]): unit.file for unit in units for row in unit.rows}
        heads = (_hunk_head(file, key[1]) for key, file in hunks.items() if key not in self.hunks)
        return (
            sum(estimate(render(file, ())) + _BETWEEN for file in files.values())
            + sum(estimate(head) + 1 for head in heads)
            + _row_tokens(units)
        )

    def put(self, units: Sequence[_Unit]) -> None:
        """Add units."""
        self.tokens += self.cost(units)
        for unit in units:
            self.files.setdefault(id(unit.file), (unit.file, []))[1].extend(unit.rows)
            self.hunks.update((id(unit.file), row.place[0]) for row in unit.rows)

    def piece(self, counts: Mapping[int, int], others: str = "") -> Piece:
        """Return each file as text, with its rows in their order. ``counts`` are the rows of all files."""
        blocks: list[str] = []
        files: list[FileDiff] = []
        for file, rows in self.files.values():
            is_whole = len(rows) == counts[id(file)]
            files.append(file if is_whole else _with_lines(file, {row.place for row in rows}))
            lines: list[str] = []
            for number, of_hunk in groupby(sorted(rows), lambda row: row.place[0]):
                lines += [_hunk_head(file, number), *(row.text for row in of_hunk)]
            blocks.append(render(file, lines))
        tokens = self.tokens + (estimate(others) + _BETWEEN if others else 0)
        return Piece(tuple(blocks), tokens, tuple(files), others)


def _with_lines(file: FileDiff, places: Collection[Place]) -> FileDiff:
    """Return the file with only these lines of its hunks."""
    hunks = []
    for number, hunk in enumerate(file.hunks):
        lines = tuple(line for at, line in enumerate(hunk.lines) if (number, at) in places)
        hunks += [replace(hunk, lines=lines)] if lines else []
    return replace(file, hunks=tuple(hunks))


def _row_tokens(units: Iterable[_Unit]) -> int:
    return sum(row.tokens for unit in units for row in unit.rows)


def _fits(units: Sequence[_Unit], budget: int) -> bool:
    """Return True if one piece can hold the units."""
    return _row_tokens(units) <= budget and _Box().cost(units) <= budget


def _hunk_head(file: FileDiff, number: int) -> str:
    return f"@@ {show(file.hunks[number].context)}".rstrip()


class Symbols:
    """The functions and classes of a changed file, by line, on both sides; empty if a side is unknown."""

    def __init__(self, file: FileDiff, sides: Sides | None) -> None:
        before, after = (sides.before(file), sides.after(file)) if sides is not None else (None, None)
        old = definitions(before, file.old_path or file.path) if before is not None else ()
        new = definitions(after, file.path) if after is not None else ()
        self._file, self._old, self._new = file, _by_line(old), _by_line(new)
        #: Lines of the new file that are the head of a function or class.
        self._heads = {number for definition in new for number in range(definition.first, definition.body + 1)}
        old_names, new_names = ({_bare(name) for name in side.values()} for side in (self._old, self._new))
        #: Bare names that only the old file, and only the new file defines.
        self.removed, self.added = old_names - new_names, new_names - old_names
        self._parts: list[_Unit] = []

    def split(self, unit: _Unit, elsewhere: Collection[str]) -> list[_Unit]:
        """Return the file's rows by symbol. They are computed once: pieces are filled for several budgets."""
        if not self._parts:
            keys, parts = self.keys(elsewhere), dict[str, list[_Row]]()
            for row in unit.rows:
                parts.setdefault(keys[row.place], []).append(row)
            self._parts = [_Unit(unit.file, rows, key) for key, rows in parts.items()]
        return self._parts

    def keys(self, elsewhere: Collection[str]) -> dict[Place, str]:
        """Return the symbol of each line of the hunks. ``elsewhere`` are bare names that other files now define.

        A removed line counts to the function of its name; if that is gone, to the added lines that stand in its
        place. Lines outside of all functions and classes count to their hunk.
        """
        new_names = frozenset(self._new.values())
        keys: dict[Place, str] = {}
        for number, hunk in enumerate(self._file.hunks):
            for _, between_context in groupby(enumerate(hunk.lines), lambda entry: entry[1].mark == " "):
                run = list(between_context)
                added = [self._new.get(line.new or 0, "") for _, line in run if line.mark == "+"]
                for at, line in run:
                    is_removed = line.mark == "-"
                    name = (self._old.get(line.old or 0) if is_removed else self._new.get(line.new or 0)) or ""
                    is_gone = is_removed and name not in new_names and _bare(name) not in elsewhere
                    keys[number, at] = (added[0] if is_gone and added else name) or f"\0{number}"
        return keys

    def is_signature(self, line: DiffLine) -> bool:
        """Return True if an added line is in the head of a function or class."""
        return line.new in self._heads if self._new else _HEAD.match(line.text) is not None


def _by_line(candidates: Sequence[Definition]) -> dict[int, str]:
    """Return the outermost function around each line, else the innermost class or call with a function."""
    names: dict[int, str] = {}
    by_size = sorted(candidates, key=lambda definition: definition.first - definition.last)
    for definition in by_size:
        if definition.kind == "class" or not definition.name:
            names.update(dict.fromkeys(definition.lines, definition.qualified))
    inside: set[int] = set()
    for definition in by_size:
        if definition.kind == "function" and definition.name and definition.first not in inside:
            names.update(dict.fromkeys(definition.lines, definition.qualified))
            inside.update(definition.lines)
    return names


def _bare(name: str) -> str:
    return name.rpartition(".")[2]


class Filling:
    """At most ``most`` pieces of at most ``budget`` tokens, filled cluster by cluster."""

    def __init__(self, clusters: Iterable[Sequence[_Unit]], budget: int, most: int) -> None:
        self._budget, self._most = budget, most
        self.boxes: list[_Box] = []
        #: By the id of a file: for each of its parts, whether it is in a piece.
        self.placed: dict[int, list[bool]] = {}
        for cluster in clusters:
            self._add(cluster)
        self.shown = sum(len(rows) for box in self.boxes for _, rows in box.files.values())

    def _add(self, cluster: Sequence[_Unit]) -> None:
        """Put units into one piece if they fit, else each wherever there is room, cut between lines if need be."""
        least = _row_tokens(cluster)
        # Of most boxes, one addition tells that they have no room.
        boxes = (box for box in self.boxes if box.tokens + least <= self._budget)
        box = next((box for box in boxes if box.tokens + box.cost(cluster) <= self._budget), None)
        fits = _fits(cluster, self._budget)
        if box is None and fits and len(self.boxes) < self._most:
            self.boxes.append(box := _Box())
        if box is not None:
            box.put(cluster)
            for unit in cluster:
                self.placed.setdefault(id(unit.file), []).append(True)
        elif len(cluster) > 1:
            for unit in cluster:
                self._add([unit])
        elif not fits and len(chunks := list(self._chunks(cluster[0]))) > 1:
            for chunk in chunks:
                self._add([chunk])
        else:
            self.placed.setdefault(id(cluster[0].file), []).append(False)

    def _chunks(self, unit: _Unit) -> Iterator[_Unit]:
        """Cut a unit that is too large for a piece between lines."""
        rows: list[_Row] = []
        tokens = start = _Box().cost([unit._replace(rows=())])
        head, hunk = 0, -1
        for row in unit.rows:
            extra = row.tokens
            if row.place[0] != hunk:
                hunk = row.place[0]
                head = estimate(_hunk_head(unit.file, hunk)) + 1
                extra += head
            if rows and tokens + extra > self._budget:
                yield unit._replace(rows=rows)
                rows, tokens, extra = [], start, row.tokens + head
            rows.append(row)
            tokens += extra
        yield unit._replace(rows=rows)


#: Shares of a piece that are kept free for what other pieces tell, the first if it needs no further piece.
OTHERS = (8, 16, 32, 64)


def fill(
    files: Sequence[FileDiff], budget: int, most: int, notes: Notes, sides: Sides | None
) -> tuple[Filling, tuple[Piece, ...]]:
    """Fill pieces with whole groups of files. If one cannot hold all, what is too large is split by symbol."""
    by_topic: dict[str, list[_Unit]] = {}
    for file in files:
        by_topic.setdefault(topic(file), []).append(_Unit(file, _rows(file, notes)))
    groups = list(by_topic.values())
    counts = {id(unit.file): len(unit.rows) for group in groups for unit in group}
    if _fits([unit for group in groups for unit in group], budget):
        filling = Filling(groups, budget, most)
        return filling, tuple(box.piece(counts) for box in filling.boxes)
    symbols = {id(unit.file): Symbols(unit.file, sides) for group in groups for unit in group}
    filling = Filling(_clusters(groups, budget, symbols), budget, most)
    for limit in (budget - budget // share for share in OTHERS):
        reserving = Filling(_clusters(groups, limit, symbols), limit, most)
        if reserving.shown == filling.shown and len(reserving.boxes) == len(filling.boxes):
            filling = reserving
            break
    rows = _telling(filling.boxes, symbols) if len(filling.boxes) > 1 else []
    others = (_others(number, filling.boxes, rows, budget) for number in range(len(filling.boxes)))
    return filling, tuple(box.piece(counts, text) for box, text in zip(filling.boxes, others, strict=True))


def _telling(boxes: Sequence[_Box], symbols: Mapping[int, Symbols]) -> list[tuple[int, int, _Row]]:
    """Return the changed signatures of all boxes, then their removed lines, with box and file."""
    rows: list[tuple[bool, int, int, _Row]] = []
    for place, box in enumerate(boxes):
        for key, (file, of_file) in box.files.items():
            for row in of_file:
                line = file.hunks[row.place[0]].lines[row.place[1]]
                is_signature = line.mark != " " and symbols[key].is_signature(line)
                if not is_signature and line.mark != "-":
                    continue
                if row.text == render_line(line) and any(map(str.isalnum, line.text)):
                    rows.append((not is_signature, place, key, row))
    return [entry[1:] for entry in sorted(rows, key=lambda entry: entry[0])]


def _others(number: int, boxes: Sequence[_Box], telling: Sequence[tuple[int, int, _Row]], budget: int) -> str:
    """Return what tells of the other boxes, as far as there is room."""
    room = min(budget - boxes[number].tokens, budget // OTHERS[0]) - _BETWEEN - estimate(_more(budget))
    rows = [entry for entry in telling if entry[0] != number]
    selected: dict[tuple[int, int], list[_Row]] = {}
    for place, key, row in rows:
        head = 0 if (place, key) in selected else estimate(_part_head(place, boxes[place].files[key][0])) + 1
        if row.tokens + head <= room:
            selected.setdefault((place, key), []).append(row)
            room -= row.tokens + head
    texts = [
        "\n".join([_part_head(place, boxes[place].files[key][0]), *(row.text for row in sorted(of_file))])
        for (place, key), of_file in sorted(selected.items(), key=lambda entry: entry[0][0])
    ]
    more = len(rows) - sum(map(len, selected.values()))
    return "\n".join([*texts, _more(more)] if more and texts else texts)


def _more(count: int) -> str:
    return f"[and {count} more lines]"


def _part_head(place: int, file: FileDiff) -> str:
    return f"=== {show(file.path)} (part {place + 1})"


def _clusters(groups: Sequence[Sequence[_Unit]], budget: int, symbols: Mapping[int, Symbols]) -> list[list[_Unit]]:
    """Split what is too large for a piece by symbol, and put a removed symbol beside the one that replaces it."""
    places = Counter(name for of_file in symbols.values() for name in of_file.added)
    elsewhere = frozenset(name for name, count in places.items() if count == 1)
    clusters: list[list[_Unit]] = []
    for group in groups:
        if _fits(group, budget):
            clusters.append(list(group))
            continue
        for unit in group:
            parts = [unit] if _fits([unit], budget) else symbols[id(unit.file)].split(unit, elsewhere)
            clusters += [[part] for part in parts]
    return _join_moved(clusters, budget, symbols, elsewhere)


def _join_moved(
    clusters: Sequence[list[_Unit]], budget: int, symbols: Mapping[int, Symbols], elsewhere: frozenset[str]
) -> list[list[_Unit]]:
    """Join clusters of which one removes a symbol that another one adds, if both fit into a piece."""
    # The cluster that adds each name.
    home: dict[str, list[_Unit]] = {}
    for cluster in clusters:
        for unit in cluster:
            home.update(dict.fromkeys(_names(unit, symbols[id(unit.file)].added) & elsewhere, cluster))
    joined = {id(cluster): cluster for cluster in clusters}
    for cluster in clusters:
        for unit in list(cluster):
            for name in sorted(_names(unit, symbols[id(unit.file)].removed) & elsewhere):
                first, second = joined[id(cluster)], joined[id(home[name])] if name in home else cluster
                if first is not second and _Box().cost([*first, *second]) <= budget:
                    first += second
                    joined |= {key: first for key, value in joined.items() if value is second}
    return list({id(cluster): cluster for cluster in joined.values()}.values())


def _names(unit: _Unit, names: set[str]) -> set[str]:
    """Return which of these bare names the unit shows; a whole file shows all."""
    return names & {_bare(unit.key)} if unit.key else names


def _rows(file: FileDiff, notes: Notes) -> list[_Row]:
    rows: list[_Row] = []
    for number, hunk in enumerate(file.hunks):
        for at, line in enumerate(hunk.lines):
            note = notes.get((file.path, number, at))
            if note != "":
                text = render_line(line) if note is None else f"      {note}"
                rows.append(_Row((number, at), text, estimate(text) + 1))
    return rows
