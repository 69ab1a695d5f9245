"""Functions and classes of a source file, and a fingerprint of its code, for languages with a grammar here.

A child process parses in bounded time. A truncated, half-merged or hostile file gives the part that could be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal

from bot.code.parser_process import NotParsed, parse_apart

#: A larger file is data or generated; bytes.
MAX_BYTES = 1_000_000
Kind = Literal["function", "class"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class; lines count from 1 and include decorators. ``body`` is where its head ends.

    ``call`` is the call that an anonymous function is an argument of: ``it("works", ...)``.
    """

    kind: Kind
    name: str
    first: int
    last: int
    body: int
    within: str = ""
    call: str = ""

    @property
    def qualified(self) -> str:
        """Its name after the names of the classes and functions around it, joined by dots."""
        own = self.name or self.call
        return f"{self.within}.{own}" if self.within else own


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language: the package of its grammar, and the node types of its definitions.

    ``heads`` maps nodes that start before the definition in them (decorators, ``export``) to its field. ``owners``
    maps nodes that name a function value to the fields of value and name. ``calls`` are calls that take functions.
    """

    name: str
    endings: tuple[str, ...]
    functions: frozenset[str]
    classes: frozenset[str]
    heads: Mapping[str, str] = field(default_factory=dict, hash=False)
    owners: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    calls: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset({"comment", "line_comment", "block_comment"})
    strings: frozenset[str] = frozenset({"string", "string_literal", "interpreted_string_literal", "char_literal"})
    package: str = ""
    """The name of its package after ``tree_sitter_``, if it is not ``name``."""
    maker: str = "language"


PYTHON = Grammar(
    "python",
    (".py", ".pyi"),
    functions=frozenset({"function_definition"}),
    classes=frozenset({"class_definition"}),
    heads={"decorated_definition": "definition"},
)
_SCRIPT_OWNERS = {
    "variable_declarator": ("value", "name"),
    "assignment_expression": ("right", "left"),
    "pair": ("value", "key"),
}
_JAVASCRIPT = Grammar(
    "javascript",
    (".js", ".jsx", ".mjs", ".cjs"),
    functions=frozenset(
        {"function_declaration", "function_expression", "generator_function", "generator_function_declaration",
         "method_definition", "arrow_function"}
    ),
    classes=frozenset({"class_declaration", "class"}),
    heads={"export_statement": "declaration"},
    owners={**_SCRIPT_OWNERS, "field_definition": ("value", "property")},
    calls=frozenset({"call_expression"}),
)  # fmt: skip
_TYPESCRIPT = replace(
    _JAVASCRIPT,
    name="typescript",
    endings=(".ts", ".mts", ".cts"),
    functions=_JAVASCRIPT.functions | {"function_signature", "method_signature"},
    classes=_JAVASCRIPT.classes
    | {"abstract_class_declaration", "interface_declaration", "enum_declaration", "internal_module", "module",
       "type_alias_declaration"},
    owners={**_SCRIPT_OWNERS, "public_field_definition": ("value", "name")},
    maker="language_typescript",
)  # fmt: skip
_TSX = replace(_TYPESCRIPT, name="tsx", endings=(".tsx",), package="typescript", maker="language_tsx")
_GO = Grammar(
    "go",
    (".go",),
    functions=frozenset({"function_declaration", "method_declaration", "func_literal"}),
    classes=frozenset({"type_declaration"}),
    calls=frozenset({"call_expression"}),
)
_JAVA = Grammar(
    "java",
    (".java",),
    functions=frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"}),
    classes=frozenset(
        {"class_declaration", "interface_declaration", "enum_declaration", "record_declaration",
         "annotation_type_declaration"}
    ),
)  # fmt: skip
_RUST = Grammar(
    "rust",
    (".rs",),
    functions=frozenset({"function_item", "function_signature_item", "macro_definition", "macro_invocation"}),
    classes=frozenset({"impl_item", "trait_item", "struct_item", "enum_item", "union_item", "mod_item"}),
)
_BY_ENDING = {
    ending: grammar
    for grammar in (PYTHON, _JAVASCRIPT, _TYPESCRIPT, _TSX, _GO, _JAVA, _RUST)
    for ending in grammar.endings
}


def grammar_of(path: str) -> Grammar | None:
    """Return the grammar by the file's suffix, or None if there is none."""
    return _BY_ENDING.get(PurePosixPath(path).suffix.lower())


def definitions(text: str, path: str) -> tuple[Definition, ...]:
    """Return all functions and classes of a file, ordered by their first line.

    Return none for an unknown language, or if the parser exceeds its limits.
    """
    try:
        return parsed_definitions(text, path)
    except NotParsed:
        return ()


def parsed_definitions(text: str, path: str) -> tuple[Definition, ...]:
    """Return ``definitions``, or raise NotParsed for a file that its parser does not read within its limits."""
    from bot.code import trees

    return parse_apart(trees.outline, text, path) if _is_readable(text, path) else ()


@lru_cache(maxsize=4)
def fingerprint(text: str, path: str) -> str | None:
    """Identify the code and comments of a file without its layout. The last four are cached.

    Return None for an unknown language or a syntax error, or if the parser exceeds its limits.
    """
    from bot.code import trees

    if not _is_readable(text, path):
        return None
    try:
        return parse_apart(trees.fingerprint, text, path)
    except NotParsed:
        return None


def _is_readable(text: str, path: str) -> bool:
    return grammar_of(path) is not None and len(text) <= MAX_BYTES


def enclosing(candidates: tuple[Definition, ...], first: int, last: int) -> Definition | None:
    """Return the choices *named* function around these lines, else class, else function argument of a call.

    Return None at the top level of a file.
    """
    around = [definition for definition in candidates if definition.first <= first and definition.last >= last]
    named = [definition for definition in around if definition.name]
    functions = [definition for definition in named if definition.kind == "function"]
    callbacks = [definition for definition in around if definition.call]
    return min(
        functions or named or callbacks, key=lambda definition: definition.last - definition.first, default=None
    )
