"""The files of a change before and after it: one side is read, the other follows from the diff.

A side that does not fit the diff (another commit, a file that is no text) is None: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Collection

from bot.code import meaning
from bot.forge.protocol import SourceTree
from bot.review.diff import Diff, FileDiff, Hunk

#: Characters that are compared over a whole change, hunk by hunk.
MAX_COMPARED = 8_000_000


class Sides:
    """The texts of a change's files on both sides; ``tree`` holds the new ones, or the old where ``is_old``."""

    def __init__(self, tree: SourceTree, *, is_old: bool = False) -> None:
        self.tree = tree
        self.is_old = is_old
        self._kept: dict[tuple[str, bool], str | None] = {}

    def before(self, file: FileDiff) -> str | None:
        """The text before the change; None where there was none or it is not known."""
        return None if file.old_path is None or file.change == "added" else self._side(file, old=True)

    def after(self, file: FileDiff) -> str | None:
        """The text after the change; None where there is none or it is not known."""
        return None if file.change == "deleted" else self._side(file, old=False)

    def _side(self, file: FileDiff, *, old: bool) -> str | None:
        key = (file.path, old)
        if key not in self._kept:
            self._kept[key] = self._read(file, old=old)
        return self._kept[key]

    def _read(self, file: FileDiff, *, old: bool) -> str | None:
        if self.is_old and file.change == "added":
            return replaced("", file.hunks, back=False)
        if not self.is_old and file.change == "deleted":
            return replaced("", file.hunks, back=True)
        text = self.tree.read(file.old_path or file.path if self.is_old else file.path)
        if text is None:
            return None
        other = replaced(text, file.hunks, back=not self.is_old)
        # Where the diff does not fit, the file is not that of this change on either side.
        if other is None or old == self.is_old:
            return None if other is None else text
        return other.encode("utf-8", "replace").decode()


def replaced(text: str, hunks: Collection[Hunk], *, back: bool) -> str | None:
    """The text with the hunks applied, or taken back; None where a line of them is not where it should be."""
    lines = text.split("\n")
    made: list[str] = []
    at = 0
    for hunk in hunks:
        there = [line.text for line in hunk.lines if line.mark != ("-" if back else "+")]
        new = [line.text for line in hunk.lines if line.mark != ("+" if back else "-")]
        start = (hunk.new_start if back else hunk.old_start) - (1 if there else 0)
        if start < at or lines[start : start + len(there)] != there:
            return None
        made += lines[at:start]
        made += new
        at = start + len(there)
    return "\n".join(made + lines[at:])


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
            if changed is not None and meaning.same(before, changed, file.path):
                equal += some
            elif len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
        if equal:
            found[file.path] = frozenset(equal)
    return found


def _may_be_same(hunk: Hunk) -> bool:
    removed, added = ([line.text for line in hunk.lines if line.mark == mark] for mark in "-+")
    return meaning.may_be_same(removed, added)
