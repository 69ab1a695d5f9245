"""Find the line of the diff that a reported defect quotes; its number only breaks ties. Pure.

GitHub accepts a comment on a line of a hunk: added lines on the RIGHT, removed lines on the LEFT, context on both.
A range must stay in one hunk and on one side.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from bot.code.change.diff import Diff, FileDiff
from bot.code.change.quotes import Index, Quoted, bare, without_margin
from bot.core.text import show, squeeze, squeeze_lines
from bot.features.shared.findings import (
    Dropped,
    DropReason,
    Finding,
    FurtherPlace,
    Reported,
    fingerprint,
    place_name,
)

#: Names of code, that is not shown, that one finding may depend on.
MAX_PHRASES = 5
#: Edits of one repair.
MAX_EDITS = 8


def anchor(
    reported: Iterable[Reported], diff: Diff, further_code: str = ""
) -> tuple[tuple[Finding, ...], tuple[Dropped, ...]]:
    """Return findings on lines of the diff (``line`` is None if no line can carry one), and what was dropped.

    ``further_code``: code that the question shows beyond the diff; functions at fault often begin there.
    """
    anchoring = _Anchoring(diff, further_code)
    findings: list[Finding] = []
    dropped: list[Dropped] = []
    for defect in reported:
        result = anchoring.place(defect)
        if isinstance(result, Finding):
            findings.append(result)
        else:
            dropped.append(Dropped(reported=defect, reason=result))
    return tuple(findings), tuple(dropped)


class _Anchoring:
    """A diff, with indexes of the files that were quoted so far."""

    def __init__(self, diff: Diff, further_code: str) -> None:
        self._diff = diff
        self._further_code = further_code
        self._indexes: dict[int, Index] = {}

    def place(self, reported: Reported) -> Finding | DropReason:
        files = files_named(self._diff, reported.path)
        if not files:
            return "path_not_in_diff"
        if not reported.comment.strip():
            return "comment_missing"
        if not squeeze_lines(reported.quote):
            return "quote_missing"
        if not self._has_symbol(_last_name(reported.symbol), files):
            return "symbol_not_in_diff"
        if match := self._best(files, reported):
            return _finding(reported, *match, self._other_places(reported))
        file = files[0]
        return _finding(reported, file, None) if _is_about_file(reported.quote, file) else "quote_not_in_diff"

    def _has_symbol(self, name: str, files: tuple[FileDiff, ...]) -> bool:
        """Return True if the name is a word of the diff or of the code beyond it, or if there is no name."""
        if not name or any(name in self._index(file).words for file in (*files, *self._diff.files)):
            return True
        return re.search(rf"\b{re.escape(name)}\b", self._further_code) is not None

    def _best(
        self, files: tuple[FileDiff, ...], reported: Reported | FurtherPlace
    ) -> tuple[FileDiff, Quoted] | None:
        places = [(file, place) for file in files for place in self._index(file).find(reported.quote)]
        return min(places, key=lambda pair: _rank(pair[1], reported), default=None)

    def _other_places(self, reported: Reported) -> tuple[str, ...]:
        """Return the other places of the defect that are in the diff."""
        places = [place for place in reported.places[:_MAX_PLACES] if squeeze_lines(place.quote)]
        matches = [self._best(files_named(self._diff, place.path), place) for place in places]
        hits = (match for match in matches if match)
        return tuple(dict.fromkeys(place_name(file.path, quoted.numbers[0], quoted.side) for file, quoted in hits))

    def _index(self, file: FileDiff) -> Index:
        if id(file) not in self._indexes:
            self._indexes[id(file)] = Index(file)
        return self._indexes[id(file)]


def _last_name(symbol: str) -> str:
    """Return the last name in a symbol, such as ``load`` of ``app.Store.load(path)``; empty if there is none."""
    names = re.findall(r"[^\W\d]\w*", re.sub(r"\([^()]*\)", "", symbol))
    return names[-1] if names else ""


#: What the header of a file says behind its path.
_FACTS = re.compile(r" \((?:added|deleted|renamed|copied|mode)\b.*\)$")


def files_named(diff: Diff, path: str) -> tuple[FileDiff, ...]:
    """Return the files of a path; models add ``a/``, ``b/`` or ``./`` to it, and copy what a header says of it."""
    clean = _FACTS.sub("", path.strip().strip("`"))
    for name in (path, clean, re.sub(r"^(?:[ab]|\.)/", "", clean)):
        if files := diff.named(name):
            return files
    return ()


#: Other places of one defect that are read.
_MAX_PLACES = 8


def _rank(place: Quoted, reported: Reported | FurtherPlace) -> tuple[bool, int, bool, bool, int]:
    """Return a sort key: whole lines first, then those nearest to the model's number, changed lines, new code."""
    first, last = place.numbers
    distance = 0 if reported.line is None else max(first - reported.line, reported.line - last, 0)
    changed = any(line.mark != " " for line in place.lines)
    return not place.whole, distance, not changed, place.side == "LEFT", first


