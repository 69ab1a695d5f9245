"""Code that a reader of a change needs: excerpts of files with their stated relation to the change, in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import re2

from bot.code.diff import Diff, FileDiff
from bot.code.file_classes import is_test
from bot.code.index import FileDefinition, Index, family
from bot.code.resolution import Resolver, segments
from bot.code.syntax import Definition, Reference, callables, enclosing
from bot.core.text import show

#: Longest function around a change that is shown whole; lines of the head of a longer one, and beside each change.
WHOLE, HEAD, BESIDE = 60, 6, 10
#: Longest file that is shown whole, and lines of an excerpt of a definition, of a caller and of a test.
SMALL_FILE, DEFINITION, CALLER, TEST = 60, 24, 8, 12
#: Lines beside a change that are shown of a class, longest class that is shown whole, and most of its fields.
BESIDE_IN_CLASS, SMALL_CLASS, FIELDS = 3, 8, 20
#: Lines beside a call that are shown of a caller.
BESIDE_CALL = 2
#: Most definitions that are looked up for one change, callers of one function, callers in all, and tests.
MAX_DEFINITIONS, MAX_CALLERS, MAX_ALL_CALLERS, MAX_TESTS = 40, 4, 14, 2
#: Most files that are searched for callers of one name, and listed uses of one name.
MAX_FILES, MAX_USES = 12, 8
#: Lines of a long function that are shown because the change depends on them.
MAX_SOURCES = 8
_WORD = re2.compile(r"(?:^|[^.\w])([A-Za-z_$][\w$]*)")
#: Names that say nothing about the class that they construct.
_CONSTRUCTORS = frozenset({"__init__", "constructor", "__new__"})


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file and why they are shown."""

    path: str
    lines: tuple[int, ...]
    title: str


