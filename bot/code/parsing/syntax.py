"""Functions and classes of a source file, and a fingerprint of its code, for languages with a grammar here.

A child process parses in bounded time. A truncated, half-merged or hostile file gives the part that could be read.
"""

from __future__ import annotations

from functools import lru_cache

from bot.code.parsing import outlines, trees
from bot.code.parsing.definitions import Definition, Outline, callables
from bot.code.parsing.grammars import MAX_BYTES, compares, grammar_of
from bot.code.parsing.parser_process import NotParsed, parse_apart


def definitions(text: str, path: str) -> tuple[Definition, ...]:
    """Return all functions and classes of a file, ordered by their first line.

    Return none for an unknown language, or if the parser exceeds its limits.
    """
    try:
        return callables(outline(text, path).definitions)
    except NotParsed:
        return ()


def outline(
    text: str, path: str, names: frozenset[str] = frozenset(), lines: frozenset[int] = frozenset()
) -> Outline:
    """Return the definitions and imports of a file, and the references to ``names`` and on ``lines``.

    Return nothing for an unknown language. Raises NotParsed if the parser exceeds its limits.
    """
    return parse_apart(outlines.outline, text, path, names, lines) if _is_readable(text, path) else Outline()


@lru_cache(maxsize=4)
def fingerprint(text: str, path: str, comments: bool = True) -> str | None:
    """Identify the code and comments of a file without its layout. The last four are cached.

    Without ``comments``, only those count that tools read as directives.
    Return None for an unknown language or a syntax error, or if the parser exceeds its limits.
    """
    if not (_is_readable(text, path) and compares(path)):
        return None
    try:
        return parse_apart(trees.fingerprint, text, path, comments)
    except NotParsed:
        return None


def _is_readable(text: str, path: str) -> bool:
    return grammar_of(path) is not None and len(text) <= MAX_BYTES
