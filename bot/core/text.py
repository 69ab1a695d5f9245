"""Plain text of strangers: what can be seen of it, and how much of it."""

from __future__ import annotations

import re

#: Characters that show nothing, reorder what is shown, or hide text in it: controls but tab and line feed, soft
#: hyphen, zero-width and direction marks, fillers, variation selectors, surrogates, tag characters, and every
#: other format character ("Trojan Source", CVE-2021-42574).
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def seen(text: str) -> str:
    """``text`` as a person sees it: nothing invisible, line ends as ``\\n``, half characters as ``?``."""
    return UNSEEN.sub("", _SURROGATE.sub("?", _LINE_END.sub("\n", text)))


def cap(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, cut between words where there is one near, and marked as cut."""
    if len(text) <= limit:
        return text
    cut = text[: max(0, limit - 1)]
    at = max(cut.rfind("\n", limit // 2), cut.rfind(" ", max(0, limit - 40)), 0)
    return (cut[:at] if at else cut).rstrip() + "…" * (limit > 0)


def without_middle(text: str, limit: int) -> str:
    """The first and last part of a text that is too long for one question, with a word in between that says so."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n\n[{len(text) - limit} characters left out here]\n\n{text[-tail:]}"


#: Lines of a log or a list of packages of which a question shows the beginning and the end: so many of each.
_LONG, _ENDS = 80, 25
#: Lines that must come again before a repetition is folded.
_REPEATED = 8
#: Places that may begin a repetition that are looked at.
_COPIES = 20


def folded(text: str, limit: int) -> str:
    """A report without what it says twice and the middle of long output, in about ``limit`` characters."""
    return without_middle(_shortened(_unrepeated(text)), limit)


def _unrepeated(text: str) -> str:
    """Without the second copy of a body that stands there twice in a row."""
    lines = text.split("\n")
    bare = [line.strip() for line in lines]
    starts = [start for start, line in enumerate(bare) if start >= _REPEATED and line == bare[0] != ""]
    for start in starts[:_COPIES]:
        count = 0
        while start + count < len(bare) and count < start and bare[count] == bare[start + count]:
            count += 1
        if count >= _REPEATED and count >= min(start, len(bare) - start) - 1:
            rest = lines[start + count :]
            return "\n".join([*lines[:start], f"[{count} lines repeated here are left out]", *rest])
    return text


def _shortened(text: str) -> str:
    """Fenced blocks that go on for long, by their first and last lines."""
    kept: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        if block is not None and fence:
            kept += _middle_out(block)
            block = None
        elif fence:
            block = []
        elif block is not None:
            block.append(line)
            continue
        kept.append(line)
    return "\n".join([*kept, *_middle_out(block or [])])


def _middle_out(lines: list[str]) -> list[str]:
    if len(lines) <= _LONG:
        return lines
    left = len(lines) - 2 * _ENDS
    return [*lines[:_ENDS], f"[{left} lines left out here]", *lines[-_ENDS:]]


#: What a chat template would read as the end of a turn: SmolLM2's <|im_end|>, OpenAI's <|endoftext|>, ...
_CONTROL_TOKEN = re.compile(r"<\|([A-Za-z0-9_]+)\|>")
#: A line is one line: its end is shown like everything else that cannot be seen.
_HIDDEN = re.compile(f"{UNSEEN.pattern}|\n")


def without_control_tokens(text: str) -> str:
    """``text`` with a chat template's control tokens taken apart."""
    return _CONTROL_TOKEN.sub(r"< |\1| >", text)


def show(line: str) -> str:
    """One line on exactly one line, with every character that could hide, reorder or forge text as an escape.

    Control tokens are taken apart here already, as the fence around a prompt's data would: what a model quotes
    then is what it was shown.
    """
    return without_control_tokens(_HIDDEN.sub(_escape, line))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def squeeze(line: str) -> str:
    """The shown line with runs of white space as one space: how quotes and code are compared."""
    return " ".join(show(line).split())


def squeeze_lines(text: str) -> str:
    """A text squeezed line by line, without blank lines at its ends."""
    return "\n".join(squeeze(line) for line in text.split("\n")).strip("\n")
