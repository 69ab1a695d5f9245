"""Find a quoted piece of code in the hunks of one file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from bot.code.change.diff import DiffLine, FileDiff
from bot.core.subjects import Side
from bot.core.text import squeeze, squeeze_lines

# A quote of only a part of a line must be at least this long; a shorter one matches by chance.
_SHORTEST_PART = 4
# The line number and mark before a shown line, which models copy along with the code.
_MARGIN = re.compile(r"^\s*(?:\d+\s*\|?\s?[-+ ]?|\|\s?[-+ ]?|[-+])")
_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
# The end of a long line, which is shown up to WIDEST characters.
_CUT = re.compile(r"\w*…$")
_BREAK = "\0"


@dataclass(frozen=True, slots=True)
class Quoted:
    """Neighbouring lines of one hunk on one side. ``whole``: the quote consists of complete lines."""

    side: Side
    lines: tuple[DiffLine, ...]
    whole: bool

    @property
    def numbers(self) -> tuple[int, int]:
        """First and last line."""
        first, last = self.lines[0].number(self.side), self.lines[-1].number(self.side)
        assert first is not None
        assert last is not None
        return first, last


def bare(quote: str) -> str:
    """Squeeze the white space of a quote; remove blank lines, a fence and the mark of a cut line around it."""
    lines = quote.strip().split("\n")
    if len(lines) > 1 and _FENCE.match(lines[0]):
        lines = lines[1:-1] if _FENCE.match(lines[-1]) else lines[1:]
    return _CUT.sub("", squeeze_lines("\n".join(lines)))


class Index:
    """A search index of the lines in a file's hunks."""

    def __init__(self, file: FileDiff) -> None:
        lines = [[(line, squeeze(line.text)) for line in hunk.lines] for hunk in file.hunks]
        self._contexts = "\n".join(squeeze(hunk.context) for hunk in file.hunks)
        self._views = (
            _View("RIGHT", [[pair for pair in hunk if pair[0].mark != "-"] for hunk in lines]),
            _View("LEFT", [[pair for pair in hunk if pair[0].mark != "+"] for hunk in lines]),
            _View(None, lines),
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word in the lines and in the text behind the ``@@`` of the hunks."""
        return frozenset(_WORD.findall(f"{self._contexts}\n{self._views[2].text}"))

    def find(self, quote: str) -> list[Quoted]:
        """Return every place of the quote: on one side of a hunk, else across removed and added lines.

        The quote is tried unchanged first, then without a fence, then without copied line numbers and marks.
        """
        whole_quote = squeeze_lines(quote)
        for candidate in filter(None, dict.fromkeys((whole_quote, bare(quote), bare(without_margin(quote))))):
            sides = [match for view in self._views[:2] for match in view.find(candidate)]
            if matches := sides or list(self._views[2].find(candidate)):
                return matches
        return []


class _View:
    """The lines of all hunks on one side (or both) as one string; a break prevents matches across hunks."""

    def __init__(self, side: Side | None, hunks: list[list[tuple[DiffLine, str]]]) -> None:
        self._side = side
        rows: list[tuple[DiffLine | None, str]] = []
        for hunk in hunks:
            rows += [*hunk, (None, _BREAK)]
        self._lines = [line for line, _ in rows]
        self._starts = list(accumulate((len(text) + 1 for _, text in rows), initial=1))
        self.text = "\n" + "".join(f"{text}\n" for _, text in rows)

    def find(self, words: str) -> Iterator[Quoted]:
        whole = f"\n{words}\n"
        if whole in self.text:
            yield from (self._match(at + 1, at + len(words), True) for at in offsets(whole, self.text))
        elif len(words) >= _SHORTEST_PART and re.search(r"\w", words):
            for start in offsets(words, self.text):
                end = start + len(words)
                edges = self.text[start - 1 : start + 1], self.text[end - 1 : end + 1]
                if not any(re.fullmatch(r"\w\w", edge) for edge in edges):  # the quote cuts no word
                    yield self._match(start, end - 1, False)

    def _match(self, start: int, end: int, whole: bool) -> Quoted:
        first, last = (bisect_right(self._starts, at) - 1 for at in (start, end))
        lines = tuple(line for line in self._lines[first : last + 1] if line is not None)
        if self._side is not None:
            return Quoted(self._side, lines, whole)
        # A quote over removed and added lines: prefer the new code, which can still be changed.
        side: Side = "RIGHT" if any(line.mark == "+" for line in lines) else "LEFT"
        return Quoted(side, tuple(line for line in lines if line.number(side) is not None), whole=False)


def offsets(part: str, text: str) -> Iterator[int]:
    """Yield every place where a part begins in a text, also of parts that overlap."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def without_margin(quote: str) -> str:
    """Remove the line numbers and marks before the quoted lines."""
    return "\n".join(_MARGIN.sub("", line) for line in quote.split("\n"))
