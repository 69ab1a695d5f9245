"""The definitions, imports, local names and references of a file, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["function", "class", "value"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, class or value; lines count from 1 and include decorators. On line ``body`` its head ends.

    A value is a constant, field, enum member or macro. ``call`` is the call that an anonymous function is an
    argument of: ``it("works", ...)``. ``type`` is the start of the declared type of a value or of a function's
    result, and of the list of bases of a class. ``value`` are the names and calls that a value is set to.
    """

    kind: Kind
    name: str
    first: int
    last: int
    body: int
    within: str = ""
    call: str = ""
    type: str = ""
    value: str = ""

    @property
    def lines(self) -> range:
        """The numbers of its lines."""
        return range(self.first, self.last + 1)

    @property
    def owner(self) -> str:
        """The name of the innermost class or function around it."""
        return self.within.rpartition(".")[2]

    @property
    def qualified(self) -> str:
        """Its name after the names of the classes and functions around it, joined by dots."""
        own = self.name or self.call
        return f"{self.within}.{own}" if self.within else own


@dataclass(frozen=True, slots=True)
class Import:
    """A statement that imports names."""

    first: int
    text: str


@dataclass(frozen=True, slots=True)
class Local:
    """A parameter or local variable, which is set on ``line`` and holds on the lines from ``first`` to ``last``.

    ``type`` is the start of its declared type. ``value`` are the names and calls that it is set to; ``[]`` follows
    if it is an element of that value.
    """

    name: str
    line: int
    first: int
    last: int
    type: str = ""
    value: str = ""


ReferenceKind = Literal["call", "read", "write", "argument", "removed"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in code that is neither a definition nor an import; ``receiver`` is the text before its last dot."""

    name: str
    receiver: str
    line: int
    kind: ReferenceKind


@dataclass(frozen=True, slots=True)
class Outline:
    """The definitions, imports and local names of a file, and the references that were asked for."""

    definitions: tuple[Definition, ...] = ()
    imports: tuple[Import, ...] = ()
    local_names: tuple[Local, ...] = ()
    package: str = ""
    """The clause that names the package of the file."""
    references: tuple[Reference, ...] = ()


def callables(candidates: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Return the functions and classes among these definitions."""
    return tuple(definition for definition in candidates if definition.kind != "value")


def enclosing(definitions: tuple[Definition, ...], first: int, last: int) -> Definition | None:
    """Return the smallest function with a name around these lines, else class, else function argument of a call.

    Return None at the top level of a file.
    """
    around = [definition for definition in definitions if definition.first <= first and definition.last >= last]
    with_name = [definition for definition in around if definition.name]
    functions = [definition for definition in with_name if definition.kind == "function"]
    callbacks = [definition for definition in around if definition.call]
    return min(
        functions or with_name or callbacks,
        key=lambda definition: definition.last - definition.first,
        default=None,
    )
