"""Where functions and classes begin and end in a source file, for the languages whose grammar is at hand. Pure.

Parsing takes any bytes: a file that is cut, half merged or hostile gives what could be read of it, in bounded
time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
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
#: How long one parse may take, seconds; the linear case takes milliseconds.
SECONDS = 1.0

Kind = Literal["function", "class"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class; lines count from 1 and include decorators. ``body`` is where its head ends."""

    kind: Kind
    name: str
    first: int
    last: int
    body: int
    within: str = ""

    @property
    def qualified(self) -> str:
        """Its name behind those of the classes and functions around it, joined by dots."""
        return f"{self.within}.{self.name}" if self.within else self.name


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language: where its grammar comes from and what its definitions are called in it."""

    name: str
    module: str
    function: str
    functions: frozenset[str]
    classes: frozenset[str]
    comments: frozenset[str] = frozenset({"comment", "line_comment", "block_comment"})
    strings: frozenset[str] = frozenset({"string", "string_literal", "interpreted_string_literal", "char_literal"})


_SCRIPT_FUNCTIONS = frozenset(
    {
        "function_declaration",
        "function_expression",
        "generator_function_declaration",
        "method_definition",
        "arrow_function",
    }
)
_SCRIPT_CLASSES = frozenset({"class_declaration", "class", "abstract_class_declaration", "interface_declaration"})

PYTHON = Grammar(
    "python",
    "tree_sitter_python",
    "language",
    frozenset({"function_definition"}),
    frozenset({"class_definition"}),
)
_JAVASCRIPT = Grammar("javascript", "tree_sitter_javascript", "language", _SCRIPT_FUNCTIONS, _SCRIPT_CLASSES)
_TYPESCRIPT = Grammar(
    "typescript", "tree_sitter_typescript", "language_typescript", _SCRIPT_FUNCTIONS, _SCRIPT_CLASSES
)
_TSX = Grammar("tsx", "tree_sitter_typescript", "language_tsx", _SCRIPT_FUNCTIONS, _SCRIPT_CLASSES)
_GO = Grammar(
    "go",
    "tree_sitter_go",
    "language",
    frozenset({"function_declaration", "method_declaration", "func_literal"}),
    frozenset({"type_declaration"}),
)
_JAVA = Grammar(
    "java",
    "tree_sitter_java",
    "language",
    frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"}),
    frozenset(
        {
            "class_declaration",
            "interface_declaration",
            "enum_declaration",
            "record_declaration",
            "annotation_type_declaration",
        }
    ),
)
_RUST = Grammar(
    "rust",
    "tree_sitter_rust",
    "language",
    frozenset({"function_item", "function_signature_item"}),
    frozenset({"impl_item", "trait_item", "struct_item", "enum_item", "mod_item"}),
)

_BY_ENDING = {
    ".py": PYTHON,
    ".pyi": PYTHON,
    ".js": _JAVASCRIPT,
    ".jsx": _JAVASCRIPT,
    ".mjs": _JAVASCRIPT,
    ".cjs": _JAVASCRIPT,
    ".ts": _TYPESCRIPT,
    ".mts": _TYPESCRIPT,
    ".cts": _TYPESCRIPT,
    ".tsx": _TSX,
    ".go": _GO,
    ".java": _JAVA,
    ".rs": _RUST,
}


#: What a definition may be wrapped in that belongs to it.
_HEADS = frozenset({"decorated_definition", "variable_declarator", "lexical_declaration", "export_statement"})


def grammar_of(path: str) -> Grammar | None:
    """The grammar by the file's ending; None where none is at hand."""
    return _BY_ENDING.get(PurePosixPath(path).suffix.lower())


def definitions(text: str, path: str) -> tuple[Definition, ...]:
    """All functions and classes of a file, in the order in which they begin; none for an unknown language."""
    grammar = grammar_of(path)
    tree = parse(text, path)
    if grammar is None or tree is None:
        return ()
    found: list[Definition] = []
    around: list[tuple[int, str]] = []
    for node, ancestors in nodes(tree):
        depth = len(ancestors)
        while around and around[-1][0] >= depth:
            around.pop()
        kind = _kind(node, grammar)
        if kind is None or len(around) >= MAX_NESTING:
            continue
        if len(found) == MAX_DEFINITIONS:
            break
        name = _name(node, ancestors)
        within = ".".join(each for _, each in around if each)
        found.append(Definition(kind, name, _first(node, ancestors), node.end_point.row + 1, _body(node), within))
        around.append((depth, name))
    return tuple(sorted(found, key=lambda each: (each.first, -each.last)))


