"""``/bouncer ...`` in a comment: the grammar of a command, and what a feature declares about one. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pydantic import Field

from bot.core.frozen import Frozen
from bot.core.subjects import Permission, may_triage

if TYPE_CHECKING:
    from markdown_it.token import Token


@dataclass(frozen=True)
class AuthorLimit:
    """How often the author of an issue or pull request may use a command there."""

    uses: int
    period: timedelta
    text: str
    """The limit in words, for the reply to an author who reached it."""


@dataclass(frozen=True)
class SlashCommand:
    """A command as its feature declares it."""

    word: str
    help: str
    """What it does, as ``/bouncer help`` shows it."""
    on_issues: bool = True
    on_pull_requests: bool = True
    author_limit: AuthorLimit | None = None
    """None: only people with triage permission may use it."""
    open_to_all: bool = False
    takes_run: bool = False
    """``--run COMMIT`` may follow the word."""
    sections: tuple[str, ...] = ()
    """Sections of bouncer.yml; on a pull request the command needs one of them switched on."""


#: A blank of any width: some keyboards and pages give a no-break space.
_BLANK = r"[^\S\n\v\f\r\x1c-\x1f\x85\u2028\u2029]"
#: Punctuation after a word, of full width too, which some keyboards give.
_MARK = r"[,.;:!?\u2026\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]"
#: ``/bouncer WORD REASON``, or ``@APP-NAME WORD REASON``. A reason begins with no hyphen: that is an option.
_LINE = re.compile(
    rf"^ {{0,3}}(?:/bouncer|@(?P<mention>[a-z0-9-]{{1,39}})){_BLANK}+(?P<word>[a-z]{{1,20}})"
    rf"(?:{_MARK}*{_BLANK}+(?P<option>--run)(?:{_BLANK}+(?P<run>[0-9a-f]{{1,64}}))?{_BLANK}*"
    rf"|{_BLANK}*(?:(?:{_MARK}+|[(\uff08]|(?<={_BLANK})(?=[^\s-]))(?P<reason>[^\n]{{0,500}}))?)$",
    re.MULTILINE | re.IGNORECASE,
)
#: A bare ``/bouncer`` asks for help.
_BARE = re.compile(rf"^ {{0,3}}/bouncer{_BLANK}*$", re.MULTILINE | re.IGNORECASE)
#: A line that begins like a command.
_NEAR = re.compile(rf"^ {{0,3}}/bouncers?\b{_BLANK}*([^\n]{{0,40}})", re.MULTILINE | re.IGNORECASE)
#: The part of a line before its reason, which may have formatting; an option may not.
_HEAD = re.compile(rf"^(?:/bouncers?|@[a-z0-9-]{{1,39}}){_BLANK}+[a-z]{{1,20}}\b(?!{_BLANK}*-)", re.IGNORECASE)
#: Inside these tags text is hidden, quoted or code.
_HIDING = re.compile(r"<(?P<end>/?)(?P<tag>details|pre|code|blockquote)\b|<!--|-->", re.IGNORECASE)
#: The line above a signature. An e-mail is shown as plain text, where it makes no heading of the line before.
_SIGNATURE = re.compile(r"^-- ?$", re.MULTILINE)
_FOOTNOTE = re.compile(r"[ \t>*+-]*\[\^[^\]]+\]:")
_MAX_COMMANDS = 5


class Command(Frozen):
    """One command that a comment gives."""

    word: str
    run: str | None = Field(None, description="the commit after ``--run``; empty if no commit is named")
    reason: str = Field("", description="the text after the word, shown to people and not interpreted")
    mention: str = Field("", description="the account that is mentioned instead of ``/bouncer``")


class CommandSet:
    """All commands that the features declare."""

    def __init__(self, declared: Iterable[SlashCommand], login: Callable[[], str] | None = None) -> None:
        self._by_word = {command.word: command for command in declared}
        self._login = login

    def addressed_to(self, login: Callable[[], str]) -> CommandSet:
        """Return the same commands, with mentions of any account but ``login()`` ignored."""
        return CommandSet(self._by_word.values(), login)

    def __iter__(self) -> Iterator[SlashCommand]:
        return iter(self._by_word.values())

    def __getitem__(self, word: str) -> SlashCommand:
        return self._by_word[word]

    def read(self, body: str) -> tuple[Command, ...]:
        """Return the declared commands in a comment, in order; of two with the same word the last."""
        commands: dict[str, Command] = {}
        for command in filter(self._accepts, parse(body)):
            commands.pop(command.word, None)  # so that of pause, resume, pause the last one counts
            commands[command.word] = command
        return tuple(commands.values())[:_MAX_COMMANDS]

    def _accepts(self, command: Command) -> bool:
        declared = self._by_word.get(command.word)
        if declared is None or not (command.run is None or declared.takes_run):
            return False
        if not command.mention or self._login is None:
            return True
        return command.mention == self._login().removesuffix("[bot]").lower()

    def near_miss(self, body: str) -> str | None:
        """Return the word that an almost correct command probably means; None if the comment has no such line.

        The word is ``help`` if no other is close.
        """
        line = None if self.read(body) else _first_attempt(body)
        if line is None:
            return None
        first_word = re.match(r"[a-z]{0,20}", line[1].lower())
        matches = get_close_matches(first_word[0] if first_word else "", list(self._by_word), n=1, cutoff=0.6)
        return matches[0] if matches else "help"

    def may(self, word: str, permission: Permission, is_author: bool) -> bool:
        """Return True if a person may use a command: by permission, or as the author for some of them."""
        command = self._by_word[word]
        allowed_as_author = command.author_limit is not None and is_author
        return command.open_to_all or allowed_as_author or may_triage(permission)


def parse(body: str) -> tuple[Command, ...]:
    """Return everything in a comment that has the form of a command, whether its word is declared or not.

    A command is a line of its own in plain text, as GitHub shows it: not in code, a quote, a heading, a comment or
    folded details. The text after the word is the reason.
    """
    body = body.replace("\r\n", "\n")
    if _LINE.search(body) is None and _BARE.search(body) is None:
        return ()
    return tuple(command for line in _plain_lines(body) if (command := _command(line)))


def _command(line: str) -> Command | None:
    if _BARE.fullmatch(line):
        return Command(word="help")
    match = _LINE.fullmatch(line)
    return match and Command(
        word=match["word"].lower(),
        run=(match["run"] or "").lower() if match["option"] else None,
        reason=(match["reason"] or "").strip().strip(" \t()\uff08\uff09"),
        mention=(match["mention"] or "").lower(),
    )


def resembles_command(body: str) -> bool:
    """Return True if a line of a comment begins like a command."""
    return _first_attempt(body) is not None


def _first_attempt(body: str) -> re.Match[str] | None:
    body = body.replace("\r\n", "\n")
    if _NEAR.search(body) is None:
        return None
    return next((match for line in _plain_lines(body) if (match := _NEAR.match(line))), None)


def _plain_lines(body: str) -> Iterator[str]:
    """Yield the lines that GitHub shows as plain text and that are indented by at most three blanks."""
    from markdown_it import MarkdownIt

    source = body.replace("\r", "\n").split("\n")
    lines = frozenset(line.rstrip() for line in source)
    at_margin = _as_written(lines)
    near_margin = _as_written(lines | {re.sub(r"^ {1,3}", "", line) for line in lines})
    footnotes = _footnotes(source)
    items = 0
    open_tags: Counter[str] = Counter()
    # All of Markdown is parsed, because link titles, attributes and definitions span lines that are not shown.
    for token in MarkdownIt("commonmark").parse(_SIGNATURE.sub("-- .", body)):
        if token.type in ("blockquote_open", "blockquote_close"):
            open_tags["quote"] += token.nesting
        elif token.type in ("heading_open", "heading_close"):
            open_tags["heading"] += token.nesting
        elif token.type in ("list_item_open", "list_item_close"):
            items += token.nesting
        elif token.type == "html_block":
            _open(token.content, open_tags)
        if token.map and token.map[1] - 1 in footnotes:
            continue
        margin = at_margin if items else near_margin
        for line in _lines(token.children or (), open_tags):
            # Of a line with formatting the head decides.
            original = margin.get(line.rstrip()) or margin.get(_head(line))
            if original and not any(open_tags.values()):
                yield original
            _open(line, open_tags)


def _as_written(lines: frozenset[str]) -> dict[str, str]:
    """Map each line to itself, and its head to the first line with that head."""
    heads = {head: line for line in sorted(lines, reverse=True) if (head := _head(line))}
    return heads | {line: line for line in lines}


def _head(line: str) -> str:
    match = _HEAD.match(line)
    return match.group() if match else ""


def _footnotes(lines: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the lines that belong to footnotes, which GitHub shows elsewhere."""
    footnotes, inside = set(), False
    for number, line in enumerate(lines):
        inside = bool(line.strip()) and (inside or _FOOTNOTE.match(line) is not None)
        if inside:
            footnotes.add(number)
    return frozenset(footnotes)


def _lines(tokens: Iterable[Token], open_tags: Counter[str]) -> Iterator[str]:
    """Yield the lines of a paragraph, with a NUL for all that is not plain text; count the open HTML tags."""
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
                _open(token.content, open_tags)
    yield line


def _open(text: str, open_tags: Counter[str]) -> None:
    """Count the elements that ``text`` opens and closes."""
    for match in _HIDING.finditer(text):
        tag = (match["tag"] or "comment").lower()
        step = -1 if match["end"] or match[0] == "-->" else 1
        open_tags[tag] = max(0, open_tags[tag] + step)
