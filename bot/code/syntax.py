"""Functions and classes of a source file, and what its code means, for the languages whose grammar is at hand.

A child process parses: a file that is cut, half merged or hostile gives what could be read of it, in bounded time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal

from bot.code.parser_process import NotParsed, parse_apart

#: A larger file is data, or written by a program; bytes.
MAX_BYTES = 1_000_000
Kind = Literal["function", "class"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class; lines count from 1 and include decorators. ``body`` is where its head ends.

    A function without a name has that of the call that it is handed to in ``call``: ``it("works", ...)``.
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
        """Its name behind those of the classes and functions around it, joined by dots."""
        own = self.name or self.call
        return f"{self.within}.{own}" if self.within else own


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language: where its grammar comes from and what its definitions are called in it.

    ``heads`` are what belongs to a definition that stands in it, by the field that it stands in. ``owners`` give
    a function that is a value its name: by the field of the value, and that of the name. ``calls`` are calls
    that functions are handed to.
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
    """What its wheel is called behind ``tree_sitter_``, where that is not ``name``."""
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
    """The grammar by the file's ending; None where none is at hand."""
    return _BY_ENDING.get(PurePosixPath(path).suffix.lower())


def definitions(text: str, path: str) -> tuple[Definition, ...]:
    """Return all functions and classes of a file, in the order in which they begin.

    Return none for an unknown language and for a file that its parser does not read within its limits.
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
    """Identify the code and comments of a file without its layout. The last ones are remembered.

    Return None for an unknown language, for a file with a syntax error, and for a file that its parser does not
    read within its limits.
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


def enclosing(found: tuple[Definition, ...], first: int, last: int) -> Definition | None:
    """The innermost *named* function around these lines, else the innermost class, else what a call is handed.

    None at the top of a file.
    """
    around = [each for each in found if each.first <= first and each.last >= last]
    named = [each for each in around if each.name]
    functions = [each for each in named if each.kind == "function"]
    handed = [each for each in around if each.call]
    return min(functions or named or handed, key=lambda each: each.last - each.first, default=None)
