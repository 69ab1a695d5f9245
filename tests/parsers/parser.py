# ruff: noqa: E501 - lists of words
"""A parser of untrusted text, with texts that are hard for it and its random inputs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

#: A text of any length: its start, the unit that is repeated, its end.
Growing = tuple[str, str, str]

#: Units that are repeated for every parser.
COMMON = (
    "a", " ", "\n", "\t", "\r", "\0", "\ud800", "\u200b", "\u2028", "é", "\U0001f600", "`", "``` \n", "~~~\n", "\\", "'",
    '"', "(", "[", "{", "<", ">", "<a ", "<!--", "</", "&", "&#x", "|", "> ", "- ", "* ", "#", "#1 ", "@a ", "//", "../",
    "a.", "a(", "a_", "aA", "A ", "0", "1.", "0x", "-", "=", "_", ":", ": ", "a: ", "a=", ",", ";", "/a", "http://a/",
    "![](", "](", "*a", "a b ", "ab\n", "\n\n", " \n", "  a\n", "E ", "at ", "1 is 1 ", "fix ", "{}", "[]", "a\\", '\\"',
)  # fmt: skip
#: Replacements of a word: empty values, extreme ones, other types.
_ODD = (
    "null", "true", '""', "[]", "{}", "0", "-1", "1e999", "NaN", "0.1", "99999999999999999999", '"\\ud800"', '"\\u0000"',
    '"-1"', "[[]]", '{"a": 1}', "''",
)  # fmt: skip
_WORD = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|\s+|[^\w\s]')
_MOST_CHANGES = 4


@dataclass(frozen=True)
class Parser:
    """A parser, the errors that it documents, and texts that could be hard for it."""

    name: str
    read: Callable[[str], object]
    raises: tuple[type[Exception], ...] = ()
    hard: tuple[Growing, ...] = ()
    words: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    """Valid texts: a slightly changed one reaches more code than a random one."""
    limit: int = 64_000
    """Characters to measure with: parsers with a limit of their own refuse longer texts."""
    apart: bool = False
    """True if a child process parses: only the time of this process is limited then."""

    def texts(self, size: int) -> Iterator[tuple[str, str]]:
        """Yield a label and a text of about ``size`` characters for every hard unit."""
        for start, unit, end in (*(("", unit, "") for unit in COMMON), *self.hard):
            yield f"{start}{unit}{end}"[:40], start + unit * max(1, size // len(unit)) + end

    def repeated(self, dice: random.Random) -> str:
        """Return one to four of its words, repeated up to ``limit`` characters."""
        unit = "".join(dice.choices(_vocabulary(self.words, self.hard), k=dice.randint(1, 4))) or " "
        return (unit * (self.limit // len(unit) + 1))[: self.limit]

    def random(self, dice: random.Random) -> str:
        """Return a sample with a few changed words, or a short text of its own words and the common ones."""
        if self.samples and dice.random() < 0.5:
            return _changed(dice.choice(self.samples), self.words, dice)
        return "".join(dice.choices(_vocabulary(self.words, self.hard), k=dice.randrange(24)))


@cache
def _vocabulary(words: tuple[str, ...], hard: tuple[Growing, ...]) -> tuple[str, ...]:
    return (*words * 4, *(unit for growing in hard for unit in growing), *COMMON)


@cache
def _taken_apart(sample: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(sample))


@cache
def _word_places(sample: str) -> tuple[int, ...]:
    return tuple(place for place, word in enumerate(_taken_apart(sample)) if word[0].isalnum() or word[0] in '"_')


def _changed(sample: str, words: tuple[str, ...], dice: random.Random) -> str:
    text = list(_taken_apart(sample))
    if dice.random() < 0.5:
        # A word replaces a word, which most grammars still accept.
        for _ in range(dice.randint(1, _MOST_CHANGES)):
            at = dice.choice(_word_places(sample))
            text[at] = dice.choice(_ODD) if dice.random() < 0.5 else text[dice.choice(_word_places(sample))]
        return "".join(text)
    for _ in range(dice.randint(1, _MOST_CHANGES)):
        at = dice.randrange(len(text))
        match dice.randrange(6):
            case 0:
                text[at] = dice.choice(_ODD)
            case 1:
                text[at] = dice.choice(words or COMMON)
            case 2:
                text[at] = dice.choice(COMMON)
            case 3:
                text[at] = ""
            case 4:
                text[at] = text[dice.randrange(len(text))]
            case _:
                end = min(len(text), at + dice.randint(1, 12))
                text[at:at] = text[at:end]
    return "".join(text)
