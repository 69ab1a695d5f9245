"""Java source as tree-sitter reads it: trees that know where each word stands, of any version of the language."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

TYPES = frozenset(
    {"class_declaration", "interface_declaration", "enum_declaration", "record_declaration",
     "annotation_type_declaration"}
)  # fmt: skip
#: How long one parse may take; a real file takes milliseconds.
SECONDS = 1.0
_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)\\u+([0-9a-fA-F]{4})")


@cache
def _parser() -> Parser:
    # Loaded by what reads Java alone.
    import tree_sitter
    import tree_sitter_java

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_java.language()))


def parse(text: str) -> Node:
    """The tree of a whole file; ``has_error`` says whether all of it was understood.

    An empty tree where that takes more than ``SECONDS``: its search for a way past errors is not linear.
    """
    data, deadline = text.encode("utf-8", "surrogatepass"), time.monotonic() + SECONDS
    try:
        return (
            _parser()
            .parse(
                lambda offset, _: data[offset : offset + 65_536],
                progress_callback=lambda _offset, _error: time.monotonic() > deadline,
            )
            .root_node
        )
    except ValueError:  # stopped
        _parser().reset()
        return _parser().parse(b"").root_node


def unescaped(text: str) -> str:
    """Source with the letters that are written as ``\\u0041`` written plainly: the same program (JLS 3.3)."""

    def plain(match: re.Match[str]) -> str:
        letter = chr(int(match[2], 16))
        return match[1] + letter if letter.isascii() and (letter.isalpha() or letter in "_$") else match[0]

    return _ESCAPED.sub(plain, text) if "\\u" in text else text


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
