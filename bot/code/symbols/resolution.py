"""Find the definitions that a reference means: by scope, import path and the type of its receiver.

The rules are those that the languages share; a name that they do not resolve has no definition here. The only
guess is a member with a telling name that the repository defines once, or in a class and one derived from it, if
the file defines or imports that class, or as a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from bot.code.parsing.definitions import Definition, Reference
from bot.code.parsing.expressions import element_parts, segments
from bot.code.symbols.declarations import (
    base_names,
    bound_type,
    element_type,
    is_visible,
    of_kind,
    type_names,
    with_bodies,
)
from bot.code.symbols.imports import Imported
from bot.code.symbols.index import CodeIndex, FileDefinition
from bot.code.symbols.languages import rules_of
from bot.code.symbols.modules import DEPTH, OUTSIDE, Modules, Places
from bot.code.symbols.names import is_telling

#: Longest chain of members and calls that is followed.
_LONGEST_CHAIN = 6
_OWN = frozenset({"self", "this", "cls", "Self", "@"})


class Resolver:
    """Resolves the references of one repository."""

    def __init__(self, index: CodeIndex) -> None:
        self.index = index
        self._modules = Modules(index)
        self._scopes: dict[tuple[str, int], tuple[Definition, ...]] = {}
        self._values: list[FileDefinition] = []
        """The values whose classes are being resolved."""

    def scope(self, path: str, line: int) -> tuple[Definition, ...]:
        """Return the functions and classes around a line, outermost first."""
        if (path, line) not in self._scopes:
            self._scopes[path, line] = tuple(
                definition
                for definition in self.index.definitions(path)
                if definition.first <= line <= definition.last and definition.kind != "value"
            )
        return self._scopes[path, line]

    def resolve(self, path: str, reference: Reference) -> Places:
        """Return the definitions that a reference of a file means; none if that is not certain."""
        places = self._resolve(path, reference)
        if reference.kind != "call":
            return places
        functions = [
            function
            for place in places
            if place.definition.kind == "value"  # ``static create = createEnum``
            for function in self._by_name(place.path, place.definition.value, (), 0)
            if function.definition.kind == "function"
        ]
        return (*places, *functions)

    def _resolve(self, path: str, reference: Reference) -> Places:
        scope = self.scope(path, reference.line)
        if not reference.receiver and reference.name in ("super", "this"):
            return self._constructors(path, reference.name, scope)
        is_call = reference.kind == "call"
        if not reference.receiver:
            return self._by_name(path, reference.name, scope, reference.line, is_call=is_call)
        parts = segments(reference.receiver)
        owner = self._receiver_classes(path, parts, scope, reference.line)
        if owner is not None:
            return self._members(owner, reference.name, is_call=is_call)
        if modules := self._module_files(path, reference.receiver, reference.line):
            return self._modules.exported(Imported(modules, reference.name))
        last = parts[-1] if parts else ""
        if len(parts) > 1 and is_telling(last):  # a field that the repository defines once
            owner = self._classes_of_values(
                self.sole_definition(path, last.removesuffix("()")), is_call=last.endswith("()")
            )
            if places := self._members(owner, reference.name, is_call=is_call):
                return places
        return self._own_member(path, reference.name) if is_telling(reference.name) else ()

    def can_mean(self, path: str, reference: Reference, removed: Definition) -> bool:
        """Return True if a reference can mean a definition that is gone, and means nothing else."""
        parts = segments(reference.receiver)
        if self._modules.is_foreign(path, (parts or [reference.name])[0]) or self.resolve(path, reference):
            return False
        owner = removed.owner
        if not reference.receiver:
            return not owner or rules_of(path).names_members or is_telling(reference.name)
        classes = self._receiver_classes(path, parts, self.scope(path, reference.line), reference.line)
        if classes is not None:
            return any(base.definition.name == owner for place in classes for base in (place, *self.bases(place)))
        return is_telling(reference.name) or bool(self._module_files(path, reference.receiver, reference.line))

    def sole_definition(self, path: str, name: str) -> Places:
        """Return the definition of a name that the repository's files of a language define once."""
        places = self._all_definitions(path, name)
        return places[:1] if len({(place.path, place.definition.within) for place in places}) == 1 else ()

    def _all_definitions(self, path: str, name: str) -> Places:
        """Return the definitions of a name in the repository; of vendored copies, that of the file's folder."""
        places = self.index.defining([name], rules_of(path).name).get(name, ())
        functions = [place for place in places if place.definition.kind == "function"]
        bodies = [place for place in functions if place.definition.last > place.definition.first]
        real = bodies or [place for place in places if not place.path.endswith(".d.ts")]
        owners = {(place.path, place.definition.within) for place in real}
        if len(owners) > 1:  # of vendored copies, that of the same folder
            folder = path.rpartition("/")[0]
            near = [place for place in real if place.path.rpartition("/")[0] == folder]
            real = near or real
        return tuple(real)

    def _own_member(self, path: str, name: str) -> Places:
        """Return the member that the repository defines in one class, or in a class and in one derived from it.

        The file defines or imports one of the classes.
        """
        members = self.sole_definition(path, name)
        if not members:
            members = self._all_definitions(path, name)
            members = members if len(members) == 2 and self.are_related(*members) else ()
        owners = {(member.path, member.definition.owner) for member in members if member.definition.owner}
        at_hand = any(
            path_of_owner in {place.path for place in self._by_name(path, owner, (), 0)}
            for path_of_owner, owner in owners
        )
        return members if at_hand else ()

    def are_related(self, member: FileDefinition, other: FileDefinition) -> bool:
        """Return True if both are members of one name, and the class of one is a base of the other's."""
        if member.definition.name != other.definition.name or not (
            member.definition.within and other.definition.within
        ):
            return False
        owners = [self.owner_of(place)[:1] for place in (member, other)]
        if not all(owners):
            return False
        (first,), (second,) = owners
        pairs = ((first, second), (second, first))
        return any(base.is_same(owner) for derived, owner in pairs for base in self.bases(derived))

    def owner_of(self, member: FileDefinition) -> Places:
        """Return the class of a method."""
        scope = self.scope(member.path, member.definition.first)
        inside = [definition for definition in scope if definition != member.definition]
        return self._class_of(member.path, inside or [member.definition])

    def bases(self, place: FileDefinition, depth: int = 0) -> Iterator[FileDefinition]:
        """Yield the classes that a class extends or implements, nearest first."""
        if depth >= DEPTH:
            return
        for names in base_names(place.definition.type):
            for base in self._of_type(place.path, ".".join(names[:-1]), names[-1]):
                if base.definition.kind == "class" and base != place:
                    yield base
                    yield from self.bases(base, depth + 1)

    def _by_name(
        self, path: str, name: str, scope: Sequence[Definition], line: int, *, is_call: bool = False
    ) -> Places:
        """Return the definitions that a plain name means: of its file, of an import, or of the whole package."""
        language = rules_of(path)
        own = [
            definition
            for definition in self.index.definitions(path)
            if definition.name == name
            and is_visible(definition, scope, language)
            # In Java, a name that is not called is no method, and the name of a class not its constructor.
            and (is_call or not language.names_members or definition.kind != "function")
        ]
        is_nested = not language.names_members and any(definition.within for definition in own)
        has_names_of_its_own = is_call and language.names_members  # methods of Java
        local = (
            None if is_nested or has_names_of_its_own else self.index.local_name(path, name, line, is_call=is_call)
        )
        if local is not None:
            return ()
        if own:
            nearest = max(len(definition.within) for definition in own)
            nested = [definition for definition in own if len(definition.within) == nearest]
            keep = with_bodies(of_kind(nested, language, is_call=is_call))
            return tuple(FileDefinition(path, definition) for definition in keep)
        places = self._modules.imported(path, name)
        if places is not None:
            return places
        if top := self._modules.top_level(self._modules.package_files(path, name), name):
            return top
        if language.names_members and scope:
            return self._members(self._class_of(path, scope), name, is_call=is_call)
        if language.is_flat and len(name) > 2:
            return tuple(
                place for place in self.sole_definition(path, name) if is_visible(place.definition, (), language)
            )
        return ()

    def _of_type(self, path: str, qualifier: str, name: str) -> Places:
        """Return the definitions that the name of a type means, which may be one of another module."""
        if modules := self._modules.module_files(path, qualifier) if qualifier else ():
            return self._modules.top_level(modules, name)
        # In Go, all other qualified names are those of foreign packages.
        first = (segments(qualifier) or [""])[0]
        if qualifier and (rules_of(path).package_ending or self._modules.is_foreign(path, first)):
            return OUTSIDE
        return self._by_name(path, name, (), 0)

    def _receiver_classes(
        self, path: str, parts: Sequence[str], scope: Sequence[Definition], line: int, depth: int = 0
    ) -> Places | None:
        """Return the classes of a receiver's value, or OUTSIDE; None if it is a module, or nothing tells."""
        if not parts or len(parts) > _LONGEST_CHAIN or depth > DEPTH:
            return None
        first, *rest = parts
        word = first.removesuffix("()")
        owner: Places | None
        if word in _OWN:
            owner = self._class_of(path, scope)
        elif word == "super":
            owner = tuple(base for place in self._class_of(path, scope) for base in self.bases(place))[:3]
        else:
            owner = self._classes_of_name(path, first, scope, line, depth)
            if owner is None:
                modules = self._module_files(path, word, line)
                return self._through_module(modules, rest) if modules and rest else None
        return self._member_classes(owner, rest)

    def _module_files(self, path: str, receiver: str, line: int) -> tuple[str, ...]:
        """Return the files of the module that a receiver names, unless its first word is a local name there."""
        first = (segments(receiver) or [""])[0]
        local = self.index.local_name(path, first, line, is_call=False)
        return () if local is not None else self._modules.module_files(path, receiver)

    def _classes_of_name(
        self, path: str, part: str, scope: Sequence[Definition], line: int, depth: int
    ) -> Places | None:
        """Return the classes of a plain name or of its call, or OUTSIDE; None if nothing defines the name."""
        word, is_call, level = part.rstrip("()[]"), "()" in part, part.count("[]")
        local = self.index.local_name(path, word, line, is_call=is_call)
        if local is not None and local.type:
            classes = self._class_of_type(path, local.type, scope, level)
            return self._classes_of_values(classes, is_call=is_call)
        if local is not None and local.value and not is_call:
            parts = element_parts(local.value, level)
            return self._receiver_classes(path, parts, scope, local.line, depth + 1) or OUTSIDE
        places = self._by_name(path, word, scope, line, is_call=is_call)
        return self._classes_of_values(places, is_call=is_call, level=level) if places else None

    def _member_classes(self, owner: Places, parts: Sequence[str]) -> Places | None:
        """Return the classes of what is reached from a value; None if its class lacks it."""
        for part in parts:
            is_call = "()" in part
            members = self._members(owner, part.rstrip("()[]"), is_call=is_call)
            if not members and owner and part in rules_of(owner[0].path).same_class:
                continue
            if not members:
                return None if owner else OUTSIDE
            owner = self._classes_of_values(members, is_call=is_call, level=part.count("[]"))
        return owner

    def _through_module(self, modules: Sequence[str], parts: Sequence[str]) -> Places | None:
        """Return the classes of a value that is reached through a module."""
        first, *rest = parts
        places = self._modules.top_level(modules, first.rstrip("()[]"))
        owner = self._classes_of_values(places, is_call="()" in first, level=first.count("[]"))
        return self._member_classes(owner, rest)

    def _classes_of_values(self, places: Sequence[FileDefinition], *, is_call: bool, level: int = 0) -> Places:
        """Return the classes of values: a class itself, the type of a value, or of a function's result.

        With a ``level``, return those of the elements of a container, or of their elements.
        """
        for place in places:
            definition = place.definition
            if definition.kind == "class" and not level:
                return tuple(place for place in places if place.definition.kind == "class")
            is_function = definition.kind == "function" and rules_of(place.path).has_properties
            is_property = is_function and definition.body > definition.first  # it is decorated
            is_typed = definition.type and (is_call or definition.kind == "value" or is_property)
            if is_typed or definition.value:
                owner = self._classes_of_value(place, level, is_typed=bool(is_typed))
                if owner or is_typed:
                    return owner
            if is_call and rules_of(place.path).functions_are_classes and definition.name[0].isupper():
                return (place,)  # called by ``new``
        return ()

    def _classes_of_value(self, place: FileDefinition, level: int, *, is_typed: bool) -> Places:
        """Return the classes of a declared type, or of the expression that a value is set to."""
        path, definition = place
        if place in self._values or len(self._values) >= DEPTH:
            return OUTSIDE
        self._values.append(place)
        scope = self.scope(path, definition.first)
        if is_typed:
            owner: Places | None = self._class_of_type(path, definition.type, scope, level)
        else:
            owner = self._receiver_classes(path, element_parts(definition.value, level), scope, definition.first)
        self._values.pop()
        return owner or OUTSIDE

    def _class_of_type(self, path: str, declared: str, scope: Sequence[Definition], level: int = 0) -> Places:
        """Return the class that a declared type names, or that of its elements; none for a container."""
        declared = declared.lstrip(": ")  # of TypeScript
        for _ in range(min(level, DEPTH)):
            declared = element_type(declared)
        if declared.startswith("("):  # several results in Go, a tuple in Rust
            declared = declared[1:].split(",")[0].rstrip(")") if rules_of(path).has_several_results else ""
        words = type_names(declared)
        for position, word in enumerate(words[:4]):
            if word in ("Self", "self"):
                return self._class_of(path, scope)
            qualifier = re.search(rf"(\w[\w.:]*)(?:\.|::){re.escape(word)}\b", declared)
            places = self._of_type(path, qualifier[1] if qualifier is not None else "", word)
            classes = tuple(place for place in places if place.definition.kind == "class")
            if classes:
                return classes
            for outer in reversed(() if places else scope):
                head = "\n".join(self.index.lines(path)[outer.first - 1 : outer.body])
                if bound := bound_type(head, word, rules_of(path)):
                    return self._class_of_type(path, bound, ())
            if any(place.definition.kind == "value" for place in places):
                return self._classes_of_values(places, is_call=False) if position < 1 else ()
        return ()

    def _class_of(self, path: str, scope: Sequence[Definition]) -> Places:
        """Return the innermost class around, or the type of a method that stands outside of it."""
        classes = [definition for definition in scope if definition.kind == "class"]
        if classes:
            own = FileDefinition(path, classes[-1])
            if not rules_of(path).splits_types:
                return (own,)
            # An ``impl`` block and its type have one name.
            others = [place for place in self._by_name(path, own.definition.name, (), 0) if place != own]
            return (own, *others)
        if scope and scope[0].within:
            return self._by_name(path, scope[0].within.split(".")[0], (), 0)
        return ()

    def _constructors(self, path: str, word: str, scope: Sequence[Definition]) -> Places:
        """Return the constructors that ``super(...)`` or ``this(...)`` calls, or their class without one."""
        own = self._class_of(path, scope)
        owners = own if word == "this" else tuple(islice((base for place in own for base in self.bases(place)), 1))
        members = (
            self._own_members(owner, name, is_call=True)
            for owner in owners
            for name in (owner.definition.name, "constructor")
        )
        return next(filter(None, members), owners)

    def _members(self, owners: Sequence[FileDefinition], name: str, *, is_call: bool) -> Places:
        """Return the members of classes, else of their bases."""
        for owner in owners:
            for place in (owner, *self.bases(owner)):
                if places := self._own_members(place, name, is_call=is_call):
                    return places
        return ()

    def _own_members(self, owner: FileDefinition, name: str, *, is_call: bool) -> Places:
        files: tuple[str, ...] = (owner.path,)
        language = rules_of(owner.path)
        if language.package_ending:
            files = self.index.files.in_folder(owner.path.rpartition("/")[0], language.package_ending)
        members = self.index.named(name, files)
        places = [member for member in members if member.definition.owner == owner.definition.name]
        candidates = of_kind([place.definition for place in places], language, is_call=is_call)
        keep = with_bodies(candidates)
        return tuple(place for place in places if place.definition in keep)[:3]
