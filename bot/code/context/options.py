"""Options of command lines and configurations: where they are declared, and where they are read.

A declaration is a call such as ``parser.add_argument("--max-count")`` (argparse, optparse, pytest, click; in
scripts commander and yargs). It is read as ``args.max_count`` or ``config.getoption("--max-count")``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import re2

from bot.code.context.changed import Changed, named
from bot.code.context.page import CodeExcerpt
from bot.code.context.uses import CALLER, user_excerpt
from bot.code.parsing.definitions import Reference
from bot.code.parsing.expressions import closing
from bot.code.symbols.index import CodeIndex
from bot.code.symbols.languages import rules_of
from bot.code.symbols.names import is_comment
from bot.core.text import show

#: Most options of a change that are looked up; characters and lines of a declaration; files with readers of one.
MAX_OPTIONS, LONGEST, LINES, MAX_READERS = 8, 2_000, 8, 4
#: Most calls of one file that are read.
MAX_CALLS = 1_000

_DECLARES = re2.compile(r"\b(?:_?add_?option|add_argument|addini|option|argument)\s*\(")
_READS = re2.compile(
    r"\b(?:args|arguments|argv|opts|options?|ns|namespace|flags)\.([A-Za-z_]\w*)\b(?:[^(\w]|$)"
    r"|\b(?:getoption|getini)\(\s*[\"']-{0,2}([\w-]+)[\"']"
)
_DESTINATION = re2.compile(r"\bdest\s*=\s*[\"']([\w-]+)[\"']")
_LITERALS = re2.compile(r"^(?:\s*[\"'][^\"'\n]{1,80}[\"']\s*,?)+")
_LITERAL = re2.compile(r"[\"']([^\"'\n]+)[\"']")
_LONG = re2.compile(r"(?:--)?(\w[\w-]*)")


class _Declaration(NamedTuple):
    """A call that declares an option, with its lines."""

    path: str
    name: str
    first: int
    last: int


def options(changed: Changed) -> Iterator[CodeExcerpt]:
    """Yield the declarations of options that changed lines read, and the readers of options that they declare."""
    for file in changed.sources:
        language = rules_of(file.path).name
        if language not in ("python", "script"):
            continue
        source, numbers = changed.index.lines(file.path), changed.lines(file)
        first_reads: dict[str, int] = {}
        for number in sorted(numbers):
            for name in _names_read(source[number - 1 : number]):
                first_reads.setdefault(name, number)
        for name, number in islice(first_reads.items(), MAX_OPTIONS):
            places = list(islice(_declarations_of(changed.index, name, language), 2))
            if len(places) == 1:  # several programs may have an option of one name
                user = changed.user_at(file.path, number)
                by = "the change" if user is None else named(user)
                lines = range(places[0].first, min(places[0].last, places[0].first + LINES - 1) + 1)
                yield CodeExcerpt(places[0].path, tuple(lines), f"the option `{show(name)}`, read by {by}")
        declared = (
            place
            for place in _declarations_in(file.path, changed.index.text(file.path) or "")
            if numbers.intersection(range(place.first, place.last + 1))
        )
        for place in islice(declared, MAX_OPTIONS):
            yield from islice(_readers(changed, place, language), MAX_READERS)


def _names_read(lines: list[str]) -> list[str]:
    """Return the names of the options that these lines read."""
    return [
        attribute or literal
        for line in lines
        if not is_comment(line)
        for attribute, literal in _READS.findall(line)
    ]


def _declarations_of(index: CodeIndex, name: str, language: str) -> Iterator[_Declaration]:
    """Yield the declarations of an option in all files of a language."""
    for path, text in index.containing(_spellings(name), language):
        yield from (place for place in _declarations_in(path, text) if _fold(place.name) == _fold(name))


def _readers(changed: Changed, option: _Declaration, language: str) -> Iterator[CodeExcerpt]:
    """Yield an excerpt of each file that reads an option."""
    for path, text in changed.index.containing(_spellings(option.name), language):
        source, visible = text.split("\n"), changed.visible(path)
        numbers = [
            number
            for number, line in enumerate(source, start=1)
            if number not in visible and _fold(option.name) in map(_fold, _names_read([line]))
        ]
        if numbers:
            user = changed.user_at(path, numbers[0])
            references = [
                Reference(option.name, "", number, "read")
                for number in numbers
                if changed.user_at(path, number) == user
            ]
            yield user_excerpt(source, path, user, references, f"the option `{show(option.name)}`", CALLER)


def _declarations_in(path: str, text: str) -> Iterator[_Declaration]:
    """Yield the calls of a file that declare an option."""
    for match in islice(_DECLARES.finditer(text), MAX_CALLS):
        call = text[match.end() - 1 : match.end() + LONGEST]
        end = closing(call, 0)
        if name := _declared_name(call[1:end], rules_of(path).name):
            first = text.count("\n", 0, match.start()) + 1
            yield _Declaration(path, name, first, first + text.count("\n", match.start(), match.end() - 1 + end))


def _declared_name(arguments: str, language: str) -> str:
    """Return the name by which a declared option is read; empty for another call."""
    if language == "python" and (match := _DESTINATION.search(arguments)) is not None:
        return str(match[1])
    leading = _LITERALS.match(arguments)
    literals = [str(literal) for literal in _LITERAL.findall(leading[0])] if leading is not None else []
    if language != "python":
        literals = literals[:1]  # a description follows
    # A name without dashes is its own; of the others, the long one counts.
    plain = [literal for literal in literals if not literal.startswith("-")]
    long = [literal[literal.index("--") :] for literal in literals if "--" in literal]
    match = _LONG.match((plain if language == "python" and plain else long or plain or [""])[0])
    return str(match[1]) if match is not None else ""


def _spellings(name: str) -> tuple[str, ...]:
    """Return a name with underscores, with hyphens and in camel case."""
    words = re2.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().replace("-", "_").split("_")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    return tuple(dict.fromkeys(("_".join(words), "-".join(words), camel)))


def _fold(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