def enclosing(found: tuple[Definition, ...], first: int, last: int) -> Definition | None:
    """The innermost *named* function around these lines, else the innermost class; None at the top of a file."""
    around = [each for each in found if each.first <= first and each.last >= last and each.name]
    functions = [each for each in around if each.kind == "function"]
    return min(functions or around, key=lambda each: each.last - each.first, default=None)


def parse(text: str, path: str) -> Tree | None:
    """The syntax tree; None for an unknown language, a file that is too large, or a parse that takes too long."""
    grammar = grammar_of(path)
    if grammar is None or len(text) > MAX_BYTES:
        return None
    data = text.encode("utf-8", "surrogatepass")  # a caller finds the places again in the same bytes
    if len(data) > MAX_BYTES:
        return None
    tree: Tree | None = _parser(grammar)(data)
    return tree


def nodes(tree: Tree) -> Iterator[tuple[Node, Sequence[Node]]]:
    """Every node with its ancestors (a live list), parents first.

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
        if cursor.goto_first_child():
            ancestors.append(node)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            ancestors.pop()


#: Bytes that the parser is handed at a time.
_CHUNK = 65_536

_local = threading.local()


def _parser(grammar: Grammar) -> Callable[[bytes], Any]:
    """One parser a thread and language: they hold state while they work."""
    parsers: dict[str, Callable[[bytes], Any]] = _local.__dict__.setdefault("parsers", {})
    if grammar.name not in parsers:
        parsers[grammar.name] = _make_parser(grammar)
    return parsers[grammar.name]


def _make_parser(grammar: Grammar) -> Callable[[bytes], Any]:
    import time

    from tree_sitter import Parser

    parser = Parser(_language(grammar))

    def parse_within(data: bytes) -> Any:
        deadline = time.monotonic() + SECONDS
        try:
            return parser.parse(
                lambda offset, _: data[offset : offset + _CHUNK], progress_callback=_until(deadline)
            )
        except ValueError:  # stopped
            parser.reset()
            return None

    return parse_within


def _until(deadline: float) -> Callable[[int, bool], bool]:
    """A progress callback that stops a parse (by True) once its time is up."""
    import time

    return lambda _offset, _has_error: time.monotonic() > deadline


@cache
def _language(grammar: Grammar) -> Any:
    from importlib import import_module

    from tree_sitter import Language

    return Language(getattr(import_module(grammar.module), grammar.function)())


def _kind(node: Node, grammar: Grammar) -> Kind | None:
    if not node.is_named:
        return None
    if node.type in grammar.functions:
        return "function"
    return "class" if node.type in grammar.classes else None


def _name(node: Node, ancestors: Sequence[Node]) -> str:
    """The name of a definition; that of the variable or key for a function that is a value."""
    own = node.child_by_field_name("name") or node.child_by_field_name("type")
    if own is None and node.type == "type_declaration" and node.named_child_count:
        own = node.named_children[0].child_by_field_name("name")
    parent = ancestors[-1] if ancestors else None
    if own is None and parent is not None and parent.type in ("variable_declarator", "pair", "field_definition"):
        own = parent.child_by_field_name("name") or parent.child_by_field_name("key")
        own = own or parent.child_by_field_name("property")
    if own is None and parent is not None and parent.type == "assignment_expression":
        own = parent.child_by_field_name("left")
    if own is None or own.text is None:
        return ""
    return own.text.decode("utf-8", "replace").split("<")[0][:200]


def _first(node: Node, ancestors: Sequence[Node]) -> int:
    """The first line, decorators included, and ``const`` or ``export`` before it."""
    for parent in reversed(ancestors):
        if parent.type not in _HEADS:
            break
        node = parent
    return node.start_point.row + 1


def _body(node: Node) -> int:
    body = node.child_by_field_name("body")
    return body.start_point.row + 1 if body is not None else node.start_point.row + 1
