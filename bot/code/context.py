"""The code around a change, most relevant first, within a token budget.

In this order: the functions that the change is in, uses of names that it removes, definitions of names that the
new lines call. Only paths of the repository's own listing are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.code.diff import Diff, FileDiff, Hunk, apply_hunks
from bot.code.lookup import FileDefinition, ParsedFiles, called_names, defined_names
from bot.code.packing import estimate
from bot.code.syntax import Definition, Grammar, enclosing, grammar_of
from bot.core.errors import ForgeError, NotRecorded, TransientError
from bot.core.frozen import Frozen
from bot.core.subjects import PullRequest, Side
from bot.core.text import show
from bot.github.protocol import Forge, SourceTree

#: Names that are looked up for one change.
MAX_NAMES = 60
#: Longest function that is shown whole; lines of the head of a longer one, and lines beside each change in it.
WHOLE, HEAD, BESIDE = 60, 8, 10
#: Characters that are shown of one line.
WIDEST = 300


class CodeContext(Frozen):
    """The code around a change, for a prompt. ``why`` is the reason if there is none."""

    text: str = ""
    tokens: int = 0
    parts: int = 0
    left_out: int = 0
    not_shown: tuple[str, ...] = ()
    """Changed files that cannot be read or do not match the diff: not text, too large, of another commit."""
    too_slow: tuple[str, ...] = ()
    """Changed files whose functions are not shown because they took too long to parse."""
    why: str = ""

    def without_text(self) -> CodeContext:
        """Return the figures without the code, as a decision records them."""
        return self.model_copy(update={"text": ""})


@dataclass(frozen=True, slots=True)
class _Part:
    """An excerpt with its key: path, first and last line, True for the version before the change."""

    key: tuple[str, int, int, bool]
    text: str


class Sides:
    """The texts of a change's files on both sides. ``tree`` holds the new side, or the old one if ``is_old``.

    One side is read, the other computed from the diff. A file that does not match the diff (another commit, not
    text) has neither.
    """

    def __init__(self, tree: SourceTree, *, is_old: bool = False) -> None:
        self.tree = tree
        self.is_old = is_old
        self._texts: dict[tuple[str, bool], str | None] = {}

    def before(self, file: FileDiff) -> str | None:
        """Return the text before the change, or None if there was none or it is unknown."""
        return None if file.old_path is None or file.change == "added" else self._side(file, old=True)

    def after(self, file: FileDiff) -> str | None:
        """Return the text after the change, or None if there is none or it is unknown."""
        return None if file.change == "deleted" else self._side(file, old=False)

    def _side(self, file: FileDiff, *, old: bool) -> str | None:
        key = (file.path, old)
        if key not in self._texts:
            self._texts[key] = self._read(file, old=old)
        return self._texts[key]

    def _read(self, file: FileDiff, *, old: bool) -> str | None:
        if self.is_old and file.change == "added":
            return apply_hunks("", file.hunks, reverse=False)
        if not self.is_old and file.change == "deleted":
            return apply_hunks("", file.hunks, reverse=True)
        text = self.tree.read(file.old_path or file.path if self.is_old else file.path)
        if text is None:
            return None
        other = apply_hunks(text, file.hunks, reverse=not self.is_old)
        # If the diff does not apply, the file belongs to another change on both sides.
        if other is None or old == self.is_old:
            return None if other is None else text
        return other.encode("utf-8", "replace").decode()


@dataclass
class Surroundings:
    """The code around one change. If it could not be read, ``sides`` is None and ``why`` the reason."""

    diff: Diff
    sides: Sides | None
    why: str = ""

    def within(self, budget: int, paths: Collection[str] | None = None) -> CodeContext:
        """Return the code around the change of ``paths`` (None: all files) in at most ``budget`` tokens."""
        if budget <= 0:
            return CodeContext(why="switched off")
        if self.sides is None:
            return CodeContext(why=self.why)
        files = [file for file in self.diff.files if paths is None or file.path in paths]
        texts: list[str] = []
        shown_keys: set[tuple[str, int, int, bool]] = set()
        tokens = left_out = 0
        for part in self._parts(files, self.sides):
            if part.key in shown_keys:
                continue
            shown_keys.add(part.key)
            cost = estimate(part.text) + 2
            if tokens + cost > budget:
                left_out += 1
                continue
            texts.append(part.text)
            tokens += cost
        unread = [file.path for file in files if file.change == "modified" and self.sides.after(file) is None]
        slow = self._repository.too_slow if any(grammar_of(file.path) for file in files) else set()
        return CodeContext(
            text="\n\n".join(texts),
            tokens=tokens,
            parts=len(texts),
            left_out=left_out,
            not_shown=tuple(unread[:MAX_NAMES]),
            too_slow=tuple(file.path for file in files if slow & {file.path, file.old_path}),
        )

    def text_after(self, path: str) -> str | None:
        """Return a whole changed file after the change, or None if it does not exist or is unknown."""
        if self.sides is None:
            return None
        return next((self.sides.after(file) for file in self.diff.named(path) if file.path == path), None)

    def _parts(self, files: list[FileDiff], sides: Sides) -> Iterator[_Part]:
        for file in files:
            if grammar_of(file.path) is not None:
                yield from _enclosing(file, sides, self._repository)
        for grammar in dict.fromkeys(grammar_of(file.path) for file in files):
            if grammar is not None:
                same_grammar = [file for file in files if grammar_of(file.path) is grammar]
                yield from _uses(same_grammar, self._repository, grammar)
                yield from self._callees(same_grammar, grammar)

    @cached_property
    def _repository(self) -> ParsedFiles:
        """The repository's files after the change."""
        assert self.sides is not None
        removed = [file.old_path for file in self.diff.files if file.change in ("deleted", "renamed")]
        texts: dict[str, str | None] = {path: None for path in removed if path}
        texts |= {file.path: self.sides.after(file) for file in self.diff.files if file.change != "deleted"}
        return ParsedFiles(self.sides.tree, texts)

    def _callees(self, files: list[FileDiff], grammar: Grammar) -> Iterator[_Part]:
        """Yield the definitions of what the new lines call, by file and in the order of the calls."""
        repository = self._repository
        calls = {file.path: _calls(file) for file in files}
        resolved = {path: repository.resolve(path, names) for path, names in calls.items()}
        others = [_last(name) for path, names in calls.items() for name in names if name not in resolved[path]]
        names_to_find = [name for name in dict.fromkeys(others) if len(name) > 3][:MAX_NAMES]
        anywhere = repository.defined_anywhere(names_to_find, grammar)
        for path, names in calls.items():
            for name in names:
                for definition in resolved[path].get(name) or anywhere.get(_last(name), ()):
                    if not _in_diff(self.diff, definition):
                        yield _definition(definition, repository)


