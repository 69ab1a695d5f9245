"""The files of one commit: their texts, their outlines, and the places that mention or define a name."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import NamedTuple

import re2

from bot.code.parsing.definitions import Definition, Local, Outline, Reference
from bot.code.parsing.grammars import DEFINES
from bot.code.parsing.parser_process import NotParsed
from bot.code.parsing.syntax import outline
from bot.code.symbols.imports import FileNames
from bot.code.symbols.languages import rules_of
from bot.github.protocol import SourceTree

#: Most characters of a repository that are searched, most files that are parsed, and seconds for all of it.
MAX_SEARCHED, MAX_PARSED, SECONDS = 60_000_000, 150, 20.0
#: Most files that are parsed to find the definition of one name.
MAX_DEFINING = 6
#: Most files whose lines are kept.
MAX_SPLIT = 16
#: Most parameters and variables of one name that are looked at for one use of it.
MAX_LOCALS_BEFORE = 300
#: Lines that are shown of a docstring, and most lines of a long function.
DOCSTRING, BODY = 5, 120
_DOCSTRING = re2.compile(r"\s*[rRuU]?(\"\"\"|''')")


class FileDefinition(NamedTuple):
    """A definition and the path of its file."""

    path: str
    definition: Definition

    def is_same(self, other: FileDefinition) -> bool:
        """Return True if both begin at the same place."""
        return (self.path, self.definition.first) == (other.path, other.definition.first)


class _LocalNames:
    """The parameters and variables of one file."""

    def __init__(self, local_names: Iterable[Local]) -> None:
        self._by_name: dict[str, list[Local]] = {}
        self._declared: dict[tuple[str, int], Local] = {}
        for local in sorted(local_names, key=lambda local: (local.first, -local.last)):
            self._by_name.setdefault(local.name, []).append(local)
            self._declared.setdefault((local.name, local.line), local)
        self._answers: dict[tuple[str, int, bool], Local | None] = {}

    def find(self, name: str, line: int, *, is_call: bool) -> Local | None:
        """Return what a name means on a line; see ``CodeIndex.local_name``."""
        key = name, line, is_call
        if key not in self._answers:
            local = self._innermost(name, line)
            self._answers[key] = self._declared.get((name, line)) if local is None and not is_call else local
        return self._answers[key]

    def _innermost(self, name: str, line: int) -> Local | None:
        """Return the innermost one; of several in one function one with a type, else the first with a value."""
        candidates = self._by_name.get(name, [])
        end = bisect_right(candidates, line, key=lambda local: local.first)
        # Scopes are nested or apart, so the last one that has begun and not ended is the innermost.
        recent = reversed(candidates[max(0, end - MAX_LOCALS_BEFORE) : end])
        inner = next((local for local in recent if local.last >= line), None)
        if inner is None:
            return None
        start = bisect_left(candidates, (inner.first, -inner.last), key=lambda local: (local.first, -local.last))
        group = candidates[start : min(end, start + MAX_LOCALS_BEFORE)]
        group = [local for local in group if (local.first, local.last) == (inner.first, inner.last)]
        earlier = [local for local in group if local.line <= line]
        best = min(earlier, key=lambda local: (not local.type, not local.value), default=None)
        return best or replace(group[0], type="", value="")


class CodeIndex:
    """The files of one commit, each parsed as rarely as possible.

    ``texts`` override files of the tree; ``before`` has the texts of changed files before it, if they are known.
    """

    def __init__(
        self, tree: SourceTree, texts: Mapping[str, str | None], before: Mapping[str, str | None], seconds: float
    ) -> None:
        self._tree = tree
        self._texts = dict(texts)
        self.before = before
        self._lines: dict[str, list[str]] = {}
        self._outlines: dict[str, Outline] = {}
        self._local_names: dict[str, _LocalNames] = {}
        self._until = monotonic() + seconds
        self._parsed = 0
        self._by_language: dict[str, list[str]] = {}
        self._mentions: dict[tuple[str, str], list[str]] = {}
        self.too_slow: set[str] = set()
        """Paths of files without an outline because their parser, or all before it, took too long."""
        self.ran_out_of_time = False
        """True if code was not searched or parsed because ``seconds`` were over."""
        tree_paths = [path for path in tree.paths() if texts.get(path, "") is not None]
        text_paths = (path for path, text in texts.items() if text is not None)
        self.files = FileNames([*tree_paths, *text_paths], self.text)
        for path in sorted(self.files.paths):
            if name := rules_of(path).name:
                self._by_language.setdefault(name, []).append(path)

    def text(self, path: str) -> str | None:
        """Return a file's text, or None if it is missing or not text."""
        if path not in self._texts:
            self._texts[path] = self._tree.read(path) if path in self.files.paths else None
        return self._texts[path]

    def lines(self, path: str) -> list[str]:
        """Return the lines of a file; one empty line if it is missing or not text."""
        if path not in self._lines:
            if len(self._lines) == MAX_SPLIT:
                self._lines.clear()
            self._lines[path] = (self.text(path) or "").split("\n")
        return self._lines[path]

    def code(self, path: str, definition: Definition) -> tuple[int, ...]:
        """Return the lines of a definition that have text, without the middle of a long docstring."""
        source = self.lines(path)
        numbers = tuple(number for number in definition.lines if source[number - 1].strip())
        body = [number for number in numbers if number > definition.body and rules_of(path).has_docstrings]
        opening = _DOCSTRING.match(source[body[0] - 1]) if body else None
        if opening is None or opening[1] in source[body[0] - 1][opening.end() :]:
            return numbers
        last = next((number for number in body[1:] if opening[1] in source[number - 1]), definition.last)
        middle = frozenset([number for number in body if number <= last][DOCSTRING - 1 : -1])
        return tuple(number for number in numbers if number not in middle)

    def body(self, path: str, definition: Definition, line: int = 0) -> tuple[int, ...]:
        """Return at most ``BODY`` lines of the code of a definition: those around ``line``, else the first."""
        numbers = self.code(path, definition)
        first = max(0, min(bisect_left(numbers, line) - BODY // 2, len(numbers) - BODY))
        return numbers[first : first + BODY]

    def outline(self, path: str) -> Outline:
        """Return the outline of a file without references; an empty one after a limit."""
        if path not in self._outlines:
            self._outlines[path] = self._parse(path, frozenset(), frozenset())
        return self._outlines[path]

    def definitions(self, path: str) -> tuple[Definition, ...]:
        """Return all definitions of a file; none after a limit."""
        return self.outline(path).definitions

    def local_name(self, path: str, name: str, line: int, *, is_call: bool) -> Local | None:
        """Return the innermost parameter or variable that a name means on a line, with what is set up to it.

        A variable may be set to the result of a function of its name.
        """
        if path not in self._local_names:
            self._local_names[path] = _LocalNames(self.outline(path).local_names)
        return self._local_names[path].find(name, line, is_call=is_call)

    def named(self, name: str, paths: Iterable[str]) -> list[FileDefinition]:
        """Return the definitions of a name in these files."""
        return [
            FileDefinition(path, definition)
            for path in paths
            for definition in self.definitions(path)
            if definition.name == name
        ]

    def references(self, path: str, names: Collection[str], lines: Collection[int] = ()) -> tuple[Reference, ...]:
        """Return the references of a file to ``names`` and on ``lines``; none after a limit."""
        parsed = self._parse(path, frozenset(names), frozenset(lines))
        self._outlines.setdefault(path, replace(parsed, references=()))
        return parsed.references

    def _parse(self, path: str, names: frozenset[str], lines: frozenset[int]) -> Outline:
        text = self.text(path)
        if text is None or self._parsed >= MAX_PARSED:
            return Outline()
        self._parsed += 1
        if self.is_in_time():
            with suppress(NotParsed):
                return outline(text, path, names, lines)
        self.too_slow.add(path)
        return Outline()

    def mentioning(self, names: Collection[str], language: str) -> dict[str, list[str]]:
        """Return by name the paths of a language's files that contain it as a word, in order."""
        words = {name: name.lstrip("$#") for name in names}
        fresh = {word for word in words.values() if (language, word) not in self._mentions}
        self._mentions |= {(language, word): [] for word in fresh}
        for path, text in self._texts_with(fresh, r"\bNAMES\b", language):
            for word in fresh.intersection(_WORD.findall(text)):
                self._mentions[language, word].append(path)
        return {name: self._mentions[language, word] for name, word in words.items()}

    def containing(self, words: Collection[str], language: str) -> Iterator[tuple[str, str]]:
        """Yield path and text of a language's files with one of these words, which may have hyphens."""
        return self._texts_with(words, r"\bNAMES\b", language)

    def defining(self, names: Collection[str], language: str) -> dict[str, tuple[FileDefinition, ...]]:
        """Return by name all its definitions in a language's files; a name that is defined too often is absent."""
        candidates: dict[str, list[str]] = {}
        for path, text in self._texts_with(names, rf"(?m){DEFINES[language]}", language):
            for name in names:
                if name in text:
                    candidates.setdefault(name, []).append(path)
        results: dict[str, tuple[FileDefinition, ...]] = {}
        for name, paths in candidates.items():
            pattern = re2.compile(f"(?m){DEFINES[language].replace('NAMES', re2.escape(name.lstrip('$#')))}")
            likely = [path for path in paths if pattern.search(self.text(path) or "")]
            if len(likely) <= MAX_DEFINING and (places := self.named(name, likely)):
                results[name] = tuple(places)
        return results

    def _texts_with(self, names: Collection[str], pattern: str, language: str) -> Iterator[tuple[str, str]]:
        """Yield path and text of a language's files that match ``pattern`` for one of the names."""
        if not names:
            return
        alternatives = "|".join(sorted(re2.escape(name.lstrip("$#")) for name in names))
        compiled = re2.compile(pattern.replace("NAMES", f"(?:{alternatives})"))
        remaining = MAX_SEARCHED
        for path in self._by_language.get(language, ()):
            text = self.text(path)
            if text is None:
                continue
            remaining -= len(text)
            if remaining < 0 or not self.is_in_time():
                return
            if compiled.search(text):
                yield path, text

    def is_in_time(self) -> bool:
        """Return False if ``seconds`` are over."""
        self.ran_out_of_time = self.ran_out_of_time or monotonic() > self._until
        return not self.ran_out_of_time


_WORD = re2.compile(r"[A-Za-z_]\w*")
