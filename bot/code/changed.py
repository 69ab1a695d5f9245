"""The functions, classes and values that a change is in, with the lines that depend on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import re2

from bot.code.declarations import segments
from bot.code.diff import Diff, FileDiff
from bot.code.file_classes import is_test
from bot.code.index import CodeIndex, FileDefinition, family
from bot.code.interfaces import InterfaceResolver
from bot.code.names import is_comment
from bot.code.syntax import Definition, Reference, callables, enclosing
from bot.core.text import show

#: Lines of a long function that are shown because the change depends on them, or they on the change.
MAX_SOURCES = 8

_WORD = re2.compile(r"(?:^|[^.\w\"'])([A-Za-z_$][\w$]*)")


class Changed:
    """The change of some files, after it. ``diff`` is the whole change."""

    def __init__(self, diff: Diff, files: Sequence[FileDiff], index: CodeIndex) -> None:
        self.diff = diff
        self.files = files
        self.index = index
        self.resolver = InterfaceResolver(index)
        self._references: dict[str, tuple[Reference, ...]] = {}

    @cached_property
    def readable(self) -> list[FileDiff]:
        """The changed files with a grammar. Of copies that change alike, that of the shortest path."""
        files: dict[object, FileDiff] = {}
        for file in sorted(self.files, key=lambda file: len(file.path)):
            if family(file.path) and file.change != "deleted" and self.index.text(file.path) is not None:
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
            numbers = changed_lines(file)
            for definition, lines in around(callables(definitions), numbers):
                results.append((FileDefinition(file.path, definition), lines))
            for definition in definitions:
                lines = tuple(sorted(numbers.intersection(range(definition.first, definition.last + 1))))
                if definition.kind == "value" and lines:
                    results.append((FileDefinition(file.path, definition), lines))
        return results

    def is_in_test(self, path: str, line: int) -> bool:
        """Return True for a line of a test file, or of a module of tests in Rust; False if only tests change."""
        modules = (outer.name for outer in self.resolver.scope(path, line)) if path.endswith(".rs") else ()
        return all(file.path != path for file in self.sources) or "tests" in modules

    def visible(self, path: str) -> frozenset[int]:
        """Return the lines of a file that the diff shows."""
        files = [file for file in self.diff.named(path) if file.path == path]
        return frozenset(number for file in files for number in file.commentable("RIGHT"))

    def references(self, path: str) -> tuple[Reference, ...]:
        """Return the references on the lines that the diff shows of a changed file."""
        if path not in self._references:
            self._references[path] = self.index.references(path, (), self.visible(path))
        return self._references[path]

    def further_references(self, file: FileDiff) -> Iterator[Reference]:
        """Yield the names on removed lines, and the calls on lines that depend on changed ones."""
        for hunk in file.hunks:
            texts = {
                mark: "\n".join(
                    line.text for line in hunk.lines if line.mark == mark and not is_comment(line.text)
                )
                for mark in "+-"
            }
            removed = set(_WORD.findall(texts["-"])) - set(_WORD.findall(texts["+"]))
            anchor = next((line.new for line in hunk.lines if line.new is not None), 1)
            for word in sorted(removed):
                if len(word) > 3:
                    yield Reference(word, "", anchor, "read")
        numbers: set[int] = set()
        for (path, definition), lines in self.definitions:
            if path == file.path and definition.kind == "function":
                numbers |= self.dependent_lines(path, definition, lines)
        for reference in self.index.references(file.path, (), numbers) if numbers else ():
            if reference.kind == "call":
                yield reference

    def dependent_lines(self, path: str, definition: Definition, changed: Collection[int]) -> set[int]:
        """Return lines of a function that assign what changed lines read, or mention what these assign.

        Those that the diff shows are left out.
        """
        source = (self.index.text(path) or "").split("\n")
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
                lines = [
                    number for number in range(definition.first, definition.last + 1) if number not in visible
                ]
                results.update([number for number in lines if pattern.search(source[number - 1])][:MAX_SOURCES])
        return results

    def around_line(self, path: str, line: int) -> Definition | None:
        """Return the innermost function or class with a name around a line."""
        return next((outer for outer in reversed(self.resolver.scope(path, line)) if outer.name), None)


def changed_lines(file: FileDiff) -> set[int]:
    """Return the lines of the new file that a change adds, or that stand where it only removes."""
    numbers: set[int] = set()
    for hunk in file.hunks:
        added = {line.new for line in hunk.lines if line.mark == "+" and line.new is not None}
        behind = {
            line.new
            for before, line in zip(hunk.lines, hunk.lines[1:], strict=False)
            if before.mark == "-" and line.new is not None
        }
        numbers |= added or behind
    return numbers


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
