"""Syntax trees of foreign text. Only child processes call this module, by ``parse_apart``.

The native parsers hold the interpreter's lock, and their time can grow with the square of the text.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from time import thread_time
from typing import TYPE_CHECKING, Any

from bot.code.parsing.grammars import MAX_BYTES, PYTHON, Grammar, grammar_of

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

#: Most nodes of a tree that are visited, and most nodes of a tree that is returned.
MAX_NODES, MAX_FLAT_NODES = 400_000, 150_000
#: Deepest nesting of brackets that is parsed: much deeper text overflows a parser's stack.
MAX_BRACKETS = 1_000
#: Levels of a tree that are visited, and characters of a name.
MAX_DEPTH, LONGEST_NAME = 1_000, 200
#: Bytes that a parser gets at a time, and bytes of a node's text: most are one word.
_CHUNK, _TEXT = 65_536, 1_024
#: Processor time after which a parser is told to stop, seconds. On some inputs it never checks.
SECONDS = 0.8

#: The buffer for parsers. Always the same object, because the binding never frees what a parser was given.
_piece = bytearray()


class _Source:
    """A file's bytes for its parser, and later for the text of its nodes.

    py-tree-sitter 0.26 never frees a buffer that a parser was given, and takes only bytes for the text of a node.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.parsed = False

    def __call__(self, offset: int, _place: object) -> bytes | bytearray:
        if self.parsed:
            return self._data[offset : offset + _TEXT]
        _piece[:] = self._data[offset : offset + _CHUNK]
        return _piece


def parse(text: str, path: str) -> Tree | None:
    """Return the syntax tree, or None for an unknown language or a file that is too large, deep or slow."""
    grammar = grammar_of(path)
    if grammar is None or len(text) > MAX_BYTES:
        return None
    data = text.encode("utf-8", "surrogatepass")  # callers index the same bytes by the nodes' positions
    if len(data) > MAX_BYTES or _depth(data) > MAX_BRACKETS:
        return None
    from tree_sitter import Parser

    source, deadline = _Source(data), thread_time() + SECONDS
    try:
        return Parser(language_of(grammar)).parse(
            source, progress_callback=lambda _offset, _has_error: thread_time() > deadline
        )
    except ValueError:  # stopped
        return None
    finally:
        source.parsed = True


def nodes(tree: Tree) -> Iterator[tuple[Node, Sequence[Node]]]:
    """Yield every node with its ancestors (a live list), parents first, within ``MAX_NODES`` and ``MAX_DEPTH``.

    Not recursive: a hostile file nests deeper than Python recurses. ``Node.parent`` would search from the root.
    """
    cursor = tree.walk()
    ancestors: list[Node] = []
    count = 0
    while True:
        node = cursor.node
        count += 1
        if node is None or count > MAX_NODES:
            return
        yield node, ancestors
        if len(ancestors) < MAX_DEPTH and cursor.goto_first_child():
            ancestors.append(node)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            ancestors.pop()


def nodes_of(tree: Tree, grammar: Grammar, types: frozenset[str]) -> list[Node]:
    """Return the nodes of these types, parents before children.

    A query is fifty times as fast as a walk, but its time can grow with the square of the file if that has syntax
    errors or is nested very deeply.
    """
    if tree.root_node.has_error:
        return [node for node, _ in nodes(tree) if node.type in types]
    from tree_sitter import QueryCursor

    cursor = QueryCursor(_query(grammar, types))
    cursor.set_max_start_depth(MAX_DEPTH)
    captures = cursor.captures(tree.root_node).get("it", [])
    return sorted(captures, key=lambda node: (node.start_byte, -node.end_byte))


@cache
def _query(grammar: Grammar, types: frozenset[str]) -> Any:
    from tree_sitter import Query

    return Query(language_of(grammar), "\n".join(f"({node_type}) @it" for node_type in sorted(types)))


def text_of(node: Node, data: bytes, most: int) -> str:
    """Return the start of a node's text, ``most`` bytes of it."""
    return bytes_of(node, data, most).decode("utf-8", "replace")


