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

from bot.code.context import Sides
from bot.code.diff import Diff, Hunk, replaced
from bot.code.syntax import MAX_BYTES, MAX_DEPTH, MAX_NODES, PYTHON, grammar_of, nodes, parse

#: Endings of languages in which indentation and line breaks mean nothing, as far as no grammar is at hand.
_FREE_FORM = frozenset(
    {".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".css", ".scss", ".less", ".php", ".swift", ".kt"}
)


#: Characters that are compared over a whole change, hunk by hunk.
MAX_COMPARED = 8_000_000


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


def reformatted(diff: Diff, sides: Sides) -> dict[str, frozenset[int]]:
    """By path, the hunks (counted from 0) whose code certainly means the same before and after."""
    found: dict[str, frozenset[int]] = {}
    left = MAX_COMPARED
    for file in diff.files:
        if file.change != "modified" or not file.hunks or file.mode or file.binary:
            continue
        before = sides.before(file)
        if before is None or sides.after(file) is None:
            continue
        waiting = [[number for number, hunk in enumerate(file.hunks) if _may_be_same(hunk)]]
        equal: list[int] = []
        while waiting and left > 0:
            # All at once, and halves of them where they are not all the same: most are, and a parse is dear.
            some = waiting.pop()
            if not some:
                continue
            left -= len(before)
            changed = replaced(before, [file.hunks[number] for number in some], back=False)
            if changed is not None and same(before, changed, file.path):
                equal += some
            elif len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
        if equal:
            found[file.path] = frozenset(equal)
    return found


def _may_be_same(hunk: Hunk) -> bool:
    """Whether changed lines can mean the same at all: where not, nothing has to be parsed."""
    removed, added = ([line.text for line in hunk.lines if line.mark == mark] for mark in "-+")
    return _weighty(removed) == _weighty(added)
