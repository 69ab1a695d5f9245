"""Where functions and classes begin and end in a source file, for the languages whose grammar is at hand. Pure.

Parsing takes any bytes: a file that is cut, half merged or hostile gives what could be read of it, in bounded
time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePosixPath
from time import thread_time
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

#: A larger file is data, or written by a program; bytes.
MAX_BYTES = 1_000_000
#: Nodes of a tree that are looked at.
MAX_NODES = 400_000
#: Definitions of one file that are told apart.
MAX_DEFINITIONS = 10_000
#: Definitions inside of each other that are told apart.
MAX_NESTING = 50
#: Brackets inside of each other that a parser is handed: many more overflow its stack.
MAX_BRACKETS = 1_000
#: Levels of a tree that are looked at, and characters of a name.
MAX_DEPTH, LONGEST_NAME = 1_000, 200
#: Bytes that a parser is handed at a time, and those of a node's text: most are a word.
_CHUNK, _TEXT = 65_536, 1_024
#: How long one parse may take, seconds of this thread's processor time; the linear case takes milliseconds.
SECONDS = 1.0

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
    """All functions and classes of a file, in the order in which they begin; none for an unknown language."""
    grammar = grammar_of(path)
    tree = parse(text, path)
    if grammar is None or tree is None:
        return ()
    data = text.encode("utf-8", "surrogatepass")
    found: list[Definition] = []
    open_: list[_Open] = []
    for node in _telling(tree, grammar):
        while open_ and open_[-1].node.end_byte <= node.start_byte:
            open_.pop()
        kind = _kind(node, grammar)
        names = open_[-1].names if open_ else ()
        if kind is not None and len(names) < MAX_NESTING:
            if len(found) == MAX_DEFINITIONS:
                break
            name = _name(node, open_, grammar, data)
            call = "" if name or kind == "class" else _call(node, open_, grammar, data)
            within = ".".join(each for each in names if each)
            found.append(
                Definition(
                    kind,
                    name,
                    first=_first(node, open_, grammar),
                    last=node.end_point.row + 1,
                    body=(node.child_by_field_name("body") or node).start_point.row + 1,
                    within=within,
                    call=call,
                )
            )
            names = (*names, name)
        open_.append(_Open(node, names))
    return tuple(sorted(found, key=lambda each: (each.first, -each.last)))


@dataclass(frozen=True, slots=True)
class _Open:
    """A node around the one that is looked at, and the names of the definitions up to it."""

    node: Node
    names: tuple[str, ...]


def enclosing(found: tuple[Definition, ...], first: int, last: int) -> Definition | None:
    """The innermost *named* function around these lines, else the innermost class, else what a call is handed.

    None at the top of a file.
    """
    around = [each for each in found if each.first <= first and each.last >= last]
    named = [each for each in around if each.name]
    functions = [each for each in named if each.kind == "function"]
    handed = [each for each in around if each.call]
    return min(functions or named or handed, key=lambda each: each.last - each.first, default=None)


class _Buffer(threading.local):
    """What a thread's parsers are handed, piece by piece: always the same object."""

    def __init__(self) -> None:
        self.piece = bytearray()


_buffer = _Buffer()