def bytes_of(node: Node, data: bytes, most: int) -> bytes:
    """Return the start of a node's text. ``node.text`` could be most of a hostile file, many times."""
    return data[node.start_byte : min(node.end_byte, node.start_byte + most)]


def is_import(node: Node, grammar: Grammar, data: bytes) -> bool:
    """Return True if a node imports names."""
    if node.type in grammar.imports:
        return node.type != "export_statement" or node.child_by_field_name("source") is not None
    return (
        node.type == "variable_declarator" and re.search(rb"=\s*require\(", bytes_of(node, data, 600)) is not None
    )


_OPENING = bytes.maketrans(b"([{)]}", b"\x01\x01\x01\x00\x00\x00")
_NO_BRACKETS = bytes(set(range(256)) - set(b"([{)]}"))


def _depth(data: bytes) -> int:
    """Return the deepest nesting of brackets, including those in strings."""
    deepest = depth = 0
    for opening in data.translate(_OPENING, _NO_BRACKETS):
        if opening:
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest


@cache
def language_of(grammar: Grammar) -> Any:
    from importlib import import_module

    from tree_sitter import Language

    package = import_module(f"tree_sitter_{grammar.package or grammar.name}")
    return Language(getattr(package, grammar.maker)())


#: Words after or before which a line break can end a statement in JavaScript and TypeScript.
_BREAK_AFTER = frozenset(
    {b"return", b"throw", b"yield", b"async", b"break", b"continue", b"type", b"interface", b"declare",
     b"abstract", b"namespace", b"module", b"let", b"static", b"get", b"set", b"accessor", b"using",
     b"await", b"asserts"}
)  # fmt: skip
_BREAK_BEFORE = frozenset({b"++", b"--", b"=>", b"!", b"as", b"satisfies", b"is"})
#: Go's package "C", whose preceding comment is compiled as C, however it is quoted.
_CGO = re.compile(rb'["`](?:C|\\[^"\n]*)["`]')


def fingerprint(text: str, path: str, comments: bool = True) -> str | None:
    """Identify the code and comments of a file without its layout. Return None if it has a syntax error.

    Return None also for code that a compiler reads differently from the grammar: cgo, escapes in Java, HTML
    comments in JavaScript. Without ``comments``, only those count that tools read as directives.
    """
    grammar, tree = grammar_of(path), parse(text, path)
    if grammar is None or tree is None or tree.root_node.has_error:
        return None
    data = text.encode("utf-8", "surrogatepass")
    if grammar.name == "go" and _CGO.search(data):
        return None
    if grammar.name == "java" and b"\\u" in data:
        return None
    if grammar.family == "script" and (b"<!--" in data or b"-->" in data):
        return None
    tokens = (_comments if grammar is PYTHON else _tokens)(tree, grammar, data, comments)
    if tokens is None:
        return None
    if grammar is PYTHON:
        meaning = _python(text)
        if meaning is None:
            return None
        tokens.append(meaning)
    return sha256(b"".join(b"%d:%b" % (len(token), token) for token in tokens)).hexdigest()