@dataclass
class Relations:
    """The code around the change of some files. ``diff`` is the whole change."""

    diff: Diff
    files: Sequence[FileDiff]
    index: Index
    resolver: Resolver
    _searched: set[str] = field(default_factory=set)

    def excerpts(self) -> Iterator[Excerpt]:
        """Yield all excerpts, the most needed first."""
        yield from self._around(self._sources)
        yield from self._definitions(changed=True)
        yield from self._callers()
        yield from self._definitions(changed=False)
        yield from self._classes()
        yield from self._imports()
        yield from self._around([file for file in self._readable if file not in self._sources])

    @cached_property
    def _readable(self) -> list[FileDiff]:
        """The changed files with a grammar; of equal changes of files with one name only that of the shortest path."""
        files: dict[object, FileDiff] = {}
        for file in sorted(self.files, key=lambda file: len(file.path)):
            if family(file.path) and file.change != "deleted" and self.index.text(file.path) is not None:
                added = tuple(line.text for hunk in file.hunks for line in hunk.lines if line.mark == "+")
                files.setdefault((file.path.rpartition("/")[2], added), file)
        return [file for file in self.files if file in files.values()]

    @cached_property
    def _sources(self) -> list[FileDiff]:
        """The readable files that are no tests, or all if there are only tests."""
        return [file for file in self._readable if not is_test(file.path)] or self._readable

    @cached_property
    def changed(self) -> list[tuple[FileDefinition, tuple[int, ...]]]:
        """The functions, else classes, that the change is in, with the changed lines; and changed values."""
        results: list[tuple[FileDefinition, tuple[int, ...]]] = []
        for file in self._readable:
            definitions = self.index.definitions(file.path)
            numbers = changed_lines(file)
            for definition, lines in around(callables(definitions), numbers):
                results.append((FileDefinition(file.path, definition), lines))
            for definition in definitions:
                lines = tuple(sorted(numbers.intersection(range(definition.first, definition.last + 1))))
                if definition.kind == "value" and lines:
                    results.append((FileDefinition(file.path, definition), lines))
        return results

    def _around(self, files: Collection[FileDiff]) -> Iterator[Excerpt]:
        """Yield the rest of what the change of some files is in."""
        small = set()
        paths = {file.path for file in files}
        for file in files:
            count = (self.index.text(file.path) or "").count("\n") + 1
            if count <= SMALL_FILE and file.change != "added":
                small.add(file.path)
                yield Excerpt(file.path, tuple(range(1, count)), "the rest of the changed file")
        for (path, definition), lines in self.changed:
            if path not in paths or path in small or definition.kind == "value":
                continue
            title = f"{_name(definition)}, which the change is in"
            yield Excerpt(path, self._body(path, definition, lines), title)

    def _body(self, path: str, definition: Definition, changed: Collection[int]) -> tuple[int, ...]:
        """Return the lines of what the change is in, without those that neither decide nor depend on it."""
        source = (self.index.text(path) or "").split("\n")
        numbers = self._partial_body(path, definition, changed)
        first = definition.first
        return tuple(number for number in numbers if number == first or source[number - 1].strip())

    def _sources_of(self, path: str, definition: Definition, changed: Collection[int]) -> set[int]:
        """Return the lines of a long function that assign what the changed lines read, or mention what they assign."""
        source = (self.index.text(path) or "").split("\n")
        read, written = set(), set()
        for reference in self._visible_references(path):
            if reference.line in changed:
                first = (segments(reference.receiver) or [reference.name])[0]
                (written if reference.kind == "write" else read).add(first if reference.receiver else reference.name)
        found: set[int] = set()
        for names, form in ((read - written, r"\b(?:%s)\b[^=\n(]*(?::=|=[^=])"), (written, r"\b(?:%s)\b")):
            names = {name for name in names if len(name) > 2 and name not in ("self", "this")}
            if names:
                pattern = re2.compile(form % "|".join(sorted(map(re2.escape, names))))
                lines = range(definition.first, definition.last + 1)
                found.update([number for number in lines if pattern.search(source[number - 1])][:MAX_SOURCES])
        return found

    def _partial_body(self, path: str, definition: Definition, changed: Collection[int]) -> tuple[int, ...]:
        """Return a short definition whole, else its head, the lines beside changes and those that they depend on."""
        first, last = definition.first, definition.last
        is_class = definition.kind == "class"
        if last - first < (SMALL_CLASS if is_class else WHOLE):
            return tuple(range(first, last + 1))
        head, beside = (1, BESIDE_IN_CLASS) if is_class else (HEAD, BESIDE)
        lines = set(range(first, min(max(definition.body, first) + head, last + 1)))
        for number in changed:
            lines.update(range(max(first, number - beside), min(last, number + beside) + 1))
        if is_class:
            return tuple(sorted(lines))
        return tuple(sorted(lines | self._sources_of(path, definition, changed)))

    def _visible_references(self, path: str) -> tuple[Reference, ...]:
        """Return the references on the lines that the diff shows of a changed file."""
        if path not in self._references:
            lines = {number for file in self._readable if file.path == path for number in file.commentable("RIGHT")}
            self._references[path] = self.index.references(path, (), lines)
        return self._references[path]

    def _further_references(self, file: FileDiff) -> list[Reference]:
        """Return the references on removed lines, as plain names, and on lines that the changed lines depend on."""
        results: list[Reference] = []
        for hunk in file.hunks:
            words = {mark: set(_WORD.findall("\n".join(line.text for line in hunk.lines if line.mark == mark))) for mark in "+-"}
            anchor = next((line.new for line in hunk.lines if line.new is not None), 1)
            results += [Reference(word, "", anchor, "read") for word in sorted(words["-"] - words["+"]) if len(word) > 3]
        visible = file.commentable("RIGHT")
        numbers: set[int] = set()
        for (path, definition), lines in self.changed:
            if path == file.path and definition.kind == "function" and definition.last - definition.first >= WHOLE:
                numbers |= self._sources_of(path, definition, lines) - visible
        if numbers:
            results += [reference for reference in self.index.references(file.path, (), numbers) if reference.kind == "call"]
        return results

    @cached_property
    def _references(self) -> dict[str, tuple[Reference, ...]]:
        return {}

    def _definitions(self, *, changed: bool) -> Iterator[Excerpt]:
        """Yield the definitions of what the changed lines use, or of what the unchanged lines beside them use."""
        count = 0
        for file in self._sources:
            numbers = changed_lines(file)
            seen: set[tuple[str, str]] = set()
            references = [
                reference
                for reference in self._visible_references(file.path)
                if (reference.line in numbers) == changed
            ]
            if not changed:
                references += self._further_references(file)
            values: dict[str, list[tuple[FileDefinition, Reference]]] = {}
            for reference in sorted(references, key=lambda reference: reference.kind != "call"):
                key = (reference.receiver, reference.name)
                if key in seen or count >= MAX_DEFINITIONS:
                    continue
                seen.add(key)
                for place in self.resolver.resolve(file.path, reference):
                    if self._is_inside(place, file.path, reference.line):
                        continue
                    count += 1
                    if place.definition.kind == "value":
                        values.setdefault(place.path, []).append((place, reference))
                    else:
                        yield self._definition([place], file.path, reference)
            for pairs in values.values():
                yield self._definition([place for place, _ in pairs], file.path, pairs[0][1])

    def _is_inside(self, place: FileDefinition, path: str, line: int) -> bool:
        """Return True if a definition is the one that its reference stands in."""
        return place.path == path and place.definition.first <= line <= place.definition.last

    def _definition(self, places: Sequence[FileDefinition], path: str, reference: Reference) -> Excerpt:
        """Return an excerpt of definitions in one file, with the first reference that means them."""
        scope = [outer for outer in self.resolver.scope(path, reference.line) if outer.name]
        by = f"the changed {_name(scope[-1])}" if scope else "the change"
        verb = {"call": "called", "write": "set"}.get(reference.kind, "used")
        where = f"{path.rpartition('/')[2]}:{reference.line}"
        names = list(dict.fromkeys(_name(place.definition) for place in places))
        listed = ", ".join(names[:4]) + (" and more" if len(names) > 4 else "")
        title = f"{listed} {'are' if len(names) > 1 else 'is'} {verb} by {by} ({show(where)})"
        lines = {number for place in places for number in self._head(place)}
        return Excerpt(places[0].path, tuple(sorted(lines)), title)

    def _head(self, place: FileDefinition) -> tuple[int, ...]:
        """Return the lines of a definition: whole if it is short, else its head, and the fields of a class."""
        path, definition = place
        if definition.kind == "value":
            constructor = enclosing(callables(self.index.definitions(path)), definition.first, definition.last)
            if constructor is not None and constructor.kind == "function":
                lines = set(self._head(FileDefinition(path, constructor)))
                return tuple(sorted(lines | {definition.first}))
            return tuple(range(definition.first, min(definition.last, definition.first + 7) + 1))
        if definition.last - definition.first < (DEFINITION if definition.kind == "function" else SMALL_CLASS):
            return tuple(range(definition.first, definition.last + 1))
        if definition.kind == "function":
            return tuple(range(definition.first, min(max(definition.body, definition.first) + DEFINITION, definition.last + 1)))
        return self._class_head(place)

    def _class_head(self, place: FileDefinition) -> tuple[int, ...]:
        path, definition = place
        lines = set(range(definition.first, max(definition.body, definition.first) + 1))
        for member in self.index.definitions(path):
            if member.kind == "value" and member.within == definition.qualified:
                lines.add(member.first)
        return tuple(sorted(lines))[:FIELDS]

    def _callers(self) -> Iterator[Excerpt]:
        """Yield the callers of changed functions, the uses of changed values, and tests that mention them."""
        targets: dict[str, list[FileDefinition]] = {}
        sources = {file.path for file in self._sources}
        for place, _ in self.changed:
            if place.path not in sources:
                continue
            for target in dict.fromkeys((place, *self._outermost(place))):
                for name in self._search_names(target):
                    targets.setdefault(name, []).append(target)
        removed = self._removed()
        count = tests = 0
        for language in dict.fromkeys(family(file.path) for file in self._sources):
            own = {name: places for name, places in targets.items() if family(places[0].path) == language}
            names = [*own, *(name for name, path in removed.items() if family(path) == language)]
            for name, paths in self.index.mentioning(names, language).items():
                used = 0
                for excerpt, is_in_test in self._uses(name, own.get(name, []), removed, paths):
                    if is_in_test and tests < MAX_TESTS:
                        tests += 1
                        yield excerpt
                    elif not is_in_test and used < MAX_CALLERS and count < MAX_ALL_CALLERS:
                        used, count = used + 1, count + 1
                        yield excerpt

    def _outermost(self, place: FileDefinition) -> Iterator[FileDefinition]:
        """Yield the outermost function around a changed one: others call that."""
        for definition in self.resolver.scope(place.path, place.definition.first):
            if definition.kind == "function" and definition.name:
                yield FileDefinition(place.path, definition)
                return

    def _search_names(self, place: FileDefinition) -> list[str]:
        """Return the names by which others use a changed definition."""
        definition = place.definition
        if definition.kind == "class":  # what changed in it is searched by its own name
            return []
        if definition.name in _CONSTRUCTORS:
            return [definition.within.rpartition(".")[2]]
        return [definition.name] if len(definition.name) > 2 else []

    def _removed(self) -> dict[str, str]:
        """Return the names that the change removes, with their files."""
        return {}

    def _uses(
        self, name: str, targets: Sequence[FileDefinition], removed: Collection[str], paths: Iterable[str]
    ) -> Iterator[tuple[Excerpt, bool]]:
        """Yield the excerpts that use one of the targets, with True for a test."""
        homes = [target.path for target in targets]
        near = sorted(paths, key=lambda path: (path not in homes, is_test(path), _distance(path, homes)))
        for path in near[:MAX_FILES]:
            visible = {
                line for file in self.diff.named(path) if file.path == path for line in file.commentable("RIGHT")
            }
            places: dict[Definition | None, list[Reference]] = {}
            for reference in self.index.references(path, [name, *self._aliases(path, name)]):
                if reference.line in visible or not self._means(path, reference, targets):
                    continue
                scope = [outer for outer in self.resolver.scope(path, reference.line) if outer.name]
                places.setdefault(scope[-1] if scope else None, []).append(reference)
            for definition, references in _once(places):
                yield self._caller(path, definition, references, name), is_test(path)

    def _aliases(self, path: str, name: str) -> list[str]:
        """Return other names under which a file imports a name."""
        pattern = r"\b" + re2.escape(name) + r"\s*(?:\bas\b|:)\s*([A-Za-z_$][\w$]*)\s*[,})\n]"
        return list(dict.fromkeys(re2.findall(pattern, self.index.text(path) or "")))[:3]

    def _means(self, path: str, reference: Reference, targets: Sequence[FileDefinition]) -> bool:
        """Return True if a reference means one of the targets, or a member that overrides it or is overridden."""
        for found in self.resolver.resolve(path, reference):
            for target in targets:
                if found == target or (
                    found.path == target.path and found.definition.first == target.definition.first
                ):
                    return True
                if target.definition.name in _CONSTRUCTORS and found.definition.kind == "class":
                    if found.definition.name == target.definition.within.rpartition(".")[2]:
                        return True
                if found.definition.within != target.definition.within and found.definition.within and target.definition.within:
                    if found.definition.name == target.definition.name and self._are_related(found, target):
                        return True
        return False

    def _are_related(self, one: FileDefinition, other: FileDefinition) -> bool:
        """Return True if the class of one member is a base of the other's."""
        owners = [self.resolver.owner_of(place) for place in (one, other)]
        if not all(owners):
            return False
        names = [owner[0].definition.name for owner in owners]
        return any(
            base.definition.name == names[1 - position]
            for position, owner in enumerate(owners)
            for base in self.resolver.bases(owner[0])
        )

    def _caller(
        self, path: str, definition: Definition | None, references: Sequence[Reference], name: str
    ) -> Excerpt:
        numbers = [reference.line for reference in references][:3]
        verb = "calls" if references[0].kind == "call" else "uses"
        where = f"line {', '.join(map(str, numbers))}"
        if definition is None:
            return Excerpt(path, tuple(numbers), f"{verb} the changed `{show(name)}` in {where}")
        limit = TEST if is_test(path) else CALLER
        lines: set[int] = set()
        if definition.last - definition.first < limit:
            lines.update(range(definition.first, definition.last + 1))
        else:
            lines.add(definition.first)
            for number in numbers:
                beside = range(number - BESIDE_CALL, number + BESIDE_CALL + 1)
                lines.update(line for line in beside if definition.first <= line <= definition.last)
        return Excerpt(path, tuple(sorted(lines)), f"{_name(definition)} {verb} the changed `{show(name)}` in {where}")

    def _classes(self) -> Iterator[Excerpt]:
        """Yield the heads of the classes whose methods change."""
        for place, _ in self.changed:
            if place.definition.kind != "function" or not place.definition.within:
                continue
            if is_test(place.path):
                continue
            for owner in self.resolver.owner_of(place)[-1:]:
                yield Excerpt(owner.path, self._class_head(owner), f"{_name(owner.definition)}, whose method changes")

    def _imports(self) -> Iterator[Excerpt]:
        for file in self._sources:
            lines = {
                number
                for statement in self.index.outline(file.path).imports
                for number in range(statement.first, statement.last + 1)
            }
            if lines:
                yield Excerpt(file.path, tuple(sorted(lines))[:40], "imports of the changed file")