class _Source:
    """A file as its parser asks for it, and later its nodes for their text.

    The binding never lets go of a piece that its parser was handed (py-tree-sitter 0.26), and takes nothing but
    bytes for the text of a node.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.parsed = False

    def __call__(self, offset: int, _place: object) -> bytes | bytearray:
        if self.parsed:
            return self._data[offset : offset + _TEXT]
        _buffer.piece[:] = self._data[offset : offset + _CHUNK]
        return _buffer.piece


def parse(text: str, path: str) -> Tree | None:
    """The syntax tree; None for an unknown language, a file too large or too deep, or a parse too long."""
    grammar = grammar_of(path)
    if grammar is None or len(text) > MAX_BYTES:
        return None
    data = text.encode("utf-8", "surrogatepass")  # a caller finds the places again in the same bytes
    if len(data) > MAX_BYTES or _depth(data) > MAX_BRACKETS:
        return None
    from tree_sitter import Parser

    source, deadline = _Source(data), thread_time() + SECONDS
    try:
        return Parser(_language(grammar)).parse(
            source,
            progress_callback=lambda _offset, _has_error: thread_time() > deadline,
        )
    except ValueError:  # stopped
        return None
    finally:
        source.parsed = True


def nodes(tree: Tree) -> Iterator[tuple[Node, Sequence[Node]]]:
    """Every node with its ancestors (a live list), parents first, within ``MAX_NODES`` and ``MAX_DEPTH``.

    Walked by hand: a hostile file nests deeper than Python recurses, and ``Node.parent`` starts at the root.
    """
    cursor = tree.walk()
    ancestors: list[Node] = []
    looked = 0
    while True:
        node = cursor.node
        looked += 1
        if node is None or looked > MAX_NODES:
            return
        yield node, ancestors
        if len(ancestors) < MAX_DEPTH and cursor.goto_first_child():
            ancestors.append(node)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            ancestors.pop()


_OPENING = bytes.maketrans(b"([{)]}", b"\x01\x01\x01\x00\x00\x00")
_NO_BRACKETS = bytes(set(range(256)) - set(b"([{)]}"))


def _depth(data: bytes) -> int:
    """How deep brackets stand inside of each other, those in strings counted too."""
    deepest = depth = 0
    for opening in data.translate(_OPENING, _NO_BRACKETS):
        if opening:
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest


@cache
def _language(grammar: Grammar) -> Any:
    from importlib import import_module

    from tree_sitter import Language

    package = import_module(f"tree_sitter_{grammar.package or grammar.name}")
    return Language(getattr(package, grammar.maker)())


def _telling(tree: Tree, grammar: Grammar) -> list[Node]:
    """The nodes that definitions are told from, parents before children.

    The parser's own query finds them fifty times as fast as a walk, but on what does not parse it can take a
    time that grows with the square of the file, and so it does in very deep trees.
    """
    if tree.root_node.has_error:
        types = _types(grammar)
        return [node for node, _ in nodes(tree) if node.type in types]
    from tree_sitter import QueryCursor

    cursor = QueryCursor(_query(grammar))
    cursor.set_max_start_depth(MAX_DEPTH)
    found = cursor.captures(tree.root_node).get("it", [])
    return sorted(found, key=lambda node: (node.start_byte, -node.end_byte))


def _types(grammar: Grammar) -> frozenset[str]:
    types = grammar.functions | grammar.classes | grammar.calls
    return types.union(grammar.heads, grammar.owners)


@cache
def _query(grammar: Grammar) -> Any:
    from tree_sitter import Query

    types = _types(grammar)
    return Query(_language(grammar), "\n".join(f"({each}) @it" for each in sorted(types)))


def _kind(node: Node, grammar: Grammar) -> Kind | None:
    if node.type in grammar.functions:
        return "function"
    return "class" if node.type in grammar.classes else None


def _name(node: Node, around: Sequence[_Open], grammar: Grammar, data: bytes) -> str:
    """The name of a definition; that of the variable or key for a function that is a value."""
    own = node.child_by_field_name("name") or node.child_by_field_name("type")
    if own is None and node.type == "type_declaration" and node.named_child_count:
        own = node.named_children[0].child_by_field_name("name")
    owner = around[-1].node if around else None
    if own is None and owner is not None and owner.type in grammar.owners:
        value, name = grammar.owners[owner.type]
        own = owner.child_by_field_name(name) if owner.child_by_field_name(value) == node else None
    return "" if own is None else _beginning(own, data).split("<")[0]


def _call(node: Node, around: Sequence[_Open], grammar: Grammar, data: bytes) -> str:
    """The call that a function is handed to, or the macro that is one: what it begins with, in one line."""
    if node.type == "macro_invocation":
        call: Node | None = node
    else:
        call = around[-1].node if around and around[-1].node.type in grammar.calls else None
        handed = call.child_by_field_name("arguments") if call is not None else None
        if handed is None or not handed.start_byte <= node.start_byte < handed.end_byte:
            return ""
    return "" if call is None else _beginning(call, data).split("\n")[0].rstrip()[:60]


def _beginning(node: Node, data: bytes) -> str:
    """Never ``node.text``: in a hostile file that is most of the file, again and again."""
    return data[node.start_byte : min(node.end_byte, node.start_byte + LONGEST_NAME)].decode("utf-8", "replace")


def _first(node: Node, around: Sequence[_Open], grammar: Grammar) -> int:
    """The first line, decorators included, and ``const`` or ``export`` before it."""
    for each in reversed(around):
        outer = each.node
        inside = grammar.heads.get(outer.type) or grammar.owners.get(outer.type, ("",))[0]
        if outer.type in ("pair", "assignment_expression") or not inside:
            break
        held = outer.child_by_field_name(inside)
        # ``export const f = ...``: a declaration stands between the two, and holds the second.
        if held is None or not held.start_byte <= node.start_byte <= node.end_byte <= held.end_byte:
            break
        if held != node and held.type not in ("lexical_declaration", "variable_declaration"):
            break
        node = outer
    return node.start_point.row + 1