def _python(text: str) -> bytes | None:
    """Return the syntax tree of Python's own parser without positions, or None if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(text)).encode("utf-8", "surrogatepass")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


#: A comment that tools read: a directive, a pragma, an encoding.
_DIRECTIVE = re.compile(
    rb"[#/*!\s]*(?:[\w-]+:\S|[@!+#]\w|(?:type|mypy|pylint|ruff|fmt):|coding|noqa|nosec|pragma|eslint|-\*-|export )"
)


def _comments(tree: Tree, grammar: Grammar, data: bytes, every: bool) -> list[bytes] | None:
    """Return the comments, with the number of words before them and whether they have a line to themselves."""
    comments: list[bytes] = []
    words = line = 0
    for count, (node, ancestors) in enumerate(nodes(tree), start=1):
        if count == MAX_NODES or len(ancestors) == MAX_DEPTH:
            return None
        if node.type in grammar.comments:
            alone, comment = node.start_point.row > line or not words, data[node.start_byte : node.end_byte]
            if every or _DIRECTIVE.match(comment):
                comments.append(b"%d %d %b" % (words, alone, _comment(comment)))
        elif not node.child_count and (word := data[node.start_byte : node.end_byte].strip()):
            words += bool(word.strip(b"()[]{},;"))
            line = node.end_point.row
    return comments


def _tokens(tree: Tree, grammar: Grammar, data: bytes, every: bool) -> list[bytes] | None:
    """Return the tree's nodes and words, with every comment or the directives. None if there are too many.

    Inner nodes count too: in some of these languages a line break ends a statement.
    """
    tokens: list[bytes] = []
    end, last = 0, b""
    # The depth of the comment or string whose inner nodes are skipped.
    skipped_depth: int | None = None
    for count, (node, ancestors) in enumerate(nodes(tree), start=1):
        depth = len(ancestors)
        if count == MAX_NODES or depth == MAX_DEPTH:
            return None
        if skipped_depth is not None and depth > skipped_depth:
            continue
        skipped_depth = None
        whole = node.type in grammar.comments or node.type in grammar.strings
        if node.child_count and not whole:
            tokens.append(f"{depth} {node.type}".encode())
            continue
        gap, word = data[end : node.start_byte], data[node.start_byte : node.end_byte]
        if node.type in grammar.comments and not every and not _DIRECTIVE.match(word):
            skipped_depth, end = depth, node.end_byte
            continue
        tokens.append(gap.strip())  # what the grammar skips is white space, or it counts
        breaks = grammar.family == "script" and (last in _BREAK_AFTER or word in _BREAK_BEFORE)
        if breaks and (b"\n" in gap or b"\r" in gap):
            tokens.append(b"\n")
        if whole:
            skipped_depth = depth
            word = _comment(word) if node.type in grammar.comments else _string(word, grammar)
        tokens += (node.type.encode(), word)
        end, last = max(end, node.end_byte), word
    return tokens


def _comment(text: bytes) -> bytes:
    """Remove the indentation of a comment's lines."""
    return b"\n".join(line.strip() for line in text.split(b"\n"))


def _string(text: bytes, grammar: Grammar) -> bytes:
    """Return a string in double quotes if changing its quotes does not change its value."""
    has_single_quotes = grammar.family == "script" and text[:1] == text[-1:] == b"'" and len(text) >= 2
    if has_single_quotes and b'"' not in text and b"\\" not in text:
        return b'"' + text[1:-1] + b'"'
    return text


@dataclass(frozen=True, slots=True)
class FlatTree:
    """A syntax tree as plain data. ``rows`` has seven numbers a node, parents first.

    Index of the parent (-1 for the root), type and field (indices in ``words``; 0 is no field), first and last
    byte, first line (from 0), and flags: named (1), erroneous or missing (2), contains an error (4).
    """

    words: tuple[str, ...]
    rows: tuple[tuple[int, int, int, int, int, int, int], ...]


def flat(text: str, path: str) -> FlatTree | None:
    """Return the tree of a file as plain data, or None if it is too large or not parsed in time."""
    tree = parse(text, path)
    if tree is None:
        return None
    words: dict[str, int] = {"": 0}
    rows: list[tuple[int, int, int, int, int, int, int]] = []
    parents: list[int] = []
    cursor = tree.walk()
    while True:
        node = cursor.node
        if node is None or len(rows) == MAX_FLAT_NODES:
            return None
        flags = node.is_named + 2 * (node.is_error or node.is_missing) + 4 * node.has_error
        node_type = words.setdefault(node.type, len(words))
        field = words.setdefault(cursor.field_name or "", len(words))
        parent = parents[-1] if parents else -1
        rows.append((parent, node_type, field, node.start_byte, node.end_byte, node.start_point.row, flags))
        if cursor.goto_first_child():
            parents.append(len(rows) - 1)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return FlatTree(tuple(words), tuple(rows))
            parents.pop()
