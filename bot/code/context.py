"""The code around a change, the most needed first, within a token budget.

Only paths of the repository's own listing are read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.code.changed import Changed
from bot.code.diff import Diff, FileDiff, apply_hunks
from bot.code.index import CodeIndex
from bot.code.look_up import look_up
from bot.code.page import ContextPage
from bot.code.related import excerpts
from bot.code.syntax import grammar_of
from bot.core.actions import CodeContext
from bot.core.errors import ForgeError, NotRecorded, TransientError
from bot.core.subjects import PullRequest
from bot.github.protocol import Forge, SourceTree

#: Most changed files that are named.
MAX_NAMES = 60


class Sides:
    """The texts of a change's files on both sides. ``tree`` holds the new side, or the old one if ``is_old``.

    One side is read, the other computed from the diff. A file that does not match the diff (another commit, not
    text) has neither.
    """

    def __init__(self, tree: SourceTree, *, is_old: bool = False) -> None:
        self.tree = tree
        self.is_old = is_old
        self._texts: dict[tuple[str, bool], str | None] = {}

    def before(self, file: FileDiff) -> str | None:
        """Return the text before the change, or None if there was none or it is unknown."""
        return None if file.old_path is None or file.change == "added" else self._side(file, old=True)

    def after(self, file: FileDiff) -> str | None:
        """Return the text after the change, or None if there is none or it is unknown."""
        return None if file.change == "deleted" else self._side(file, old=False)

    def _side(self, file: FileDiff, *, old: bool) -> str | None:
        key = (file.path, old)
        if key not in self._texts:
            self._texts[key] = self._read(file, old=old)
        return self._texts[key]

    def _read(self, file: FileDiff, *, old: bool) -> str | None:
        if self.is_old and file.change == "added":
            return apply_hunks("", file.hunks, reverse=False)
        if not self.is_old and file.change == "deleted":
            return apply_hunks("", file.hunks, reverse=True)
        text = self.tree.read(file.old_path or file.path if self.is_old else file.path)
        if text is None:
            return None
        other = apply_hunks(text, file.hunks, reverse=not self.is_old)
        # If the diff does not apply, the file belongs to another change on both sides.
        if other is None or old == self.is_old:
            return None if other is None else text
        return other.encode("utf-8", "replace").decode()


@dataclass
class Surroundings:
    """The code around one change. If it could not be read, ``sides`` is None and ``why`` the reason."""

    diff: Diff
    sides: Sides | None
    why: str = ""

    def within(
        self,
        budget: int,
        paths: Collection[str] | None = None,
        phrases: Sequence[str] = (),
        visible: Mapping[str, Collection[int]] | None = None,
    ) -> CodeContext:
        """Return the code around the change of ``paths`` (None: all files) in at most ``budget`` tokens.

        ``phrases`` are phrases that name code: it is looked up and comes first. ``visible`` are the lines of the
        new files that the question shows already (None: all that the diff shows). No line is shown twice.
        """
        if budget <= 0:
            return CodeContext(why="switched off")
        if self.sides is None:
            return CodeContext(why=self.why)
        files = [file for file in self.diff.files if paths is None or file.path in paths]
        if visible is None:
            visible = {file.path: file.commentable("RIGHT") for file in self.diff.files}
        page = ContextPage(self._index.text, budget, visible)
        changed = Changed(self.diff, files, self._index)
        looked_up = tuple(phrase for phrase in phrases if page.add_all(look_up(phrase, changed)))
        page.add_all(excerpts(changed))
        unread = [file.path for file in files if file.change == "modified" and self.sides.after(file) is None]
        slow = self._index.too_slow if any(grammar_of(file.path) for file in files) else set()
        return CodeContext(
            text=page.text,
            tokens=page.tokens,
            parts=page.parts,
            left_out=page.left_out,
            looked_up=looked_up,
            not_shown=tuple(unread[:MAX_NAMES]),
            too_slow=tuple(file.path for file in files if slow & {file.path, file.old_path}),
        )

    def text_after(self, path: str) -> str | None:
        """Return a whole changed file after the change, or None if it does not exist or is unknown."""
        if self.sides is None:
            return None
        return next((self.sides.after(file) for file in self.diff.named(path) if file.path == path), None)

    def text_of(self, path: str) -> str | None:
        """Return any file after the change, empty if there is none of that name; None if it is unknown."""
        if self.sides is None:
            return None
        if self.diff.named(path):
            return self.text_after(path)
        return self._index.text(path) if path in self._index.files.paths else ""

    @cached_property
    def _index(self) -> CodeIndex:
        """The repository's files after the change."""
        assert self.sides is not None
        removed = [file.old_path for file in self.diff.files if file.change in ("deleted", "renamed")]
        texts: dict[str, str | None] = {path: None for path in removed if path}
        texts |= {file.path: self.sides.after(file) for file in self.diff.files if file.change != "deleted"}
        before = {file.old_path or file.path: self.sides.before(file) for file in self.diff.files}
        return CodeIndex(self.sides.tree, texts, before)


def surroundings(diff: Diff, pull: PullRequest, forge: Forge | None) -> Surroundings:
    """Read the code around a pull request's change: at its head, else at its base with the change applied.

    Never raises: code that cannot be read gives no context, with the reason. Without a forge nothing is read.
    """
    if forge is None:
        return Surroundings(diff, None, "switched off")
    why = "no commit is known"
    for sha, is_old in ((pull.head_sha, False), (pull.base_sha, True)):
        if not sha:
            continue
        try:
            return Surroundings(diff, Sides(forge.sources(sha), is_old=is_old))
        except (ForgeError, NotRecorded, TransientError) as error:
            why = f"the code cannot be read ({type(error).__name__}: {error})"[:300]
    return Surroundings(diff, None, why)
