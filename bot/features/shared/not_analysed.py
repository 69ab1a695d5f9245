"""The sentence about changed files that took too long to parse."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.markdown import code_span

#: Paths that are named, and characters of a path.
MAX_NAMES, NAME = 5, 100


def not_analysed(paths: Sequence[str]) -> str:
    """Return the sentence that names files which took too long to parse; nothing if there are none."""
    if not paths:
        return ""
    names = ", ".join(code_span(path, limit=NAME) for path in paths[:MAX_NAMES])
    more = f" and {len(paths) - MAX_NAMES} more" if len(paths) > MAX_NAMES else ""
    return f"Not analysed: too slow to parse: {names}{more}."
