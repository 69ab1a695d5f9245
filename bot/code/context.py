"""The code around a change, as much of it as a model call has room for, most telling first.

In this order: the functions that the change is in, the places that still use what it removes, the definitions of
what its new lines call. Only paths of the repository's own listing are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.code.diff import Diff, FileDiff, Hunk, replaced
from bot.code.lookup import Found, ParsedFiles, called, named
from bot.code.packing import estimate
from bot.code.syntax import Definition, Grammar, enclosing, grammar_of
from bot.core.errors import ForgeError, NotRecorded, TransientError
from bot.core.frozen import Frozen
from bot.core.subjects import PullRequest, Side
from bot.core.text import show
from bot.github.protocol import Forge, SourceTree

#: Names of one change that are looked up.
MAX_NAMES = 60
#: Lines of a function that is shown whole; lines of a long one's head, and beside what was changed in it.
WHOLE, HEAD, BESIDE = 60, 8, 10
#: Characters of one line.
WIDEST = 300


class CodeContext(Frozen):
    """What a prompt says of the code around a change; ``why`` says why it says nothing."""

    text: str = ""
    tokens: int = 0
    parts: int = 0
    left_out: int = 0
    not_shown: tuple[str, ...] = ()
    """Changed files that cannot be read, or do not fit the change: not text, too large, another commit's."""
    too_slow: tuple[str, ...] = ()
    """Changed files whose functions are not shown because they took too long to parse."""
    why: str = ""

    def without_text(self) -> CodeContext:
        """Return what a decision records: the figures, not the code."""
        return self.model_copy(update={"text": ""})


@dataclass(frozen=True, slots=True)
class _Part:
    """One thing to show: where it stands (path, lines, whether before the change) and the text."""

    key: tuple[str, int, int, bool]
    text: str


class Sides:
    """The texts of a change's files on both sides; ``tree`` holds the new ones, or the old where ``is_old``.

    One side is read, the other follows from the diff. A file that does not fit the diff (another commit, no text)
    has none: nothing is guessed.
    """

    def __init__(self, tree: SourceTree, *, is_old: bool = False) -> None:
        self.tree = tree
        self.is_old = is_old
        self._kept: dict[tuple[str, bool], str | None] = {}

    def before(self, file: FileDiff) -> str | None:
        """The text before the change; None where there was none or it is not known."""
        return None if file.old_path is None or file.change == "added" else self._side(file, old=True)

    def after(self, file: FileDiff) -> str | None:
        """The text after the change; None where there is none or it is not known."""
        return None if file.change == "deleted" else self._side(file, old=False)

    def _side(self, file: FileDiff, *, old: bool) -> str | None:
        key = (file.path, old)
        if key not in self._kept:
            self._kept[key] = self._read(file, old=old)
        return self._kept[key]

    def _read(self, file: FileDiff, *, old: bool) -> str | None:
        if self.is_old and file.change == "added":
            return replaced("", file.hunks, back=False)
        if not self.is_old and file.change == "deleted":
            return replaced("", file.hunks, back=True)
        text = self.tree.read(file.old_path or file.path if self.is_old else file.path)
        if text is None:
            return None
        other = replaced(text, file.hunks, back=not self.is_old)
        # Where the diff does not fit, the file is not that of this change on either side.
        if other is None or old == self.is_old:
            return None if other is None else text
        return other.encode("utf-8", "replace").decode()


