"""Find the methods that stand for a method without a body: those of the classes that implement its interface."""

from __future__ import annotations

from collections.abc import Iterator

import re2

from bot.code.change.file_classes import is_test
from bot.code.parsing.definitions import Reference
from bot.code.symbols.index import CodeIndex, FileDefinition
from bot.code.symbols.languages import rules_of
from bot.code.symbols.modules import Places
from bot.code.symbols.resolution import Resolver

#: If a method has more implementations, none of them stands for it.
MAX_IMPLEMENTATIONS = 2
#: Most files that are searched for the functions that a pointer is set to.
MAX_FILES = 6


class InterfaceResolver(Resolver):
    """Resolves a call of a method without a body to its implementations too."""

    def __init__(self, index: CodeIndex) -> None:
        super().__init__(index)
        self._implementations: dict[FileDefinition, Places] = {}

    def resolve(self, path: str, reference: Reference) -> Places:
        """Return the definitions that a reference of a file means; none if that is not certain."""
        places = super().resolve(path, reference)
        if reference.kind != "call":
            return places
        methods = [method for place in places for method in self.implementations(place)]
        return tuple(dict.fromkeys((*places, *methods)))

    def implementations(self, method: FileDefinition) -> Places:
        """Return the methods that implement one without a body, if they are few."""
        if method not in self._implementations:
            self._implementations[method] = ()
            methods = tuple(dict.fromkeys(self._find_implementations(method)))
            self._implementations[method] = methods if len(methods) <= MAX_IMPLEMENTATIONS else ()
        return self._implementations[method]

    def _find_implementations(self, method: FileDefinition) -> Iterator[FileDefinition]:
        path, definition = method
        language = rules_of(path)
        if language.is_flat:
            yield from self._find_set(method)
        text = "\n".join(self.index.lines(path)[definition.first - 1 : definition.last])
        has_body = "{" in re2.sub(r"(?:interface|struct)\{\}", "", text) or not language.has_interfaces
        owners = self.owner_of(method)[:1] if definition.kind == "function" and not has_body else ()
        others = self.index.defining([definition.name], language.name).get(definition.name, ()) if owners else ()
        for other in others:
            if other.definition.kind == "function" and other != method and not is_test(other.path):
                derived = self.owner_of(other)[:1]
                if derived and self._implements(derived[0], owners[0]):
                    yield other

    def _find_set(self, member: FileDefinition) -> Iterator[FileDefinition]:
        """Yield the functions that a pointer in a struct of C is set to."""
        path, definition = member
        name = definition.name
        if not definition.within or f"(*{name})" not in "".join(
            self.index.lines(path)[definition.first - 1 : definition.last]
        ):
            return
        value = re2.compile(rf"\b{re2.escape(name)}\s*=\s*&?(\w+)\s*(?:[,;}}/]|$)")
        for other in self.index.mentioning([name], "c")[name][:MAX_FILES]:
            lines = self.index.lines(other)
            for reference in self.index.references(other, [name]):
                match = value.search(lines[reference.line - 1]) if reference.kind != "call" else None
                if match is not None and member in super().resolve(other, reference):
                    yield from (
                        place
                        for place in self._by_name(other, match[1], (), 0)
                        if place.definition.kind == "function"
                    )

    def _implements(self, derived: FileDefinition, interface: FileDefinition) -> bool:
        """Return True if a class names an interface as a base, or has its methods in Go."""
        signature = rules_of(interface.path).signature
        if signature is None:
            return any(base.is_same(interface) for base in self.bases(derived))
        interfaces = (interface, *self.bases(interface))
        for demand in (demand for place in interfaces for demand in self._methods_inside(place)):
            name = demand.definition.name
            types = signature(self._head(demand), name)
            methods = self._members((derived,), name, is_call=True)
            if not any(signature(self._head(method), name) == types for method in methods):
                return False
        return True

    def _methods_inside(self, place: FileDefinition) -> list[FileDefinition]:
        path, definition = place
        return [
            FileDefinition(path, method)
            for method in self.index.definitions(path)
            if method.kind == "function" and method.first in definition.lines
        ]

    def _head(self, method: FileDefinition) -> str:
        path, definition = method
        return "\n".join(self.index.lines(path)[definition.first - 1 : definition.body])
