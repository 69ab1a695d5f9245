"""The code around a change, most relevant first, within a token budget.

In this order: the functions that the change is in, uses of names that it removes, definitions of names that the
new lines call. Only paths of the repository's own listing are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.code.changed import Changed, Excerpt
from bot.code.diff import Diff, FileDiff, apply_hunks
from bot.code.index import Index
from bot.code.look_up import look_up
from bot.code.packing import estimate
from bot.code.related import excerpts
from bot.code.syntax import grammar_of
from bot.core.errors import ForgeError, NotRecorded, TransientError
from bot.core.frozen import Frozen
from bot.core.subjects import PullRequest
from bot.core.text import show
from bot.github.protocol import Forge, SourceTree

#: Most changed files that are named.
MAX_NAMES = 60
#: Characters that are shown of one line.
WIDEST = 300


class CodeContext(Frozen):
    """The code around a change, for a prompt. ``why`` is the reason if there is none."""

    text: str = ""
    tokens: int = 0
    parts: int = 0
    left_out: int = 0
    looked_up: tuple[str, ...] = ()
    """The phrases of ``wanted`` for which something is shown."""
    not_shown: tuple[str, ...] = ()
    """Changed files that cannot be read or do not match the diff: not text, too large, of another commit."""
    too_slow: tuple[str, ...] = ()
    """Changed files whose functions are not shown because they took too long to parse."""
    why: str = ""

    def without_text(self) -> CodeContext:
        """Return the figures without the code, as a decision records them."""
        return self.model_copy(update={"text": ""})


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
        wanted: Sequence[str] = (),
        visible: Mapping[str, Collection[int]] | None = None,
    ) -> CodeContext:
        """Return the code around the change of ``paths`` (None: all files) in at most ``budget`` tokens.

        ``wanted`` are phrases that name code: it is looked up and comes first. ``visible`` are the lines of the
        new files that the question shows already (None: all that the diff shows). No line is shown twice.
        """
        if budget <= 0:
            return CodeContext(why="switched off")
        if self.sides is None:
            return CodeContext(why=self.why)
        files = [file for file in self.diff.files if paths is None or file.path in paths]
        if visible is None:
            visible = {file.path: file.commentable("RIGHT") for file in self.diff.files}
        page = _Page(self._index, budget, visible)
        changed = Changed(self.diff, files, self._index)
        looked_up = tuple(phrase for phrase in wanted if page.add_all(look_up(phrase, changed)))
        page.add_all(excerpts(changed))
        unread = [file.path for file in files if file.change == "modified" and self.sides.after(file) is None]
        slow = self._index.too_slow if any(grammar_of(file.path) for file in files) else set()
        return CodeContext(
            text="\n\n".join(page.texts),
            tokens=page.tokens,
            parts=len(page.texts),
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

    @cached_property
    def _index(self) -> Index:
        """The repository's files after the change."""
        assert self.sides is not None
        removed = [file.old_path for file in self.diff.files if file.change in ("deleted", "renamed")]
        texts: dict[str, str | None] = {path: None for path in removed if path}
        texts |= {file.path: self.sides.after(file) for file in self.diff.files if file.change != "deleted"}
        before = {file.old_path or file.path: self.sides.before(file) for file in self.diff.files}
        return Index(self.sides.tree, texts, before)


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


def text_at(forge: Forge, path: str, ref: str) -> str | None:
    """Return a file as text, or None if it cannot be read: deleted, or missing in a replay."""
    try:
        return forge.file(path, ref).decode("utf-8", "replace")
    except (ForgeError, NotRecorded):
        return None


class _Page:
    """The excerpts that fit into a budget. No line is shown twice, nor one that is visible elsewhere."""

    def __init__(self, index: Index, budget: int, visible: Mapping[str, Collection[int]]) -> None:
        self._index, self._budget = index, budget
        self._shown = {path: set(lines) for path, lines in visible.items()}
        self.texts: list[str] = []
        self.tokens = self.left_out = 0

    def add_all(self, excerpts: Iterable[Excerpt]) -> bool:
        """Add the lines of excerpts that are not shown yet. Return True if all lines of one of them are shown."""
        results = [self._add(excerpt) for excerpt in excerpts]
        return any(results)

    def _add(self, excerpt: Excerpt) -> bool:
        shown = self._shown.setdefault(excerpt.path, set())
        source = (self._index.text(excerpt.path) or "").split("\n")
        fresh = [number for number in excerpt.lines if number not in shown and number <= len(source)]
        while fresh and not source[fresh[0] - 1].strip():
            del fresh[0]
        while fresh and not source[fresh[-1] - 1].strip():
            del fresh[-1]
        if not any(source[number - 1].strip(" \t{}()[];,") for number in fresh):
            return bool(excerpt.lines)
        text = _excerpt(f"{show(excerpt.path)}, {excerpt.title}", source, fresh)
        cost = estimate(text) + 2
        if self.tokens + cost > self._budget:
            self.left_out += 1
            return False
        shown.update(fresh)
        self.texts.append(text)
        self.tokens += cost
        return True


def _excerpt(title: str, source: Sequence[str], lines: Sequence[int]) -> str:
    """Render these lines of a file with their numbers, an ellipsis for every gap, and no common indentation."""
    shown = {number: show(source[number - 1].expandtabs(4)) for number in lines}
    margin = min((len(line) - len(line.lstrip()) for line in shown.values() if line.strip()), default=0)
    rows = [f"--- {title}:"]
    before = lines[0] - 1
    for number, line in shown.items():
        if number > before + 1:
            rows.append("...")
        rows.append(
            f"{number}  {line[margin : margin + WIDEST]}{'…' if len(line) > margin + WIDEST else ''}".rstrip()
        )
        before = number
    return "\n".join(rows)
