"""The code around a change, the most needed first, within a token budget.

Only paths of the repository's own listing are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import re2

from bot.code.change.diff import Diff, FileDiff, Sides, lines_shown
from bot.code.context.changed import Changed, named
from bot.code.context.page import CodeExcerpt, ContextPage
from bot.code.context.related import excerpts, head
from bot.code.context.uses import uses
from bot.code.parsing.grammars import grammar_of
from bot.code.symbols.index import SECONDS, CodeIndex, FileDefinition
from bot.code.symbols.languages import rules_of
from bot.code.symbols.names import PATH, names_in
from bot.core.actions import CodeContext
from bot.core.errors import ForgeError, NotRecorded, TransientError
from bot.core.subjects import PullRequest
from bot.github.protocol import Forge

#: Most changed files that are named as not shown.
MAX_UNREAD = 60
#: Names of one phrase that are looked up, definitions of one name that are shown, and its callers.
MAX_NAMES, MAX_PLACES, MAX_CALLERS = 6, 3, 4
#: Characters of a phrase that are read.
LONGEST = 500

#: The form in which questions ask for phrases: ``name``, ``name in path`` or ``callers of name``.
_ASKED_FOR = re.compile(r"(?:callers of |(?:class|function|method) )?(\S+)(?: in \S+)?", re.I)
_ASKS_FOR_USES = re.compile(r"\b(?:callers?|calls?|called|uses?|used|usages?|users?)\b", re.I)


@dataclass
class Surroundings:
    """The code around one change. If it could not be read, ``sides`` is None and ``why`` the reason.

    It is searched for ``seconds``.
    """

    diff: Diff
    sides: Sides | None
    why: str = ""
    seconds: float = SECONDS

    def within(
        self,
        budget: int,
        files: Sequence[FileDiff] | None = None,
        phrases: Sequence[str] = (),
        visible: Mapping[str, Collection[int]] | None = None,
    ) -> CodeContext:
        """Return the code around the change of ``files`` (None: the whole change) in at most ``budget`` tokens.

        ``phrases`` are phrases that name code: it is looked up and comes first. ``visible`` are the lines of the
        new files that the question shows already (None: those of ``files``). No line is shown twice.
        """
        if budget <= 0:
            return CodeContext(why="switched off")
        if self.sides is None:
            return CodeContext(why=self.why)
        places = {file.path: place for place, file in enumerate(self.diff.files)}
        files = self.diff.files if files is None else sorted(files, key=lambda file: places[file.path])
        visible = lines_shown(files) if visible is None else visible
        page = ContextPage(self._index.lines, budget, visible)
        changed = Changed(files, self._index, visible)
        looked_up = tuple(phrase for phrase in phrases if page.add_all(look_up(phrase, changed)))
        page.add_all(excerpts(changed))
        # It keeps 128 patterns with their automata, together some 40 MB; those of other names are of no use.
        re2.purge()
        unread = [file.path for file in files if file.change == "modified" and self.sides.after(file) is None]
        slow = self._index.too_slow if any(grammar_of(file.path) for file in files) else set()
        return CodeContext(
            text=page.text,
            tokens=page.tokens,
            parts=page.parts,
            left_out=page.left_out,
            looked_up=looked_up,
            not_shown=tuple(unread[:MAX_UNREAD]),
            too_slow=tuple(file.path for file in files if slow & {file.path, file.old_path}),
            why=f"not all code was searched in {self.seconds:g} seconds" if self._index.ran_out_of_time else "",
        )

    def text_of(self, path: str) -> str | None:
        """Return any file after the change, empty if there is none of that name; None if it is unknown.

        None also for a file that the change removes.
        """
        if self.sides is None:
            return None
        if files := self.diff.named(path):
            return next((self.sides.after(file) for file in files if file.path == path), None)
        return self._index.text(path) if path in self._index.files.paths else ""

    @cached_property
    def _index(self) -> CodeIndex:
        """The repository's files after the change."""
        assert self.sides is not None
        removed = [file.old_path for file in self.diff.files if file.change in ("deleted", "renamed")]
        texts: dict[str, str | None] = {path: None for path in removed if path}
        texts |= {file.path: self.sides.after(file) for file in self.diff.files if file.change != "deleted"}
        before = {file.old_path or file.path: self.sides.before(file) for file in self.diff.files}
        return CodeIndex(self.sides.tree, texts, before, self.seconds)


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


def look_up(phrase: str, changed: Changed) -> Iterator[CodeExcerpt]:
    """Yield the definitions that a phrase names, and their callers if it asks for them.

    Only names in the form of code count, or a phrase of the form that is asked for. A name with many definitions
    gives none.
    """
    phrase = phrase[:LONGEST]
    paths = PATH.findall(phrase)
    match = _ASKED_FOR.fullmatch(phrase.strip())
    for name in names_in(match[1] if match else phrase)[:MAX_NAMES]:
        places = _definitions(name, changed, paths)
        for place in places:
            yield CodeExcerpt(place.path, head(changed.index, place), f"{named(place.definition)}, looked up")
        if places and _ASKS_FOR_USES.search(phrase):
            last = places[0].definition.name
            mentions = changed.index.mentioning([last], rules_of(places[0].path).name)[last]
            yield from islice(uses(changed, last, places, mentions), MAX_CALLERS)


def _definitions(name: str, changed: Changed, paths: Sequence[str]) -> list[FileDefinition]:
    """Return the definitions of a qualified name, in the languages of the change."""
    *owners, last = name.split(".")
    languages = dict.fromkeys(filter(None, (rules_of(file.path).name for file in changed.files)))
    places = [place for language in languages for place in changed.index.defining([last], language).get(last, ())]
    by_path = [place for place in places if any(place.path.endswith(path) for path in paths)]
    by_owner = [place for place in places if owners and _belongs(place, owners[-1])]
    nearest = [place for place in places if any(place.path == file.path for file in changed.files)]
    for selection in (by_path, by_owner, places if len(places) <= MAX_PLACES else [], nearest):
        if selection:
            return selection[:MAX_PLACES]
    return []


def _belongs(place: FileDefinition, owner: str) -> bool:
    module = place.path.rpartition("/")[2].partition(".")[0]
    return owner in (place.definition.owner, module)
