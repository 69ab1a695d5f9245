"""``/bouncer ...`` in a comment: a closed list of words, and who may say them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import Field

from bot.core.frozen import Frozen
from bot.core.subjects import Permission, at_least

if TYPE_CHECKING:
    from markdown_it.token import Token

Word = Literal["help", "recheck", "accept", "pause", "resume", "review", "verify", "dismiss", "reproduce", "why"]
WORDS: tuple[Word, ...] = get_args(Word)

#: What the author of an issue or pull request may say too.
AUTHORS: frozenset[Word] = frozenset({"recheck", "why"})

#: What each word does, as ``/bouncer help`` shows it, which also says which ones authors may give.
MEANINGS: dict[Word, str] = {
    "help": "show this list",
    "recheck": "read the issue or pull request again",
    "accept": "this issue is fine as is; it is not bounced again",
    "pause": "leave this issue or pull request alone",
    "resume": "look at it again from now on",
    "review": "review the pull request now; `--run <commit>` also tries to prove findings by running "
    "that commit of a fork (its whole id)",
    "verify": "check the pull request against its issue now; `--run <commit>` also runs a stored test on "
    "that commit of a fork (its whole id)",
    "dismiss": "below a finding, or below the pull request if there is only one: it is wrong or unwanted, and "
    "is not posted here again",
    "reproduce": "draft a test that fails the way the issue describes",
    "why": "explain what the verdict rests on, or in a finding's thread, that finding",
}

#: A reason may follow, behind a mark that ends the word: "/bouncer accept would be wrong" is no command.
_LINE = re.compile(
    r"^ {0,3}/bouncer[ \t]+([a-z]{1,20})"
    r"(?:[ \t]+(--run)(?:[ \t]+([0-9a-f]{1,64}))?[ \t]*|[ \t]*(?:[,.;:!(]([^\n]{0,500}))?)$",
    re.MULTILINE | re.IGNORECASE,
)
#: What looks as if a command was meant.
_NEAR = re.compile(r"^ {0,3}/bouncers?\b[ \t]*([^\n]{0,40})", re.MULTILINE | re.IGNORECASE)
#: Where these are open, what follows is not plain text to the people who read the comment.
_HIDING = re.compile(r"<(?P<end>/?)(?P<tag>details|pre|code|blockquote)\b|<!--|-->", re.IGNORECASE)
_FOOTNOTE = re.compile(r"[ \t>*+-]*\[\^[^\]]+\]:")
_MAX_COMMANDS = 5


class Command(Frozen):
    """One thing that somebody asks for."""

    word: Word
    run: str | None = Field(None, description="the commit behind ``--run``, empty where none is named")
    reason: str = Field("", description="what was said behind the word, for people to read and nothing else")


def read(body: str) -> tuple[Command, ...]:
    """The commands in a comment, in order, each once.

    A command is a line of its own in plain text, as GitHub shows it: not in code, a quote, a comment or folded
    details; unknown words and arguments are no command. What follows a comma is the reason.
    """
    body = body.replace("\r\n", "\n")
    if _LINE.search(body) is None:
        return ()
    found = (_command(line) for line in _plain_lines(body))
    return tuple({each.word: each for each in found if each}.values())[:_MAX_COMMANDS]


def near_miss(body: str) -> Word | None:
    """What somebody probably meant who wrote a line that is almost a command; None where no line is."""
    body = body.replace("\r\n", "\n")
    if _NEAR.search(body) is None or read(body):
        return None
    for line in _plain_lines(body):
        if meant := _NEAR.match(line):
            first = re.match(r"[a-z]{0,20}", meant[1].lower())
            close = get_close_matches(first[0] if first else "", WORDS, n=1, cutoff=0.6)
            return next((word for word in WORDS if word in close), "help")
    return None


def _command(line: str) -> Command | None:
    match = _LINE.fullmatch(line)
    word = next((word for word in WORDS if match and word == match[1].lower()), None)
    if match is None or word is None or (match[2] and word not in ("verify", "review")):
        return None
    run = (match[3] or "").lower() if match[2] else None
    return Command(word=word, run=run, reason=(match[4] or "").strip(" \t()"))


def _plain_lines(body: str) -> Iterator[str]:
    """The lines of a text that are shown as they stand, and begin at the margin or a few blanks from it."""
    from markdown_it import MarkdownIt

    source = body.replace("\r", "\n").split("\n")
    at_margin = frozenset(line.rstrip() for line in source)
    near_margin = at_margin | {re.sub(r"^ {1,3}", "", line) for line in at_margin}
    noted = _footnotes(source)
    items = 0
    opened: Counter[str] = Counter()
    # All of Markdown is read: titles of links, attributes and definitions span lines that nobody is shown.
    for token in MarkdownIt("commonmark").parse(body):
        if token.type in ("blockquote_open", "blockquote_close"):
            opened["quote"] += token.nesting
        elif token.type in ("list_item_open", "list_item_close"):
            items += token.nesting
        elif token.type == "html_block":
            _open(token.content, opened)
        if token.map and token.map[1] - 1 in noted:
            continue
        for line in _lines(token.children or (), opened):
            if not any(opened.values()) and line in (at_margin if items else near_margin):
                yield line
            _open(line, opened)


def _footnotes(lines: Sequence[str]) -> frozenset[int]:
    """Numbers of the lines from a footnote's beginning to the next empty one: GitHub shows them elsewhere."""
    noted, inside = set(), False
    for number, line in enumerate(lines):
        inside = bool(line.strip()) and (inside or _FOOTNOTE.match(line) is not None)
        if inside:
            noted.add(number)
    return frozenset(noted)


def _lines(tokens: Iterable[Token], opened: Counter[str]) -> Iterator[str]:
    """A paragraph's lines; a NUL stands for what is not plain text in them. Counts the elements that tags open."""
    line = ""
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield line
            line = ""
        elif token.type == "text":
            line += token.content
        else:
            line += "\0"
            if token.type == "html_inline":
                _open(token.content, opened)
    yield line


def _open(text: str, opened: Counter[str]) -> None:
    """Count the elements that ``text`` opens and closes."""
    for match in _HIDING.finditer(text):
        tag = (match["tag"] or "comment").lower()
        step = -1 if match["end"] or match[0] == "-->" else 1
        opened[tag] = max(0, opened[tag] + step)


def may(word: Word, permission: Permission, is_author: bool) -> bool:
    """Whether someone may give a command: people with triage permission, and the author for a few words."""
    if word == "help" or (word in AUTHORS and is_author):
        return True
    return at_least(permission, "triage")
