"""Functions and classes of a source file, and a fingerprint of its code, for languages with a grammar here.

A child process parses in bounded time. A truncated, half-merged or hostile file gives the part that could be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from bot.code.parsing.grammars import compares, grammar_of
from bot.code.parsing.parser_process import NotParsed, parse_apart

#: A larger file is data or generated; bytes.
MAX_BYTES = 1_000_000
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
    """The definitions and imports of a file, and the references that were asked for."""

    definitions: tuple[Definition, ...] = ()
    imports: tuple[Import, ...] = ()
    package: str = ""
    """The clause that names the package of the file."""
    references: tuple[Reference, ...] = ()


def definitions(text: str, path: str) -> tuple[Definition, ...]:
    """Return all functions and classes of a file, ordered by their first line.

    Return none for an unknown language, or if the parser exceeds its limits.
    """
    try:
        return callables(outline(text, path).definitions)
    except NotParsed:
        return ()


def callables(candidates: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Return the functions and classes among these definitions."""
    return tuple(definition for definition in candidates if definition.kind != "value")


def outline(
    text: str, path: str, names: frozenset[str] = frozenset(), lines: frozenset[int] = frozenset()
) -> Outline:
    """Return the definitions and imports of a file, and the references to ``names`` and on ``lines``.

    Return nothing for an unknown language. Raises NotParsed if the parser exceeds its limits.
    """
    from bot.code.parsing import outlines

    return parse_apart(outlines.outline, text, path, names, lines) if _is_readable(text, path) else Outline()


@lru_cache(maxsize=4)
def fingerprint(text: str, path: str, comments: bool = True) -> str | None:
    """Identify the code and comments of a file without its layout. The last four are cached.

    Without ``comments``, only those count that tools read as directives.
    Return None for an unknown language or a syntax error, or if the parser exceeds its limits.
    """
    from bot.code.parsing import trees

    if not (_is_readable(text, path) and compares(path)):
        return None
    try:
        return parse_apart(trees.fingerprint, text, path, comments)
    except NotParsed:
        return None


def _is_readable(text: str, path: str) -> bool:
    return grammar_of(path) is not None and len(text) <= MAX_BYTES


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
