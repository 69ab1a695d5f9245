"""Expressions as text: names and calls that are joined by dots, and brackets."""

from __future__ import annotations

import re

WORD = re.compile(r"[A-Za-z_$][\w$]*")
#: A name with what joins it to the one before it; the type arguments of a call; brackets outside of strings; and
#: what may follow an expression that is only names and calls.
_NAME = re.compile(r"(\s*(?:[?!]?\.|::|->))?([A-Za-z_$#@][\w$]*)")
_BEFORE_VALUE = re.compile(r"(?:await\s+|new[\s(]\s*|&(?:mut\s+)?)*")
_TYPE_ARGUMENTS = re.compile(r"(?:(?:::)?<[^()\n]{0,200}>|\[[^()\n]{0,200}\])(?=\(|::)")
_BRACKETS = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]{0,80}'|`[^`]*`|[()\[\]{}]")
_END_OF_VALUE = re.compile(r"[ \t]*(?:$|[;),}{#]|/[/*]|else\b|\r?\n(?!\s*(?:[?|&+*/]|(?:or|and)\b)))")


def segments(receiver: str) -> list[str]:
    """Return the parts of a receiver: ``(await a::b(x).c)`` gives ``a``, ``b()`` and ``c``."""
    text, depth = "", 0
    receiver = re.sub(r"\.await\b(?!\()", "", receiver)
    for char in receiver.replace("?.", ".").replace("::", ".").replace("->", ".").replace("!.", "."):
        if char in ")]":
            depth = max(depth - 1, 0)
            if not depth:
                text += "()" if char == ")" else ""
        elif char in "([":
            depth += 1
        elif not depth:
            text += char
    words = [part.lstrip("*&!").removeprefix("await") for part in text.split(".")]
    return [part for part in words if re.fullmatch(r"[\w$#@]+(?:\(\))*", part)] if all(words) else []


def chain(text: str) -> str:
    """Return the names and calls that a text starts with, joined by dots, if they are a whole expression."""
    parts: list[str] = []
    before = _BEFORE_VALUE.match(text)
    at = before.end() if before is not None else 0
    while match := _NAME.match(text, at):
        if bool(match[1]) != bool(parts):
            return ""
        at, calls = match.end(), ""
        if generic := _TYPE_ARGUMENTS.match(text, at):
            at = generic.end()
        while text[at : at + 1] == "(":
            at, calls = closing(text, at), f"{calls}()"
        if text[at : at + 1] in ("?", "!") and text[at : at + 2] not in ("?.", "??", "!.", "!="):
            at += 1
        if match[2] != "await" or calls:
            parts.append(match[2] + calls)
    return ".".join(parts) if _END_OF_VALUE.match(text, at) else ""


def element_parts(expression: str, level: int) -> list[str]:
    """Return the parts of an expression that is joined by dots, of whose elements the value is meant."""
    return f"{expression}{'[]' * level}".split(".")


def closing(text: str, start: int) -> int:
    """Return the place behind the bracket that closes the one at ``start``, or the end of the text."""
    depth = 0
    for match in _BRACKETS.finditer(text, start):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if not depth:
            return match.end()
    return len(text)