def _finding(
    reported: Reported, file: FileDiff, place: Quoted | None, other_places: Sequence[str] = ()
) -> Finding:
    """Return the finding on these lines. ``place`` is None if no line of the diff can carry it."""
    first, last = (None, None) if place is None else place.numbers
    lines = () if place is None else tuple(line.text for line in place.lines)
    code = tuple(map(squeeze, lines)) or tuple(squeeze_lines(reported.quote).split("\n"))
    own = {place_name(file.path, line.number(place.side), place.side) for line in place.lines} if place else set()
    return Finding(
        path=file.path,
        line=last,
        start_line=first if first != last else None,
        side="RIGHT" if place is None else place.side,
        code=code,
        symbol=_last_name(reported.symbol),
        fingerprint=fingerprint(file.path, code, reported.category, _around(file, place) if place else ()),
        comment=reported.comment.strip(),
        category=reported.category,
        impact=reported.impact,
        severity=reported.severity,
        suggestion=fit_suggestion(reported, lines) if place and place.side == "RIGHT" and place.whole else None,
        confidence=reported.confidence,
        depends_on=tuple(filter(None, map(str.strip, reported.depends_on)))[:MAX_PHRASES],
        repair=reported.repair[:MAX_EDITS],
        recognised=reported.recognised,
        places=tuple(name for name in other_places if name not in own),
    )


#: Lines on each side that tell a common line from its like. Every changed line has so many in its hunk.
_AROUND = 3


def _around(file: FileDiff, place: Quoted) -> list[str]:
    """Return the lines beside a place on its side, white space squeezed, without blank ones."""
    first, last = place.numbers
    near = {*range(first - _AROUND, first), *range(last + 1, last + 1 + _AROUND)}
    lines = [line.text for hunk in file.hunks for line in hunk.lines if line.number(place.side) in near]
    return list(filter(None, map(squeeze, lines)))


def _is_about_file(quote: str, file: FileDiff) -> bool:
    """Return True if the quote is from a header: the name of the file, or the function of a hunk."""
    words = bare(quote)
    names = {squeeze(name) for name in (file.path, file.old_path) if name is not None}
    return words in names or any(len(words) >= 4 and words in squeeze(hunk.context) for hunk in file.hunks)


#: Lines of a suggestion; longer ones are dropped.
_MAX_LINES = 40


def fit_suggestion(reported: Reported, lines: Sequence[str]) -> str | None:
    """Return the suggestion in the indentation of ``lines``; None if it is missing, too long or changes nothing.

    Models drop the indentation of quoted code. The indentation that the quote lacks is added to every line. A
    suggestion with invisible characters is dropped too.
    """
    # An empty string would delete lines; models use it for "no suggestion".
    if reported.suggestion is None or not reported.suggestion.strip():
        return None
    new = reported.suggestion.replace("\r\n", "\n").strip("\n").split("\n")
    if len(new) > _MAX_LINES or any(show(line) != line for line in new):
        return None
    shifted = in_indentation(new, reported.quote, lines)
    return None if [line.rstrip() for line in shifted] == [line.rstrip() for line in lines] else "\n".join(shifted)


def in_indentation(new: Sequence[str], quote: str, lines: Sequence[str]) -> list[str]:
    """Return the lines that replace a quote in the indentation of the quoted lines of the file."""
    file_line, quoted_line = _first(lines), _first(quote.split("\n"))
    if squeeze(quoted_line) != squeeze(file_line):
        quoted_line = without_margin(quoted_line)
    quoted_indent, indent = _indent(quoted_line), _indent(file_line)
    # A replacement can be indented although the quote is not.
    if _indent(_first(new)).startswith(indent) or not indent.endswith(quoted_indent):
        return list(new)
    shift = indent.removesuffix(quoted_indent)
    return [f"{shift}{line}" if line.strip() else line for line in new]


def _first(lines: Sequence[str]) -> str:
    """Return the first line that is not blank."""
    return next((line for line in lines if line.strip()), "")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def outdated(findings: Sequence[Finding], diff: Diff, omitted: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return findings whose code is no longer in the diff, except those in omitted files."""
    prints = frozenset(finding.fingerprint for finding in findings)
    return tuple(
        finding
        for finding in findings
        if finding.path not in omitted and not _prints_in(diff, finding) - (prints - {finding.fingerprint})
    )


def unmoved(findings: Sequence[Finding], diff: Diff) -> frozenset[str]:
    """Return the fingerprints of findings whose code stands between the same lines in the diff."""
    return frozenset(
        finding.fingerprint for finding in findings if finding.fingerprint in _prints_in(diff, finding)
    )


def _prints_in(diff: Diff, finding: Finding) -> frozenset[str]:
    """Return the fingerprints that a finding has at the places of its code in the diff."""
    files = diff.named(finding.path)
    # A finding that was read back from a comment may have no code.
    if finding.line is None or not finding.code:
        return frozenset({finding.fingerprint} if files else ())
    code = "\n".join(finding.code)
    places = ((file, place) for file in files for place in Index(file).find(code))
    return frozenset(
        fingerprint(file.path, finding.code, finding.category, _around(file, place))
        for file, place in places
        if place.whole and place.side == finding.side
    )
