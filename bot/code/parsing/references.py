"""The references in a file. Only child processes call this module, by ``parse_apart``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from bot.code.parsing.definitions import Reference, ReferenceKind
from bot.code.parsing.grammars import Grammar
from bot.code.parsing.trees import LONGEST_NAME, MAX_DEPTH, is_import, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

#: Most references that are returned, and bytes of a receiver.
MAX_REFERENCES, _RECEIVER = 3_000, 120
_WORD = re.compile(rb"[A-Za-z_$#][\w$]*")
#: Node types of names, the fields of what stands before the dot, and of the name behind it.
_NAMES = re.compile(r"identifier$|^(?:property|field)_identifier$")
#: ``super(1)`` and ``this(1)``.
_CONSTRUCTORS = frozenset({("super", "constructor"), ("this", "constructor"), ("super", "function")})
_BEFORE = ("object", "operand", "value", "argument", "path", "scope", "package", "module")
_BEHIND = frozenset({"attribute", "property", "field", "name"})
_CALLS = frozenset({"call", "call_expression", "method_invocation", "new_expression", "object_creation_expression",
                    "macro_invocation", "explicit_constructor_invocation"})  # fmt: skip
_CALLED = frozenset({"function", "constructor", "name", "macro", "type"})
_MEMBERS = frozenset({"attribute", "member_expression", "selector_expression", "field_expression", "field_access",
                      "method_invocation", "scoped_identifier", "qualified_type", "scoped_type_identifier",
                      "nested_type_identifier"})  # fmt: skip


#: From the name of a field to the literal that sets it, in Rust, Go and C.
_LITERALS = (
    ("field_initializer", "field_initializer_list", "struct_expression"),
    ("shorthand_field_initializer", "field_initializer_list", "struct_expression"),
    ("literal_element", "keyed_element", "literal_value", "composite_literal"),
    ("field_designator", "initializer_pair", "initializer_list", "init_declarator", "declaration"),
    ("field_designator", "initializer_pair", "initializer_list", "compound_literal_expression"),
)
_LITERAL_TYPES = frozenset({"type_identifier", "qualified_type", "generic_type", "generic_type_with_turbofish",
                            "scoped_type_identifier"})  # fmt: skip


def references(
    tree: Tree, data: bytes, grammar: Grammar, names: Collection[str], lines: Collection[int]
) -> Iterator[Reference]:
    """Return the references to ``names`` and on ``lines``, the first ``MAX_REFERENCES``."""
    places = islice(_offsets(data, {name.encode() for name in names}, lines), 4 * MAX_REFERENCES)
    candidates = (_reference(tree, data, grammar, offset, line) for offset, line in places)
    return islice(filter(None, candidates), MAX_REFERENCES)


def _offsets(data: bytes, names: Collection[bytes], lines: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield offset and line of the words that may be references."""
    start = 0
    for number, text in enumerate(data.split(b"\n"), start=1):
        if number in lines or any(name in text for name in names):
            for match in _WORD.finditer(text[:2_000]):
                if number in lines or match[0] in names:
                    yield start + match.start(), number
        start += len(text) + 1


def _reference(tree: Tree, data: bytes, grammar: Grammar, offset: int, line: int) -> Reference | None:
    """Return the reference at an offset, or None for a definition, a comment or a part of a text."""
    path = _nodes_to(tree, offset)
    leaf = path[-1][0]
    if leaf.start_byte != offset or not _is_reference(path, grammar, data):
        return None
    name = text_of(leaf, data, LONGEST_NAME)
    parent = path[-2][0]
    if parent.type == "method_reference" and leaf.prev_named_sibling is not None:
        return Reference(name, _compact(leaf.prev_named_sibling, data), line, "call")
    if parent.type == "token_tree":  # Rust: the arguments of a macro are not parsed
        match = re.search(rb"([\w.:]*[\w)])(?:\.|::)$", data[max(0, offset - _RECEIVER) : offset])
        is_call = data[leaf.end_byte : leaf.end_byte + 1] == b"("
        receiver = match[1].decode("utf-8", "replace") if match else ""
        return Reference(name, receiver, line, "call" if is_call else "read")
    if literal := _literal_type(path):
        return Reference(name, re.split(r"::<|[<\[]", text_of(literal, data, _RECEIVER))[0], line, "argument")
    receiver = ""
    if parent.type in _MEMBERS and path[-1][1] in _BEHIND:
        before = next(filter(None, (parent.child_by_field_name(field) for field in _BEFORE)), None)
        if before is not None and before.start_byte != leaf.start_byte:
            receiver = _compact(before, data)
        if parent.type != "method_invocation":
            path = path[:-1]  # what is done with the member is done with the name
    return Reference(name, receiver, line, _kind(path))


def _is_reference(path: Sequence[tuple[Node, str]], grammar: Grammar, data: bytes) -> bool:
    """Return True if the last node is a name, in no import and not the name of a definition."""
    if len(path) < 2:
        return False
    leaf, field = path[-1]
    if not _NAMES.search(leaf.type) and (leaf.type, field) not in _CONSTRUCTORS:
        return False
    if any(node.type != "export_statement" and is_import(node, grammar, data) for node, _ in path[1:-1]):
        return False
    return field not in ("name", "property", "key") or path[-2][0].type not in _defining(grammar)


def _compact(node: Node, data: bytes) -> str:
    """Return the start of a node's text without white space."""
    return "".join(text_of(node, data, _RECEIVER).split())


def _kind(path: Sequence[tuple[Node, str]]) -> ReferenceKind:
    """Return what is done with the last node."""
    outer, role = path[-2][0], path[-1][1]
    if outer.type in _CALLS and role in _CALLED:
        return "call"
    if role == "left" and "assignment" in outer.type:
        return "write"
    return "argument" if outer.type in ("keyword_argument", "pair") and role in ("name", "key") else "read"


def _nodes_to(tree: Tree, offset: int) -> list[tuple[Node, str]]:
    """Return the nodes around an offset with their fields, the outermost first."""
    cursor = tree.walk()
    path = [(tree.root_node, "")]
    while len(path) < MAX_DEPTH and cursor.goto_first_child_for_byte(offset) is not None:
        node = cursor.node
        if node is None or node.start_byte > offset:
            break
        path.append((node, cursor.field_name or ""))
    return path


@cache
def _defining(grammar: Grammar) -> frozenset[str]:
    return grammar.functions | grammar.classes | grammar.values - {"pair"}


def _literal_type(path: Sequence[tuple[Node, str]]) -> Node | None:
    """Return the type of the literal whose field the last node names: ``S{n: 1}``, ``struct s v = {.n = 1}``."""
    types = [node.type for node, _ in path[-6:-1]][::-1]
    up = next((len(form) for form in _LITERALS if types[: len(form)] == list(form)), 0)
    if not up or (types[1] == "keyed_element" and path[-2][1] != "key"):
        return None
    if types[0] == "field_initializer" and path[-1][1] == "value":
        return None
    outer = path[-1 - up][0]
    declared = outer.child_by_field_name("type") or outer.child_by_field_name("name")
    if declared is not None and declared.type == "type_descriptor":
        declared = declared.child_by_field_name("type")
    if declared is not None and declared.type == "struct_specifier":
        declared = declared.child_by_field_name("name")
    return declared if declared is not None and declared.type in _LITERAL_TYPES else None
