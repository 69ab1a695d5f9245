"""Code as the reviewer is shown it: every character that could hide, reorder or forge text is written out."""

from __future__ import annotations

import re

from bot.prompts.fence import visible

# Controls but tab, soft hyphen, zero-width and bidirectional marks, line and paragraph separators, variation
# selectors, byte order mark, surrogates, interlinear marks and tag characters ("Trojan Source", CVE-2021-42574).
_UNSEEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def show(line: str) -> str:
    """One line of text on exactly one line, with unseen characters as escapes such as ``\\u202e``.

    A chat template's control tokens are taken apart here already, as the fence around a prompt's data would:
    what a model quotes then is what it was shown.
    """
    text = _UNSEEN.sub(_escape, line)
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