def changed_lines(file: FileDiff) -> set[int]:
    """Return the lines of the new file that a change adds, or that stand where it only removes."""
    numbers: set[int] = set()
    for hunk in file.hunks:
        added = {line.new for line in hunk.lines if line.mark == "+" and line.new is not None}
        if added:
            numbers |= added
            continue
        for before, line in zip(hunk.lines, hunk.lines[1:], strict=False):
            if before.mark == "-" and line.new is not None:
                numbers.add(line.new)
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


def _once(
    places: dict[Definition | None, list[Reference]]
) -> Iterator[tuple[Definition | None, list[Reference]]]:
    """Yield the users of a name, of several with one name only the first: they are alike."""
    names = set()
    for definition, references in places.items():
        name = "" if definition is None else definition.qualified
        if name not in names:
            yield definition, references
        names.add(name)


def _name(definition: Definition) -> str:
    return f"`{show(definition.qualified)}`"


def _distance(path: str, homes: Sequence[str]) -> int:
    """Return how many folders lie between a file and the nearest of ``homes``."""
    best = 99
    folders = path.split("/")[:-1]
    for home in homes:
        others = home.split("/")[:-1]
        common = 0
        for one, other in zip(folders, others, strict=False):
            if one != other:
                break
            common += 1
        best = min(best, len(folders) + len(others) - 2 * common)
    return best
