"""Java syntax trees by tree-sitter, with positions, for any version of the language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.code.parsing import trees
from bot.code.parsing.grammars import MAX_BYTES
from bot.code.parsing.parser_process import NotParsed, parse_apart

TYPES = frozenset(
    {"class_declaration", "interface_declaration", "enum_declaration", "record_declaration",
     "annotation_type_declaration"}
)  # fmt: skip


@dataclass(eq=False, slots=True, repr=False)
class Node:
    """A node of a syntax tree, with the names that tree-sitter's own nodes have."""

    source: bytes
    type: str
    field_name: str
    start_byte: int
    end_byte: int
    row: int
    is_named: bool
    is_broken: bool
    has_error: bool
    parent: Node | None
    children: list[Node] = field(default_factory=list)

    @property
    def text(self) -> bytes:
        return self.source[self.start_byte : self.end_byte]

    def children_by_field_name(self, name: str) -> list[Node]:
        return [child for child in self.children if child.field_name == name]

    def child_by_field_name(self, name: str) -> Node | None:
        return next((child for child in self.children if child.field_name == name), None)


def parse(text: str) -> Node:
    """Return the tree of a whole file. Its ``has_error`` says whether the parser understood all of it.

    A file that is too large or takes too long is an error without children.
    """
    data = text.encode("utf-8", "surrogatepass")
    try:
        tree = parse_apart(trees.flat, text, "File.java") if len(text) <= MAX_BYTES else None
    except NotParsed:
        tree = None
    if tree is None:
        return Node(data, "program", "", 0, 0, 0, is_named=True, is_broken=False, has_error=True, parent=None)
    nodes: list[Node] = []
    for parent, kind, place, start, end, row, flags in tree.rows:
        above = nodes[parent] if parent >= 0 else None
        words = tree.words[kind], tree.words[place]
        is_named, is_broken, has_error = (bool(flags & flag) for flag in (1, 2, 4))
        nodes.append(Node(data, *words, start, end, row, is_named, is_broken, has_error, above))
        if above is not None:
            above.children.append(nodes[-1])
    return nodes[0]


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and its descendants in the order of the text."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting += reversed(current.children)


def text_of(node: Node | None) -> str:
    """Return the text of a node; empty for None."""
    return "" if node is None else node.text.decode("utf-8", "surrogatepass")


def field_text(node: Node, name: str = "name") -> str:
    return text_of(node.child_by_field_name(name))


def simple(node: Node | None) -> str:
    """Return a type's name without package, type arguments and array brackets."""
    return re.split(r"[<\[]", text_of(node))[0].rpartition(".")[2].strip()