def surroundings(diff: Diff, pull: PullRequest, forge: Forge | None) -> Surroundings:
    """Read the code around a pull request's change: at its head, else at its base with the change applied.

    Never raises: code that cannot be read gives no context, with the reason. Without a forge nothing is read.
    """
    if forge is None:
        return Surroundings(diff, None, "switched off")
    why = "no commit is known"
    for sha, is_old in ((pull.head_sha, False), (pull.base_sha, True)):
        if not sha:
            continue
        try:
            return Surroundings(diff, Sides(forge.sources(sha), is_old=is_old))
        except (ForgeError, NotRecorded, TransientError) as error:
            why = f"the code cannot be read ({type(error).__name__}: {error})"[:300]
    return Surroundings(diff, None, why)


def text_at(forge: Forge, path: str, ref: str) -> str | None:
    """Return a file as text, or None if it cannot be read: deleted, or missing in a replay."""
    try:
        return forge.file(path, ref).decode("utf-8", "replace")
    except (ForgeError, NotRecorded):
        return None


def _lines(file: FileDiff, mark: str) -> Iterator[str]:
    return (line.text for hunk in file.hunks for line in hunk.lines if line.mark == mark)


def _calls(file: FileDiff) -> tuple[str, ...]:
    """Return the names that a file's new lines call and do not define."""
    new = defined_names(_lines(file, "+"))
    return tuple(name for name in called_names(_lines(file, "+")) if _last(name) not in new)[:MAX_NAMES]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _uses(files: list[FileDiff], repository: ParsedFiles, grammar: Grammar) -> Iterator[_Part]:
    """Yield the lines that still use names that the change removes."""
    removed_from: dict[str, str] = {}
    for file in files:
        names = defined_names(_lines(file, "-")) - defined_names(_lines(file, "+"))
        if names:
            names -= {definition.name for definition in repository.definitions(file.path)}
            removed_from |= dict.fromkeys(names, file.path)
    names_left = sorted(removed_from)[:MAX_NAMES]
    for name, (uses, count) in sorted(repository.uses(names_left, grammar).items()):
        rows = [f"--- {name}, which the change takes away from {show(removed_from[name])}, is still named here:"]
        rows += [f"{show(use.path)}:{use.line}: {show(use.text)}" for use in uses]
        if count > len(uses):
            rows.append(f"and in {count - len(uses)} more lines")
        yield _Part((f"uses of {name}", 0, 0, False), "\n".join(rows))