@dataclass
class Surroundings:
    """The code around one change. ``sides`` is None where it could not be read, and ``why`` says so."""

    diff: Diff
    sides: Sides | None
    why: str = ""

    def within(self, budget: int, paths: Collection[str] | None = None) -> CodeContext:
        """The code around the change of these files (all where none are named) in ``budget`` tokens at most."""
        if budget <= 0:
            return CodeContext(why="switched off")
        if self.sides is None:
            return CodeContext(why=self.why)
        files = [file for file in self.diff.files if paths is None or file.path in paths]
        kept: list[str] = []
        seen: set[tuple[str, int, int, bool]] = set()
        tokens = left_out = 0
        for part in self._parts(files, self.sides):
            if part.key in seen:
                continue
            seen.add(part.key)
            cost = estimate(part.text) + 2
            if tokens + cost > budget:
                left_out += 1
                continue
            kept.append(part.text)
            tokens += cost
        unread = [file.path for file in files if file.change == "modified" and self.sides.after(file) is None]
        slow = self._repository.too_slow if any(grammar_of(file.path) for file in files) else set()
        return CodeContext(
            text="\n\n".join(kept),
            tokens=tokens,
            parts=len(kept),
            left_out=left_out,
            not_shown=tuple(unread[:MAX_NAMES]),
            too_slow=tuple(file.path for file in files if slow & {file.path, file.old_path}),
        )

    def now(self, path: str) -> str | None:
        """A changed file as a whole after the change; None where it is not there or not known."""
        if self.sides is None:
            return None
        return next((self.sides.after(file) for file in self.diff.named(path) if file.path == path), None)

    def _parts(self, files: list[FileDiff], sides: Sides) -> Iterator[_Part]:
        for file in files:
            if grammar_of(file.path) is not None:
                yield from _enclosing(file, sides, self._repository)
        for grammar in dict.fromkeys(grammar_of(file.path) for file in files):
            if grammar is not None:
                written = [file for file in files if grammar_of(file.path) is grammar]
                yield from _uses(written, self._repository, grammar)
                yield from self._callees(written, grammar)

    @cached_property
    def _repository(self) -> ParsedFiles:
        """The files as the change leaves them."""
        assert self.sides is not None
        gone = [file.old_path for file in self.diff.files if file.change in ("deleted", "renamed")]
        texts: dict[str, str | None] = {path: None for path in gone if path}
        texts |= {file.path: self.sides.after(file) for file in self.diff.files if file.change != "deleted"}
        return ParsedFiles(self.sides.tree, texts)

    def _callees(self, files: list[FileDiff], grammar: Grammar) -> Iterator[_Part]:
        """Definitions of what the new lines call, by file and in the order of the calls."""
        repository = self._repository
        calls = {file.path: _calls(file) for file in files}
        found = {path: repository.resolve(path, names) for path, names in calls.items()}
        others = [_last(name) for path, names in calls.items() for name in names if name not in found[path]]
        wanted = [name for name in dict.fromkeys(others) if len(name) > 3][:MAX_NAMES]
        anywhere = repository.defined_anywhere(wanted, grammar)
        for path, names in calls.items():
            for name in names:
                for each in found[path].get(name) or anywhere.get(_last(name), ()):
                    if not _in_diff(self.diff, each):
                        yield _definition(each, repository)


