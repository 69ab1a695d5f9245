"""The functions, classes and values that a change is in, with the lines that depend on it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby

import re2

from bot.code.change.diff import DiffLine, FileDiff, Hunk, lines_shown
from bot.code.change.file_classes import is_test
from bot.code.parsing.definitions import Definition, Reference, callables, enclosing
from bot.code.parsing.expressions import segments
from bot.code.parsing.parser_process import NotParsed
from bot.code.parsing.syntax import outline
from bot.code.symbols.index import CodeIndex, FileDefinition
from bot.code.symbols.interfaces import InterfaceResolver
from bot.code.symbols.languages import rules_of
from bot.code.symbols.names import is_comment
from bot.core.text import show

#: Lines of a long function that are shown because the change depends on them, or they on the change.
MAX_SOURCES = 8
#: More functions than this are many.
MANY = 9
#: Characters of a line in which names are looked for.
LONGEST = 2_000
#: Blank lines between a removal and the code beside it.
MAX_BLANK = 3

#: Calls that take a function: tests, and others with a text as their first argument.
_TEST_CALL = re2.compile(r"(?:it|test|specify)\b[\w.]*\(")
_TITLED = re2.compile(r"[\w$.]+\(\s*['\"`]")
#: Not by re2, which refuses lone surrogates.
_WORD = re.compile(r"(?:^|[^.\w\"'])([A-Za-z_$][\w$]*)", re.ASCII)


class Changed:
    """The change of some files, after it. ``visible`` are the lines of the new files that the question shows."""

    def __init__(
        self, files: Sequence[FileDiff], index: CodeIndex, visible: Mapping[str, Collection[int]]
    ) -> None:
        self.files = files
        self.index = index
        self.shown = lines_shown(files)
        self._visible = visible
        self.resolver = InterfaceResolver(index)
        self._references: dict[str, tuple[Reference, ...]] = {}
        self._before: dict[str, tuple[Definition, ...] | None] = {}
        self._runs: dict[int, list[tuple[list[DiffLine], list[int]]]] = {}

    @cached_property
    def readable(self) -> list[FileDiff]:
        """The changed files with a grammar. Of copies that change alike, that of the shortest path."""
        files: dict[object, FileDiff] = {}
        for file in sorted(self.files, key=lambda file: len(file.path)):
            if rules_of(file.path).name and file.change != "deleted" and self.index.text(file.path) is not None:
                added = tuple(line.text for hunk in file.hunks for line in hunk.lines if line.mark == "+")
                files.setdefault((file.path.rpartition("/")[2], added), file)
        return [file for file in self.files if file in files.values()]

    @cached_property
    def sources(self) -> list[FileDiff]:
        """The readable files that are no tests, or all if there are only tests."""
        return [file for file in self.readable if not is_test(file.path)] or self.readable

    @cached_property
    def definitions(self) -> list[tuple[FileDefinition, tuple[int, ...]]]:
        """The functions, else classes, and the values that the change is in, with the changed lines."""
        results: list[tuple[FileDefinition, tuple[int, ...]]] = []
        for file in self.readable:
            definitions = self.index.definitions(file.path)
            numbers, added = self.lines(file), self.added(file)
            for definition, lines in around(callables(definitions), numbers):
                results.append((FileDefinition(file.path, definition), lines))
            for definition in definitions:
                # What is removed beside a line is in no value that ends there.
                of_value = numbers if definition.first < definition.last else added
                lines = tuple(sorted(of_value.intersection(definition.lines)))
                if definition.kind == "value" and lines:
                    results.append((FileDefinition(file.path, definition), lines))
        return results

    @cached_property
    def is_in_many(self) -> bool:
        """True if the change is in many functions, so that less of each is shown."""
        places = (place for place, _ in self.definitions if place.definition.kind == "function")
        return sum(not self.is_in_test(place.path, place.definition.first) for place in places) > MANY

    def is_in_test(self, path: str, line: int) -> bool:
        """Return True for a line of a test file, or of a module of tests in Rust; False if only tests change."""
        modules = (outer.name for outer in self.resolver.scope(path, line)) if path.endswith(".rs") else ()
        return all(file.path != path for file in self.sources) or "tests" in modules

    def visible(self, path: str) -> Collection[int]:
        """Return the lines of a file that the question shows."""
        return self._visible.get(path, ())

    def references(self, path: str) -> tuple[Reference, ...]:
        """Return the references on the lines that the change of a file shows."""
        if path not in self._references:
            self._references[path] = self.index.references(path, (), self.shown.get(path, ()))
        return self._references[path]

    def lines(self, file: FileDiff) -> set[int]:
        """Return the lines of the new file that a change adds, or beside which it only removes."""
        return {number for _, places in self.runs(file) for number in places}

    def added(self, file: FileDiff) -> set[int]:
        """Return the lines of the new file that a change adds."""
        return {
            line.new for hunk in file.hunks for line in hunk.lines if line.mark == "+" and line.new is not None
        }

    def runs(self, file: FileDiff) -> list[tuple[list[DiffLine], list[int]]]:
        """Return the runs of changed lines, with their lines in the new file.

        Of a run that only removes, these are the lines beside it in the definition that it was in: none if that
        is gone.
        """
        if id(file) not in self._runs:
            runs = [run for hunk in file.hunks for run in _runs(hunk)]
            beside = self._beside(file, [run for run in runs if all(line.mark == "-" for line in run[0])])
            self._runs[id(file)] = [
                (run, beside.get(at, []) or [line.new for line in run if line.new is not None]) for run, at in runs
            ]
        return self._runs[id(file)]

    def _beside(self, file: FileDiff, runs: Sequence[tuple[list[DiffLine], int]]) -> dict[int, list[int]]:
        """Return for runs of removed lines the lines beside them in the definition that they were in."""
        source = self.index.lines(file.path)
        beside = {at: _neighbours(source, at) for _, at in runs}
        before = self.definitions_before(file) if runs else None
        if before is None:
            return beside
        gone = {line.old for hunk in file.hunks for line in hunk.lines if line.mark == "-"}
        old = _owners(before, {line.old or 0 for run, _ in runs for line in run}, gone)
        new = _owners(
            self.index.definitions(file.path), {number for numbers in beside.values() for number in numbers}
        )
        for run, at in runs:
            owners = {old.get(line.old or 0, "") for line in run}
            beside[at] = [number for number in beside[at] if new.get(number, "") in owners]
        return beside

    def definitions_before(self, file: FileDiff) -> tuple[Definition, ...] | None:
        """Return the definitions of a file before the change, or None if they are unknown."""
        path = file.old_path or file.path
        if path not in self._before:
            text = self.index.before.get(path)
            try:
                self._before[path] = None if text is None else outline(text, path).definitions
            except NotParsed:
                self._before[path] = None
        return self._before[path]

    def further_references(self, file: FileDiff) -> Iterator[Reference]:
        """Yield the names on removed lines, and the calls on lines that depend on changed ones."""
        for run, places in self.runs(file):
            removed, added = (_words(line.text for line in run if line.mark == mark) for mark in "-+")
            for word in sorted(removed - added) if places else ():
                if len(word) > 3:
                    yield Reference(word, "", places[0], "removed")
        numbers: set[int] = set()
        for (path, definition), lines in self.definitions:
            if path == file.path and definition.kind == "function":
                numbers |= self.dependent_lines(path, definition, lines)
        for reference in self.index.references(file.path, (), numbers) if numbers else ():
            if reference.kind == "call" or reference.receiver in ("self", "this"):
                yield reference

    def dependent_lines(self, path: str, definition: Definition, changed: Collection[int]) -> set[int]:
        """Return lines of a function that assign what changed lines read, or mention what these assign.

        Those that the diff shows are left out.
        """
        source = self.index.lines(path)
        read: set[str] = set()
        assigned: set[str] = set()
        for reference in self.references(path):
            if reference.line in changed:
                first = (segments(reference.receiver) or [""])[0] if reference.receiver else reference.name
                (assigned if reference.kind == "write" else read).add(first)
        results: set[int] = set()
        visible = self.visible(path)
        for names, form in ((read - assigned, r"\b(?:%s)\b[^=\n(]*(?::=|=[^=])"), (assigned, r"\b(?:%s)\b")):
            words = sorted(re2.escape(name) for name in names - {"self", "this"} if len(name) > 2)
            if words:
                pattern = re2.compile(form % "|".join(words))
                lines = [number for number in definition.lines if number not in visible]
                results.update([number for number in lines if pattern.search(source[number - 1])][:MAX_SOURCES])
        return results

    def user_at(self, path: str, line: int) -> Definition | None:
        """Return the innermost function or class with a name around a line, else test or call with a title.

        At the top level it is the value that the line is in, if there is one.
        """
        around = self.resolver.scope(path, line)[::-1]
        with_name = (definition for definition in around if definition.name)
        tests = (definition for definition in around if _TEST_CALL.match(definition.call))
        titled = (definition for definition in around if _TITLED.match(definition.call))
        return next(chain(with_name, tests, titled, self._values_around(path, line)), None)

    def _values_around(self, path: str, line: int) -> Iterator[Definition]:
        for definition in self.index.definitions(path):
            if definition.kind == "value" and line in definition.lines:
                yield definition


def _runs(hunk: Hunk) -> Iterator[tuple[list[DiffLine], int]]:
    """Yield each run of changed lines, with the number of the line of the new file that follows on its start."""
    numbers = [line.new for line in hunk.lines if line.new is not None]
    at = numbers[0] if numbers else hunk.new_start + 1
    for is_context, group in groupby(hunk.lines, lambda line: line.mark == " "):
        lines = list(group)
        if not is_context:
            yield lines, at
        at = max((line.new for line in lines if line.new is not None), default=at - 1) + 1


def _neighbours(source: Sequence[str], at: int) -> list[int]:
    """Return the nearest line with text before a line of a file, and the nearest from there on."""
    before = range(min(at - 1, len(source)), max(at - 2 - MAX_BLANK, 0), -1)
    behind = range(at, min(at + MAX_BLANK, len(source)) + 1)
    nearest = (next((number for number in side if source[number - 1].strip()), 0) for side in (before, behind))
    return [number for number in nearest if number]


def _owners(
    definitions: tuple[Definition, ...], lines: Collection[int], gone: Collection[int | None] = ()
) -> dict[int, str]:
    """Return the name of the innermost definition around these lines.

    A definition that begins on a line that is gone counts to the one around it.
    """
    return {
        line: definition.within if definition.first in gone else definition.qualified
        for definition, numbers in around(definitions, lines)
        for line in numbers
    }


def _words(lines: Iterable[str]) -> set[str]:
    """Return the names in lines of code, without those behind a dot."""
    return set(_WORD.findall("\n".join(line[:LONGEST] for line in lines if not is_comment(line))))


def around(
    definitions: tuple[Definition, ...], lines: Collection[int]
) -> Iterator[tuple[Definition, tuple[int, ...]]]:
    """Yield the functions (else classes) around these lines, once each and in order, with the lines in them.

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
        yield definition, tuple(numbers)


def named(definition: Definition) -> str:
    """Return the name of a definition as a title shows it."""
    return f"`{show(definition.qualified)}`"