def _enclosing(file: FileDiff, sides: Sides, repository: ParsedFiles) -> Iterator[_Part]:
    """Yield the functions around each hunk that the hunk itself does not show whole."""
    if file.change in ("added", "deleted"):
        return
    yield from _functions(file, sides.after(file), file.hunks, "RIGHT", repository)
    removals = [hunk for hunk in file.hunks if all(line.mark != "+" for line in hunk.lines)]
    yield from _functions(file, sides.before(file) if removals else None, removals, "LEFT", repository)


def _functions(
    file: FileDiff, text: str | None, hunks: Collection[Hunk], side: Side, repository: ParsedFiles
) -> Iterator[_Part]:
    """Yield the functions of one side of a file that these hunks change."""
    mark, path, when = (
        ("+", file.path, "after") if side == "RIGHT" else ("-", file.old_path or file.path, "before")
    )
    numbers = {line.number(side) or 0 for hunk in hunks for line in hunk.lines if line.mark == mark}
    if text is None or not numbers:
        return
    source, visible = text.split("\n"), file.commentable(side)
    definitions = repository.definitions(path, None if side == "RIGHT" else text)
    for definition, lines in around(definitions, numbers):
        if not visible.issuperset(range(definition.first, definition.last + 1)):
            title = f"{show(path)}, {show(definition.qualified)} ({when} the change)"
            yield _Part((path, definition.first, definition.last, side == "LEFT"), _excerpt(title, source, lines))


def _definition(place: FileDefinition, repository: ParsedFiles) -> _Part:
    path, definition = place
    text = repository.text(path)
    assert text is not None, "the file has a definition"
    lines = _shown_lines(repository.definitions(path), definition)
    title = f"{show(path)}, {show(definition.qualified)} (called)"
    return _Part((path, definition.first, definition.last, False), _excerpt(title, text.split("\n"), lines))


def _in_diff(diff: Diff, place: FileDefinition) -> bool:
    """Return True if the diff already shows the whole definition."""
    span = range(place.definition.first, place.definition.last + 1)
    return any(file.commentable("RIGHT").issuperset(span) for file in diff.named(place.path))


def _excerpt(title: str, source: Sequence[str], lines: Sequence[int]) -> str:
    """Render these lines of a file with their numbers and an ellipsis for every gap."""
    rows = [f"--- {title}:"]
    before = lines[0] - 1
    for number in lines:
        if number > before + 1:
            rows.append("      ...")
        line = show(source[number - 1])
        rows.append(f"{number:>5}   {line if len(line) <= WIDEST else line[:WIDEST] + '…'}")
        before = number
    return "\n".join(rows)


def around(
    definitions: tuple[Definition, ...], lines: Collection[int]
) -> Iterator[tuple[Definition, tuple[int, ...]]]:
    """Yield the functions (else classes) around these lines, once each and in order, with the lines to show.

    Lines at the top level of a file have none.
    """
    changed: dict[Definition, list[int]] = {}
    waiting, open_ = list(reversed(definitions)), list[Definition]()
    for number in sorted(lines):
        while waiting and waiting[-1].first <= number:
            open_.append(waiting.pop())
        open_ = [definition for definition in open_ if definition.last >= number]
        definition = enclosing(tuple(open_), number, number)
        if definition is not None:
            changed.setdefault(definition, []).append(number)
    for definition, numbers in changed.items():
        yield definition, _shown_lines(definitions, definition, numbers)


def _shown_lines(
    definitions: tuple[Definition, ...], definition: Definition, changed: Collection[int] = ()
) -> tuple[int, ...]:
    """Return the lines to show: a short definition whole, else its head and ``changed``; and its class's head."""
    first, last = definition.first, definition.last
    if last - first < WHOLE:
        lines = set(range(first, last + 1))
    else:
        lines = set(range(first, min(max(definition.body, first) + HEAD, last + 1)))
        for number in changed:
            lines.update(range(max(first, number - BESIDE), min(last, number + BESIDE) + 1))
    for outer in definitions:
        if outer.kind == "class" and outer.first <= first and outer.last >= last and outer != definition:
            head = outer.body if outer.body > outer.first else outer.first + 1
            lines.update(range(outer.first, min(head, outer.first + 4, first)) or {outer.first})
    return tuple(sorted(lines))
