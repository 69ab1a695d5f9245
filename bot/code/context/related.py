"""Code that a reader of a change needs: the rest of what changed, and the definitions on which it relies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from bot.code.context.changed import Changed, named
from bot.code.context.options import options
from bot.code.context.page import CodeExcerpt
from bot.code.context.uses import uses_of_changes
from bot.code.parsing.definitions import Definition, Reference, callables, enclosing
from bot.code.parsing.expressions import WORD, segments
from bot.code.symbols.index import CodeIndex, FileDefinition
from bot.code.symbols.languages import rules_of
from bot.core.text import show

#: Longest function around a change that is shown whole; lines of the head of a longer one, and beside each change.
WHOLE, HEAD, BESIDE = 40, 8, 10
#: If a change is in many functions, less of each is shown: longest whole, and lines beside each change.
WHOLE_OF_MANY, BESIDE_OF_MANY = 24, 5
#: The same for a class. More of its fields are not shown.
SMALL_CLASS, CLASS_HEAD, BESIDE_IN_CLASS, FIELDS = 8, 1, 3, 20
#: Longest class, and longest function that sets it, that are shown whole around a field.
SMALL_OWNER, CONSTRUCTOR = 14, 32
#: Longest file that is shown whole; lines of a function, of a class, of a value and of imports.
SMALL_FILE, DEFINITION, CLASS, VALUE, IMPORTS = 60, 20, 24, 8, 20
#: Most definitions that are looked up for changed lines, and for the lines beside them.
MAX_DEFINITIONS, MAX_BESIDE = 40, 16

_ACCESSOR = re.compile(r"\s*@(?:[\w.]*property|\w+\.(?:getter|setter|deleter))\b")
#: The new name in ``import a as b``, ``const { a: b } = require(...)`` and ``b "example.org/a"``.
_RENAMES = re.compile(r"(?:\bas\s+|\w\s*:\s*|^(?=\w+\s+[\"`]))([\w$]+)")
_VERBS = {"call": "called by", "write": "set by", "removed": "in removed lines of"}


def excerpts(changed: Changed) -> Iterator[CodeExcerpt]:
    """Yield all excerpts about a change, the most needed first."""
    rest = list(_rest(changed, of_tests=False))
    yield from rest
    yield from _used_definitions(changed, is_changed=True)
    yield from options(changed)
    yield from uses_of_changes(changed)
    yield from _used_definitions(changed, is_changed=False)
    yield from _imports(changed, rest)
    yield from _rest(changed, of_tests=True)


def _rest(changed: Changed, *, of_tests: bool) -> Iterator[CodeExcerpt]:
    """Yield the rest of what the change is in: of tests, or of all else."""
    whole = set()
    for file in changed.readable:
        if changed.is_in_test(file.path, 1) != of_tests:
            continue
        count = len(changed.index.lines(file.path))
        if count <= SMALL_FILE and file.change != "added":
            whole.add(file.path)
            yield CodeExcerpt(file.path, tuple(range(1, count + 1)), "rest of the file")
    for (path, definition), lines in changed.definitions:
        is_missing = path not in whole and changed.is_in_test(path, definition.first) == of_tests
        if is_missing and definition.kind == "value":
            yield CodeExcerpt(path, (definition.first,), f"rest of {named(definition)}")
        elif is_missing:
            around = [outer for outer in changed.resolver.scope(path, definition.first) if outer.kind != "class"]
            numbers = {outer.first for outer in around}.union(_rest_lines(changed, path, definition, lines))
            whole_functions = [outer for outer in (*around, definition) if outer.kind == "function"]
            more = {number for outer in whole_functions for number in changed.index.body(path, outer, min(lines))}
            title = f"rest of {named(definition)}"
            yield CodeExcerpt(path, tuple(sorted(numbers)), title, tuple(sorted(more)) if not of_tests else ())
            for other in _accessors(changed, path, definition):
                yield CodeExcerpt(
                    path, head(changed.index, FileDefinition(path, other)), f"another {named(other)}"
                )
        for method in changed.resolver.implementations(FileDefinition(path, definition)) if is_missing else ():
            title = f"{named(method.definition)} implements {named(definition)}"
            yield CodeExcerpt(method.path, head(changed.index, method), title)


def _accessors(changed: Changed, path: str, definition: Definition) -> list[Definition]:
    """Return the other accessors of a property in Python."""
    if not rules_of(path).has_properties or not definition.within or definition.kind == "class":
        return []
    source = changed.index.lines(path)

    def is_accessor(method: Definition) -> bool:
        return any(_ACCESSOR.match(line) for line in source[method.first - 1 : method.body - 1])

    if not is_accessor(definition):
        return []
    others = (other for other in changed.index.definitions(path) if other.qualified == definition.qualified)
    return [other for other in others if other != definition and is_accessor(other)][:2]


def _rest_lines(changed: Changed, path: str, definition: Definition, lines: Collection[int]) -> tuple[int, ...]:
    """Return a short definition whole, else its head and the lines beside changes; of a function more."""
    first, last = definition.first, definition.last
    is_class = definition.kind == "class"
    whole, beside = (WHOLE_OF_MANY, BESIDE_OF_MANY) if changed.is_in_many else (WHOLE, BESIDE)
    if is_class:
        whole, beside = SMALL_CLASS, BESIDE_IN_CLASS
    own = changed.index.code(path, definition)
    if len(own) <= whole:
        return own
    numbers = set(own[: definition.body - first + (CLASS_HEAD if is_class else HEAD)])
    for number in lines:
        numbers.update(range(max(first, number - beside), min(last, number + beside) + 1))
    if not is_class:
        numbers |= changed.dependent_lines(path, definition, lines)
    return tuple(sorted(numbers))


def _used_definitions(
    changed: Changed, *, is_changed: bool, most_lines: int = DEFINITION
) -> Iterator[CodeExcerpt]:
    """Yield the definitions of what the changed lines use, or of what the lines beside them use."""
    count, most = 0, MAX_DEFINITIONS if is_changed else MAX_BESIDE
    for file in changed.sources:
        numbers = changed.added(file)
        references = [
            reference
            for reference in changed.references(file.path)
            if (reference.line in numbers) == is_changed and not changed.is_in_test(file.path, reference.line)
        ]
        if not is_changed:
            references += changed.further_references(file)
        receivers = {reference.receiver for reference in references if reference.kind != "argument"}
        first_uses: dict[tuple[str, str], Reference] = {}
        for reference in sorted(references, key=lambda reference: reference.kind != "call"):
            first_uses.setdefault((reference.receiver, reference.name), reference)
        values: dict[str, list[tuple[FileDefinition, Reference]]] = {}
        for reference in first_uses.values():
            for place in changed.resolver.resolve(file.path, reference) if count < most else ():
                if place.path == file.path and reference.line in place.definition.lines:
                    continue
                if place.definition.kind == "value" and place.definition.first in changed.visible(place.path):
                    continue
                if place.definition.kind == "class" and reference.kind == "read" and reference.name in receivers:
                    continue  # the member that is used is shown
                count += 1
                if place.definition.kind == "value":
                    values.setdefault(place.path, []).append((place, reference))
                else:
                    yield _definition(changed, [place], file.path, reference)
        for pairs in values.values():
            yield _definition(changed, [place for place, _ in pairs], file.path, pairs[0][1])


def _definition(
    changed: Changed, places: Sequence[FileDefinition], path: str, reference: Reference
) -> CodeExcerpt:
    """Return an excerpt of definitions in one file, with the first reference that means one of them."""
    user = changed.user_at(path, reference.line)
    by = "the change" if user is None else f"`{show(user.name or user.call)}`"
    verb = _VERBS.get(reference.kind, "used by")
    names = list(dict.fromkeys(named(place.definition) for place in places))
    list_of_names = ", ".join(names[:4]) + (" and more" if len(names) > 4 else "")
    is_called = reference.kind == "call"
    lines = {number for place in places for number in head(changed.index, place, is_called=is_called)}
    functions = [place.definition for place in places if is_called and place.definition.kind == "function"]
    more = {number for definition in functions for number in changed.index.body(places[0].path, definition)}
    title = f"{list_of_names}, {verb} {by}"
    return CodeExcerpt(places[0].path, tuple(sorted(lines)), title, tuple(sorted(more)))


def head(index: CodeIndex, place: FileDefinition, *, is_called: bool = False) -> tuple[int, ...]:
    """Return the lines of a definition that are shown: all of a short one, else its start.

    Of a class that is not called, these are its fields.
    """
    path, definition = place
    first, last = definition.first, definition.last
    if definition.kind == "value":
        value = range(first, min(last, first + VALUE - 1) + 1)
        owner = enclosing(callables(index.definitions(path)), first, last)
        if owner is None:
            return tuple(value)
        if owner.last - owner.first < (CONSTRUCTOR if owner.kind == "function" else SMALL_OWNER):
            return tuple(owner.lines)
        return tuple(sorted({owner.first, *value}))
    own = index.code(path, definition)
    if definition.kind == "class" and not is_called and len(own) > CLASS:
        return _class_head(index, place)
    return own[: definition.body - first + DEFINITION]


def _class_head(index: CodeIndex, place: FileDefinition) -> tuple[int, ...]:
    """Return the head of a class and its fields; of one with a constructor in Python the head alone."""
    path, definition = place
    members = [
        member
        for member in index.definitions(path)
        if member.within == definition.qualified and member.first in definition.lines
    ]
    constructor = rules_of(path).constructor
    has_constructor = any(member.name == constructor for member in members) if constructor else False
    fields = {member.first for member in members if member.kind == "value" and not has_constructor}
    lines = fields.union(range(definition.first, definition.body + 1))
    return tuple(sorted(lines))[:FIELDS]


def _imports(changed: Changed, rest: Sequence[CodeExcerpt]) -> Iterator[CodeExcerpt]:
    """Yield the lines of imports that changed lines use, and those that rename what the rest of the code uses."""
    for file in changed.sources:
        numbers = changed.added(file)
        used = {
            word
            for reference in changed.references(file.path)
            if reference.line in numbers
            for word in (reference.name, *segments(reference.receiver)[:1])
        }
        source = changed.index.lines(file.path)
        others = {number for excerpt in rest if excerpt.path == file.path for number in excerpt.lines}
        words = {word for number in others for word in WORD.findall(source[number - 1])}
        lines: set[int] = set()
        statements = {statement.text: statement for statement in changed.index.outline(file.path).imports[::-1]}
        for statement in statements.values():  # functions often repeat one
            rows = enumerate(statement.text.split("\n"), start=statement.first)
            matches = {
                number
                for number, row in rows
                if used.intersection(WORD.findall(row)) or words.intersection(_RENAMES.findall(row))
            }
            if matches and not statement.text.startswith("package"):
                lines |= {statement.first, *matches}
        if lines:
            yield CodeExcerpt(file.path, tuple(sorted(lines))[:IMPORTS], "imports")
