"""Changes of layout only: code that means the same before and after.

The grammar of the language decides. Comments count as code, because tools and people read them. Without a grammar,
only white space inside a line may differ.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from time import monotonic

import re2

from bot.code.change.diff import Diff, Hunk, Sides, apply_hunks
from bot.code.parsing.grammars import MAX_BYTES, compares
from bot.code.parsing.syntax import fingerprint

#: Suffixes of languages without a grammar here in which indentation has no meaning.
_FREE_FORM = frozenset({".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".css", ".scss", ".less", ".swift", ".kt"})
#: White space in every one of these languages: other kinds are part of a name in some.
_BLANKS = re2.compile(r"[ \t\r]+")
#: Characters that are compared over a whole change, hunk by hunk, and the time that this may take, seconds.
MAX_COMPARED, MAX_SECONDS = 8_000_000, 30.0


def same(before: str, after: str, path: str, *, comments: bool = True) -> bool:
    """Return True if both texts of a file certainly mean the same. Without ``comments``, only directives count."""
    if before == after:
        return True
    if max(len(before), len(after)) > MAX_BYTES:
        return False
    if compares(path):
        meaning = fingerprint(before, path, comments)
        return meaning is not None and meaning == fingerprint(after, path, comments)
    if PurePosixPath(path).suffix.lower() in _FREE_FORM:
        lines, others = (
            [_BLANKS.sub(" ", line).strip(" ") for line in text.split("\n")] for text in (before, after)
        )
        return lines == others and _is_plain(before) and _is_plain(after)
    return False


#: Characters that can change without a change of meaning: white space, quotes, brackets and separators.
_WEIGHTLESS = re2.compile(r"[\s'\"`()\[\]{},;\\]+")


def _weighty(hunk: Hunk, mark: str) -> str:
    """Return the characters with meaning of the removed (``-``) or added (``+``) lines."""
    lines = "\n".join(line.text for line in hunk.lines if line.mark == mark)
    text: str = _WEIGHTLESS.sub("", lines.encode("utf-8", "replace").decode())
    return text


def _is_plain(text: str) -> bool:
    """Return True if white space cannot be part of a string, a comment, a regular expression or a directive."""
    lines = text.split("\n")
    marks = ('"', "'", "`", "/", "<<<")
    return not any(mark in text for mark in marks) and not any(
        line.rstrip().endswith("\\") or line.lstrip().startswith("#") for line in lines
    )


def reformatted(diff: Diff, sides: Sides) -> dict[str, frozenset[int]]:
    """Return, by path, the hunks (counted from 0) whose code certainly means the same before and after."""
    hunks: dict[str, frozenset[int]] = {}
    remaining, until = MAX_COMPARED, monotonic() + MAX_SECONDS
    for file in diff.files:
        if file.change != "modified" or not file.hunks or file.mode or file.binary:
            continue
        before = sides.before(file)
        if before is None or sides.after(file) is None:
            continue
        # Hunks whose changed lines cannot mean the same need not be parsed.
        waiting = [
            [number for number, hunk in enumerate(file.hunks) if _weighty(hunk, "-") == _weighty(hunk, "+")]
        ]
        equal: list[int] = []
        while waiting and remaining > 0 and monotonic() < until:
            # All at once, then halves: usually all hunks mean the same, and parsing is slow.
            numbers = waiting.pop()
            if not numbers:
                continue
            remaining -= len(before)
            changed = apply_hunks(before, [file.hunks[number] for number in numbers], reverse=False)
            if changed is not None and same(before, changed, file.path):
                equal += numbers
            elif len(numbers) > 1:
                middle = len(numbers) // 2
                waiting += [numbers[:middle], numbers[middle:]]
        if equal:
            hunks[file.path] = frozenset(equal)
    return hunks
