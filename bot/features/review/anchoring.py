"""Hold what a model reported against the diff: the quote decides the line, its number only breaks ties. Pure.

GitHub takes a comment on a line that a hunk shows: added lines on the RIGHT, removed ones on the LEFT, context on
both; a range stays in one hunk and on one side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bot.code.diff import Diff, FileDiff
from bot.code.quotes import Index, Quoted, bare, without_margin
from bot.core.text import show, squeeze, squeeze_lines
from bot.features.shared.findings import Dropped, DropReason, Finding, FurtherPlace, Reported, fingerprint


def anchor(reported: Iterable[Reported], diff: Diff) -> tuple[tuple[Finding, ...], tuple[Dropped, ...]]:
    """Findings on lines of the diff (``line`` is None where no line can carry them), and what was dropped."""
    anchoring = _Anchoring(diff)
    findings: list[Finding] = []
    dropped: list[Dropped] = []
    for one in reported:
        result = anchoring.place(one)
        if isinstance(result, Finding):
            findings.append(result)
        else:
            dropped.append(Dropped(reported=one, reason=result))
    return tuple(findings), tuple(dropped)


class _Anchoring:
    """One diff, with indexes made for the files that are cited, when they are."""

    def __init__(self, diff: Diff) -> None:
        self._diff = diff
        self._indexes: dict[int, Index] = {}

    def place(self, reported: Reported) -> Finding | DropReason:
        files = _named(self._diff, reported.path)
        if not files:
            return "path_not_in_diff"
        if not reported.comment.strip():
            return "comment_missing"
        if not squeeze_lines(reported.quote):
            return "quote_missing"
        if not self._has_symbol(reported.symbol, files):
            return "symbol_not_in_diff"
        if found := self._best(files, reported):
            return _finding(reported, *found, self._further(reported))
        file = files[0]
        return _finding(reported, file, None) if _speaks_of_file(reported.quote, file) else "quote_not_in_diff"

    def _best(self, files: tuple[FileDiff, ...], cited: Reported | FurtherPlace) -> tuple[FileDiff, Quoted] | None:
        places = [(file, place) for file in files for place in self._index(file).find(cited.quote)]
        return min(places, key=lambda pair: _rank(pair[1], cited), default=None)

    def _further(self, reported: Reported) -> tuple[str, ...]:
        """The other places that stand in the diff; a place that does not is nobody's loss."""
        cited = [each for each in reported.places[:_MOST_PLACES] if squeeze_lines(each.quote)]
        found = [self._best(_named(self._diff, each.path), each) for each in cited]
        return tuple(dict.fromkeys(f"{each[0].path}:{each[1].numbers[0]}" for each in found if each))

    def _index(self, file: FileDiff) -> Index:
        if id(file) not in self._indexes:
            self._indexes[id(file)] = Index(file)
        return self._indexes[id(file)]

    def _has_symbol(self, symbol: str, files: tuple[FileDiff, ...]) -> bool:
        """Whether the last name in ``symbol`` stands in the diff as a word; an empty symbol claims nothing."""
        names = re.findall(r"[^\W\d]\w*", symbol)
        if not names:
            return True
        return any(names[-1] in self._index(file).words for file in (*files, *self._diff.files))


def _named(diff: Diff, path: str) -> tuple[FileDiff, ...]:
    """Files by the path that a model gives: exactly, or with the ``a/``, ``b/`` or ``./`` it likes to add."""
    clean = path.strip().strip("`")
    for name in (path, clean, re.sub(r"^(?:[ab]|\.)/", "", clean)):
        if files := diff.named(name):
            return files
    return ()


# Places of one cause that are named.
_MOST_PLACES = 8


def _rank(place: Quoted, reported: Reported | FurtherPlace) -> tuple[bool, int, bool, bool, int]:
    """Smaller is better: whole lines, then nearest to the model's number, changed lines, new code, first."""
    first, last = place.numbers
    distance = 0 if reported.line is None else max(first - reported.line, reported.line - last, 0)
    changed = any(line.mark != " " for line in place.lines)
    return not place.whole, distance, not changed, place.side == "LEFT", first


def _finding(reported: Reported, file: FileDiff, place: Quoted | None, further: Sequence[str] = ()) -> Finding:
    """What was reported, on these lines; None: no line of the diff can carry it."""
    first, last = (None, None) if place is None else place.numbers
    lines = () if place is None else tuple(line.text for line in place.lines)
    code = tuple(map(squeeze, lines)) or tuple(squeeze_lines(reported.quote).split("\n"))
    own = {f"{file.path}:{line.number(place.side)}" for line in place.lines} if place else set()
    return Finding(
        path=file.path,
        line=last,
        start_line=first if first != last else None,
        side="RIGHT" if place is None else place.side,
        code=code,
        fingerprint=fingerprint(file.path, code, reported.category),
        comment=reported.comment.strip(),
        category=reported.category,
        impact=reported.impact,
        severity=reported.severity,
        suggestion=fit(reported, lines) if place and place.side == "RIGHT" and place.whole else None,
        confidence=reported.confidence,
        places=tuple(each for each in further if each not in own),
    )


def _speaks_of_file(quote: str, file: FileDiff) -> bool:
    """Whether the quote is what a header shows: a name, a change of mode, the function a hunk lies in."""
    words = bare(quote)
    names = {squeeze(name) for name in (file.path, file.old_path) if name is not None}
    return words in names or any(len(words) >= 4 and words in squeeze(hunk.context) for hunk in file.hunks)


# More than this is no longer a suggestion to be taken with one click.
_LONGEST = 40


def fit(reported: Reported, lines: Sequence[str]) -> str | None:
    """The suggestion in the indentation of ``lines``; None where it is missing, of no effect, long or hides text.

    Models drop the indentation of what they quote. The shift that separates the quote from the real code is
    given back to every line of the suggestion.
    """
    # Blank means none: taking lines away is too much to do on a model's empty string.
    if reported.suggestion is None or not reported.suggestion.strip():
        return None
    new = reported.suggestion.replace("\r\n", "\n").strip("\n").split("\n")
    if len(new) > _LONGEST or any(show(line) != line for line in new):
        return None
    # A suggestion may have its indentation, although the quote has lost it.
    indented = _indent(_first(new)).startswith(_indent(_first(lines)))
    shift = "" if indented else _shift(reported.quote, lines)
    shifted = [f"{shift}{line}" if line.strip() else line for line in new]
    return None if [line.rstrip() for line in shifted] == [line.rstrip() for line in lines] else "\n".join(shifted)


def _shift(quote: str, lines: Sequence[str]) -> str:
    """The white space that the first line has and its quote has not."""
    real, quoted = _first(lines), _first(quote.split("\n"))
    if squeeze(quoted) != squeeze(real):
        quoted = without_margin(quoted)
    given, indent = _indent(quoted), _indent(real)
    return indent.removesuffix(given) if indent.endswith(given) else ""


def _first(lines: Sequence[str]) -> str:
    """The first line that is not blank."""
    return next((line for line in lines if line.strip()), "")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
