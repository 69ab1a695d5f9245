"""``/bouncer ...`` in a comment: a closed list of words, and who may say them. Pure."""

from __future__ import annotations

import re
from typing import Literal, get_args

from bot.core.frozen import Frozen
from bot.core.model import Permission, at_least

Word = Literal["help", "recheck", "accept", "pause", "resume", "review", "verify", "dismiss", "reproduce"]
WORDS: tuple[Word, ...] = get_args(Word)

#: What each word does, as ``/bouncer help`` shows it.
MEANINGS: dict[Word, str] = {
    "help": "show this list",
    "recheck": "read the issue or pull request again (its author may ask too)",
    "accept": "this issue is fine as it is; it is not bounced again",
    "pause": "leave this issue or pull request alone",
    "resume": "look at it again from now on",
    "review": "review the pull request now",
    "verify": "check the pull request against its issue now; `--run` also runs a stored test on a fork's code",
    "dismiss": "as a reply to a finding: wrong or unwanted, not to be posted here again",
    "reproduce": "draft a test that fails as the issue reports",
}

#: Only these may follow a word; anything else makes the line no command.
FLAGS: dict[Word, frozenset[str]] = {"verify": frozenset({"--run"})}

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_COMMAND = re.compile(r"^/bouncer[ \t]+([a-z]+)((?:[ \t]+\S+)*)[ \t]*$")
_MAX_COMMANDS = 5


class Command(Frozen):
    """One thing that somebody asks for."""

    word: Word
    flags: frozenset[str] = frozenset()


def read(body: str) -> tuple[Command, ...]:
    """The commands in a comment, in order, each once.

    A command is the first thing on a line, outside code and quotes; unknown words and arguments are no
    command.
    """
    found: list[Command] = []
    fence = ""
    for line in body.replace("\r\n", "\n").split("\n"):
        mark = _FENCE.match(line)
        if fence:
            closes = mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence)
            if closes and not line.strip().strip(fence[0]):
                fence = ""
            continue
        if mark:
            fence = mark[1]
            continue
        command = _command(line)
        if command and command not in found:
            found.append(command)
    return tuple(found[:_MAX_COMMANDS])


def _command(line: str) -> Command | None:
    match = _COMMAND.match(line)
    if match is None or match[1] not in WORDS:
        return None
    word: Word = match[1]
    flags = frozenset(match[2].split())
    return Command(word=word, flags=flags) if flags <= FLAGS.get(word, frozenset()) else None


def may(word: Word, permission: Permission, is_author: bool) -> bool:
    """Whether someone may give a command: people with triage permission, and the author for a few words."""
    if word == "help" or (word == "recheck" and is_author):
        return True
    return at_least(permission, "triage")
