"""Java source as tree-sitter reads it: trees that know where each word stands, of any version of the language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.code.syntax import parse as bounded

if TYPE_CHECKING:
    from tree_sitter import Node

TYPES = frozenset(
    {"class_declaration", "interface_declaration", "enum_declaration", "record_declaration",
     "annotation_type_declaration"}
)  # fmt: skip


#: What stands for a file that is too large or takes too long to read: nothing in it but an error.
_UNREAD = "}"
_FILE = "File.java"


def parse(text: str) -> Node:
    """The tree of a whole file; ``has_error`` says whether all of it was understood."""
    tree = bounded(text, _FILE) or bounded(_UNREAD, _FILE)
    assert tree is not None
    return tree.root_node


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, in the order of the text."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(each.children)


def said(node: Node | None) -> str:
    """The text of a node; empty for none."""
    return "" if node is None or node.text is None else node.text.decode("utf-8", "surrogatepass")


def named(node: Node, name: str = "name") -> str:
    """The text of a node's field."""
    return said(node.child_by_field_name(name))


def simple(node: Node | None) -> str:
    """A type's own name: without package, arguments and array brackets."""
    return re.split(r"[<\[]", said(node))[0].rpartition(".")[2].strip()
