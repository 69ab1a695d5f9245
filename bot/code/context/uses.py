"""The callers of changed functions, the uses of changed or removed values, and the tests that mention them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import re2

from bot.code.change.file_classes import is_test
from bot.code.context.changed import Changed, named
from bot.code.context.page import CodeExcerpt
from bot.code.parsing.definitions import Definition, Reference
from bot.code.symbols.index import FileDefinition
from bot.code.symbols.languages import rules_of
from bot.core.text import show

#: Longest caller, test, and method that uses a changed field of its class, that are shown whole; and lines beside
#: a call in a longer one.
CALLER, TEST, METHOD, BESIDE_CALL = 12, 8, 30, 2
#: Most callers of one function, in all, and tests; most lines of one caller that are named.
MAX_CALLERS, MAX_ALL_CALLERS, MAX_TESTS, MAX_LINES = 4, 14, 1, 3
#: Most files that are searched for one name, and users in one of them.
MAX_FILES, MAX_IN_FILE = 12, 3
#: Further users of a name in a file that are named only.
MAX_FURTHER = 6
_HANDLER = re2.compile(r"\s*(?:\}\s*)?(?:except|catch|finally)\b")
#: Lines of a list of exports.
LONGEST_LIST = 100
_EXPORTS = re2.compile(r"(?:module\.)?exports\b|export\s*(?:default\b|[{*=])")
#: Methods that are called by the name of their class.
_CONSTRUCTORS = frozenset({"__init__", "__new__", "constructor"})


def uses_of_changes(changed: Changed) -> Iterator[CodeExcerpt]:
    """Yield the uses of all that a change alters or removes, within limits."""
    removed, all_targets = _removed(changed), list(_targets(changed))
    tests = 0
    users: set[tuple[str, int]] = set()
    for language in dict.fromkeys(rules_of(file.path).name for file in changed.sources):
        targets: dict[str, list[FileDefinition]] = {}
        for name, place in all_targets:
            if rules_of(place.path).name == language:
                targets.setdefault(name, []).append(place)
        names = dict.fromkeys(
            [*targets, *(name for name, place in removed.items() if rules_of(place.path).name == language)]
        )
        for name, paths in changed.index.mentioning(names, language).items():
            if not changed.index.is_in_time():
                return
            places = targets.get(name, [])
            callers: list[CodeExcerpt] = []
            for excerpt in uses(changed, name, places, paths, removed.get(name)):
                if is_test(excerpt.path):
                    tests += 1
                    if tests <= MAX_TESTS:
                        yield excerpt
                    continue
                users.add((excerpt.path, excerpt.lines[0]))
                if len(callers) == MAX_CALLERS or len(users) > MAX_ALL_CALLERS:
                    callers[-1:] = [_with_others(caller) for caller in callers[-1:]]
                    break
                callers.append(excerpt)
            yield from callers


def _with_others(excerpt: CodeExcerpt) -> CodeExcerpt:
    return replace(excerpt, relation=f"{excerpt.relation}; so do others")


def _targets(changed: Changed) -> Iterator[tuple[str, FileDefinition]]:
    """Yield what changed outside of tests, with the name that others use for it."""
    for place, _ in changed.definitions:
        if changed.is_in_test(place.path, place.definition.first):
            continue
        scope = changed.resolver.scope(place.path, place.definition.first)
        outermost = next((outer for outer in scope if outer.kind == "function" and outer.name), place.definition)
        for definition in dict.fromkeys((place.definition, outermost)):
            name = definition.name
            if name in _CONSTRUCTORS:
                name = definition.owner
            # What changed in a class is searched by its own name.
            if definition.kind != "class" and len(name) > 2:
                yield name, FileDefinition(place.path, definition)


def _removed(changed: Changed) -> dict[str, FileDefinition]:
    """Return the definitions that the change removes, by name."""
    before: dict[str, FileDefinition] = {}
    for file in changed.files:
        numbers = {line.old for hunk in file.hunks for line in hunk.lines if line.mark == "-"}
        definitions = changed.definitions_before(file) if numbers and not is_test(file.path) else ()
        for definition in definitions or ():
            if definition.first in numbers and len(definition.name) > 2:
                before[definition.name] = FileDefinition(file.path, definition)
    after = {definition.name for file in changed.readable for definition in changed.index.definitions(file.path)}
    return {name: place for name, place in before.items() if name not in after}


def uses(
    changed: Changed,
    name: str,
    targets: Sequence[FileDefinition],
    paths: Iterable[str],
    removed: FileDefinition | None = None,
) -> Iterator[CodeExcerpt]:
    """Yield the excerpts of these files that use one of the targets, or what is removed if there are none."""
    label = f"`{show(name)}`" if targets else f"the removed `{show(name)}`"
    homes = [target.path for target in targets]
    near = sorted(paths, key=lambda path: (path not in homes, is_test(path), _distance(path, homes)))
    alias = re2.compile(r"\b" + re2.escape(name) + r"\s*(?:\bas\b|:)\s*([A-Za-z_$][\w$]*)\s*[,})\n]")
    for path in near[:MAX_FILES]:
        visible = changed.visible(path)
        users: dict[Definition | None, list[Reference]] = {}
        aliases = dict.fromkeys(alias.findall(changed.index.text(path) or ""))
        source = changed.index.lines(path)
        mentions = changed.index.references(path, [name, *list(aliases)[:3], *_delegations(targets)])
        for reference in mentions if targets else (*_imports(changed, path, name), *mentions):
            if reference.line not in visible and _means(changed, path, reference, targets, removed):
                user = changed.user_at(path, reference.line)
                is_prototype = bool(targets) and _is_prototype(path, source, reference, user)
                if not is_prototype and not (path in homes and _is_exported(source, reference.line, user)):
                    users.setdefault(user, []).append(reference)
        by_name: dict[str, tuple[Definition | None, list[Reference]]] = {}
        for user, references in users.items():  # several with one name are alike
            by_name.setdefault("" if user is None else user.qualified, (user, references))
        for place, (user, references) in enumerate(islice(by_name.values(), MAX_IN_FILE), start=1):
            is_own = user is not None and any(
                target.definition.kind == "value" and target.definition.within == user.within for target in targets
            )
            longest = METHOD if is_own else TEST if is_test(path) else CALLER
            others = _further(list(by_name.values())[place:], targets) if place == MAX_IN_FILE else ""
            excerpt = user_excerpt(source, path, user, references, f"{label}{others}", longest)
            if user is not None and user.kind == "function" and not is_test(path):
                excerpt = replace(excerpt, more=changed.index.body(path, user, references[0].line))
            yield excerpt


def _is_prototype(path: str, source: Sequence[str], reference: Reference, user: Definition | None) -> bool:
    """Return True for a prototype in C, which macros before it can make a value for the parser."""
    if not rules_of(path).is_flat:
        return False
    if user is None:
        return True
    return user.kind == "value" and reference.kind != "call" and f"{reference.name}(" in source[reference.line - 1]


def _is_exported(source: Sequence[str], line: int, user: Definition | None) -> bool:
    """Return True for a line at the top level of a file that only exports names of it."""
    if user is not None and (user.kind != "value" or user.within):
        return False
    before = reversed(source[max(0, line - LONGEST_LIST) : line])
    statement = next((text for text in before if text[:1].strip(" \t\r)]},;")), "")
    return _EXPORTS.match(statement) is not None


def _further(users: Sequence[tuple[Definition | None, list[Reference]]], targets: Sequence[FileDefinition]) -> str:
    """Name further users of a value in a file, or count those of a function."""
    is_value = any(target.definition.kind == "value" for target in targets)
    named_users = users[:MAX_FURTHER] if is_value else ()
    names = [
        f"{'' if user is None else named(user)} line {references[0].line}".strip()
        for user, references in named_users
    ]
    rest = len(users) - len(names)
    names += [f"{rest} more"] if rest else []
    return f"; so do {', '.join(names)}" if names else ""


def _imports(changed: Changed, path: str, name: str) -> Iterator[Reference]:
    """Yield the imports of a name: those of a removed one fail."""
    pattern = re2.compile(rf"\b{re2.escape(name)}\b")
    for statement in changed.index.outline(path).imports:
        if pattern.search(statement.text):
            yield Reference(name, "", statement.first, "read")


def _delegations(targets: Sequence[FileDefinition]) -> tuple[str, ...]:
    is_constructor = any(_is_constructor(target) for target in targets)
    return rules_of(targets[0].path).delegations if is_constructor else ()


def _is_constructor(place: FileDefinition) -> bool:
    return place.definition.name in (place.definition.owner, *_CONSTRUCTORS)


def _means(
    changed: Changed,
    path: str,
    reference: Reference,
    targets: Sequence[FileDefinition],
    removed: FileDefinition | None,
) -> bool:
    """Return True if a reference means one of the targets, or a member that overrides it or is overridden.

    Without targets, return True if it can mean what is removed. A value is no use of itself.
    """
    if not targets and removed is not None:
        return changed.resolver.can_mean(path, reference, removed.definition)
    is_inside = any(
        target.definition.kind == "value" and target.path == path and reference.line in target.definition.lines
        for target in targets
    )
    if reference.kind == "argument" or is_inside:
        return False
    return any(
        place.is_same(target)
        or (reference.kind == "call" and _is_constructed(place, target))
        or changed.resolver.are_related(place, target)
        for place in changed.resolver.resolve(path, reference)
        for target in targets
    )


def _is_constructed(place: FileDefinition, target: FileDefinition) -> bool:
    is_class = place.definition.kind == "class" and place.path == target.path
    owner = target.definition.owner
    return is_class and place.definition.name == owner and _is_constructor(target)


def user_excerpt(
    source: Sequence[str],
    path: str,
    user: Definition | None,
    references: Sequence[Reference],
    target: str,
    longest: int,
) -> CodeExcerpt:
    """Return the lines of one user around its first references."""
    numbers = [reference.line for reference in references][:MAX_LINES]
    verb = "calls" if references[0].kind == "call" else "uses"
    if user is None:
        return CodeExcerpt(path, tuple(sorted(set(numbers))), f"{verb} {target}")
    lines: Collection[int] = user.lines
    if user.last - user.first >= longest:
        beside = {line for number in numbers for line in range(number - BESIDE_CALL, number + BESIDE_CALL + 1)}
        calls = [reference.line for reference in references if reference.kind == "call"][:1]
        handlers = {line for number in calls for line in _handlers(source[: user.last], number)}
        lines = {user.first, *handlers, *beside.intersection(lines)}
    return CodeExcerpt(path, tuple(sorted(lines)), f"{named(user)} {verb} {target}")


def _handlers(source: Sequence[str], call: int) -> Iterator[int]:
    """Yield the lines that handle the errors of a call on a line, each with the first line of its block."""
    # Handlers of a ``try`` around the call are indented less than what is in it.
    level, is_among_handlers = _indentation(source[call - 1]), False
    for number, line in enumerate(source[call:], start=call + 1):
        indentation = _indentation(line)
        if not line.strip() or indentation > level or (indentation == level and not is_among_handlers):
            continue
        is_among_handlers = _HANDLER.match(line) is not None
        level = indentation
        if is_among_handlers:
            yield from (number, number + 1)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _distance(path: str, homes: Sequence[str]) -> int:
    """Return how many folders lie between a file and the nearest of ``homes``."""
    folders = path.split("/")[:-1]
    distances = []
    for home in homes:
        others = home.split("/")[:-1]
        common = 0
        while common < min(len(folders), len(others)) and folders[common] == others[common]:
            common += 1
        distances.append(len(folders) + len(others) - 2 * common)
    return min(distances, default=0)
