"""Code as the reviewer is shown it: every character that could hide, reorder or forge text is written out."""

from __future__ import annotations

import re

from bot.core.text import UNSEEN
from bot.prompts import visible

#: A line is one line: its end is shown like everything else that cannot be seen.
_HIDDEN = re.compile(f"{UNSEEN.pattern}|\n")


def show(line: str) -> str:
    """One line of text on exactly one line, with unseen characters as escapes such as ``\\u202e``.

    A chat template's control tokens are taken apart here already, as the fence around a prompt's data would:
    what a model quotes then is what it was shown.
    """
    text = _HIDDEN.sub(_escape, line)
    return visible(text) if "<|" in text else text


def squeeze(line: str) -> str:
    """The shown line with runs of white space as one space: how quotes and code are compared."""
    return " ".join(show(line).split())


def squeeze_lines(text: str) -> str:
    """A text squeezed line by line, without blank lines at its ends."""
    return "\n".join(squeeze(line) for line in text.split("\n")).strip("\n")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
