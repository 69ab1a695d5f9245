"""Which parts of a change cannot matter: code that means the same before and after it. Pure.

Python is compared by its syntax tree, other languages whose grammar is at hand by their tokens without comments
and with one kind of quotes, and of the rest the white space is ignored, where the language allows it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import PurePosixPath

import re2

from bot.code.syntax import MAX_BYTES, MAX_DEPTH, MAX_NODES, PYTHON, grammar_of, nodes, parse

#: Endings of languages in which indentation and line breaks mean nothing, as far as no grammar is at hand.
_FREE_FORM = frozenset(
    {".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".css", ".scss", ".less", ".php", ".swift", ".kt"}
)


def same(before: str, after: str, path: str) -> bool:
    """Whether both texts of a file certainly mean the same; False where that cannot be told."""
    if before == after:
        return True
    if max(len(before), len(after)) > MAX_BYTES:
        return False
    if _directives(before) != _directives(after):
        return False
    grammar = grammar_of(path)
    if grammar is PYTHON:
        left, right = _python(before), _python(after)
        return left is not None and left == right
    if grammar is not None:
        tokens, others = _tokens(before, path), _tokens(after, path)
        return tokens is not None and tokens == others
    if PurePosixPath(path).suffix.lower() in _FREE_FORM:
        return before.split() == after.split() and _quiet(before) and _quiet(after)
    return False


#: What can change while the meaning does not, and more: comments, white space, quotes, brackets and separators.
_WEIGHTLESS = re2.compile(r"(?m)^[ \t]*\*.*$|(?:#|//|/\*).*$|[\s'\"`()\[\]{},;\\]+")


def may_be_same(removed: Iterable[str], added: Iterable[str]) -> bool:
    """Whether changed lines can mean the same at all: where not, nothing has to be parsed."""
    return _weighty(removed) == _weighty(added)


def _weighty(lines: Iterable[str]) -> str:
    text: str = _WEIGHTLESS.sub("", "\n".join(lines).encode("utf-8", "replace").decode())
    return text


#: Comments that a compiler, interpreter or build reads.
_DIRECTIVE = re2.compile(
    r"(?m)^[ \t]*(?:#!.*|//go:.*|//[ \t]*\+build.*|//export .*|#.*coding[:=].*|#[ \t]*(?:cython|distutils):.*)$"
    r"|^.*(?:#[ \t]*type:|@ts-|@jsx|/[*/][ \t]*(?:eslint|webpack|istanbul|@vite)).*$"
)


def _directives(text: str) -> list[str]:
    return [" ".join(each.split()) for each in _DIRECTIVE.findall(text.encode("utf-8", "replace").decode())]


def _quiet(text: str) -> bool:
    """Whether white space cannot be part of a string: none of the text is quoted, and no line is a directive."""
    return not any(each in text for each in ('"', "'", "`", "\\\n")) and "\n#" not in f"\n{text}"


@lru_cache(maxsize=4)
def _python(text: str) -> bytes | None:
    """Identifies the syntax tree; the last ones are kept, as one text is held against several."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return sha256(ast.dump(ast.parse(text)).encode("utf-8", "surrogatepass")).digest()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=4)
def _tokens(text: str, path: str) -> bytes | None:
    """Identifies the tree without comments; None where it does not parse, or is more than can be read."""
    grammar, tree = grammar_of(path), parse(text, path)
    if grammar is None or tree is None or tree.root_node.has_error:
        return None
    found: list[bytes] = []
    skip: int | None = None
    for count, (node, ancestors) in enumerate(nodes(tree), start=1):
        depth = len(ancestors)
        if count == MAX_NODES or depth == MAX_DEPTH:
            return None
        if skip is not None and depth > skip:
            continue
        skip = None
        if node.type in grammar.comments:
            skip = depth
        elif node.type in grammar.strings:
            found.append(_plain_string(node.text or b""))
            skip = depth
        elif node.child_count:
            # The tree counts, not its leaves alone: a line break ends a statement in some of these languages.
            found.append(f"{depth} {node.type}".encode())
        elif node.text:
            found.append(node.text)
    return sha256(b"".join(b"%d:%b" % (len(each), each) for each in found)).digest()


def _plain_string(text: bytes) -> bytes:
    """A string in double quotes, where turning its quotes changes nothing in it."""
    if len(text) >= 2 and text[:1] == text[-1:] == b"'" and b'"' not in text and b"\\" not in text:
        return b'"' + text[1:-1] + b'"'
    return text