def surroundings(diff: Diff, pull: PullRequest, forge: Forge | None) -> Surroundings:
    """The code around a pull request's change: at its head, else at its base with the change applied.

    Never fails: code that cannot be read is no context, and the reason is kept. Without a forge nothing is read.
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
    """A file as text; None where it cannot be read: a deleted one, or one that a replay does not hold."""
    try:
        return forge.file(path, ref).decode("utf-8", "replace")
    except (ForgeError, NotRecorded):
        return None


def _lines(file: FileDiff, mark: str) -> Iterator[str]:
    return (line.text for hunk in file.hunks for line in hunk.lines if line.mark == mark)


def _calls(file: FileDiff) -> tuple[str, ...]:
    """What the new lines of a file call and do not define themselves."""
    new = named(_lines(file, "+"))
    return tuple(name for name in called(_lines(file, "+")) if _last(name) not in new)[:MAX_NAMES]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _uses(files: list[FileDiff], repository: ParsedFiles, grammar: Grammar) -> Iterator[_Part]:
    """Lines that still use what the change removes."""
    gone: dict[str, str] = {}
    for file in files:
        names = named(_lines(file, "-")) - named(_lines(file, "+"))
        if names:
            gone |= dict.fromkeys(names - {each.name for each in repository.definitions(file.path)}, file.path)
    names_left = sorted(gone)[:MAX_NAMES]
    for name, (uses, count) in sorted(repository.uses(names_left, grammar).items()):
        rows = [f"--- {name}, which the change takes away from {show(gone[name])}, is still named here:"]
        rows += [f"{show(use.path)}:{use.line}: {show(use.text)}" for use in uses]
        if count > len(uses):
            rows.append(f"and in {count - len(uses)} more lines")
        yield _Part((f"uses of {name}", 0, 0, False), "\n".join(rows))


def _enclosing(file: FileDiff, sides: Sides, repository: ParsedFiles) -> Iterator[_Part]:
    """The functions around each hunk that the hunk itself does not show whole."""
    if file.change in ("added", "deleted"):
        return
    yield from _functions(file, sides.after(file), file.hunks, "RIGHT", repository)
    removals = [hunk for hunk in file.hunks if all(line.mark != "+" for line in hunk.lines)]
    yield from _functions(file, sides.before(file) if removals else None, removals, "LEFT", repository)


def _functions(
    file: FileDiff, text: str | None, hunks: Collection[Hunk], side: Side, repository: ParsedFiles
) -> Iterator[_Part]:
    """The functions of one side of a file that these hunks change."""
    mark, path, when = (
        ("+", file.path, "after") if side == "RIGHT" else ("-", file.old_path or file.path, "before")
    )
    numbers = {line.number(side) or 0 for hunk in hunks for line in hunk.lines if line.mark == mark}
    if text is None or not numbers:
        return
    source, shown = text.split("\n"), file.commentable(side)
    definitions = repository.definitions(path, None if side == "RIGHT" else text)
    for each, lines in around(definitions, numbers):
        if not shown.issuperset(range(each.first, each.last + 1)):
            title = f"{show(path)}, {show(each.qualified)} ({when} the change)"
            yield _Part((path, each.first, each.last, side == "LEFT"), _excerpt(title, source, lines))


def _definition(found: Found, repository: ParsedFiles) -> _Part:
    path, each = found
    text = repository.text(path)
    assert text is not None, "it holds a definition"
    lines = _telling(repository.definitions(path), each)
    title = f"{show(path)}, {show(each.qualified)} (called)"
    return _Part((path, each.first, each.last, False), _excerpt(title, text.split("\n"), lines))


def _in_diff(diff: Diff, found: Found) -> bool:
    """Whether the change shows a definition as a whole already."""
    span = range(found.definition.first, found.definition.last + 1)
    return any(file.commentable("RIGHT").issuperset(span) for file in diff.named(found.path))


def _excerpt(title: str, source: Sequence[str], lines: Sequence[int]) -> str:
    """These lines of a file with their numbers, an ellipsis where some between them are left out."""
    rows = [f"--- {title}:"]
    before = lines[0] - 1
    for number in lines:
        if number > before + 1:
            rows.append("      ...")
        line = show(source[number - 1])
        rows.append(f"{number:>5}   {line if len(line) <= WIDEST else line[:WIDEST] + '…'}")
        before = number
    return "\n".join(rows)


def around(found: tuple[Definition, ...], lines: Collection[int]) -> Iterator[tuple[Definition, tuple[int, ...]]]:
    """The functions (else classes) around these lines, each once, in order, and which lines tell what it does.

    Nothing for the top of a file.
    """
    changed: dict[Definition, list[int]] = {}
    waiting, open_ = list(reversed(found)), list[Definition]()
    for number in sorted(lines):
        while waiting and waiting[-1].first <= number:
            open_.append(waiting.pop())
        open_ = [each for each in open_ if each.last >= number]
        definition = enclosing(tuple(open_), number, number)
        if definition is not None:
            changed.setdefault(definition, []).append(number)
    return ((definition, _telling(found, definition, numbers)) for definition, numbers in changed.items())


def _telling(
    found: tuple[Definition, ...], definition: Definition, changed: Collection[int] = ()
) -> tuple[int, ...]:
    """A definition whole where it is short, else its head and what is near ``changed``; its class's line too."""
    first, last = definition.first, definition.last
    if last - first < WHOLE:
        lines = set(range(first, last + 1))
    else:
        lines = set(range(first, min(max(definition.body, first) + HEAD, last + 1)))
        for number in changed:
            lines.update(range(max(first, number - BESIDE), min(last, number + BESIDE) + 1))
    for each in found:
        if each.kind == "class" and each.first <= first and each.last >= last and each != definition:
            head = each.body if each.body > each.first else each.first + 1
            lines.update(range(each.first, min(head, each.first + 4, first)) or {each.first})
    return tuple(sorted(lines))
