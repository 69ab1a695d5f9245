"""Names of code in text: those that lines of code call, and those that a phrase mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CALL = re.compile(r"(?<![\w.])((?:[A-Za-z_$][\w$]*(?:\.|::|->))*)([A-Za-z_$][\w$]*)!?\s?\(")
_WORDS = r"(?:def|class|func|fn|function\*?|struct|enum|interface|trait|type|record)\s+(?:\([^()\n]*\)\s*)?"
_DEFINES = re.compile(rf"\b{_WORDS}$")
_KEYWORDS = frozenset({
    "if", "for", "while", "switch", "catch", "return", "and", "or", "not", "in", "is", "elif", "with", "assert",
    "print", "super", "isinstance", "len", "str", "int", "float", "list", "dict", "set", "tuple", "bool",
    "range", "type", "func", "function", "def", "class", "lambda", "await", "yield", "raise", "except", "del",
    "sizeof", "typeof", "Some", "Ok", "Err", "None", "make", "append", "new", "match",
})  # fmt: skip


def is_comment(line: str) -> bool:
    """Return True if a line of code looks like a comment, or like a part of a longer one."""
    return line.lstrip().startswith(("#", "//", "*", "/*"))


def called_names(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the names that lines of code call, qualified and in order: ``re.compile``, ``load``."""
    names: dict[str, None] = {}
    for line in lines:
        if is_comment(line):
            continue
        for match in _CALL.finditer(line[:2_000]):
            if match[2] in _KEYWORDS or _DEFINES.search(line[max(match.start() - 60, 0) : match.start()]):
                continue
            names.setdefault(f"{match[1]}{match[2]}".replace("::", ".").replace("->", "."))
    return tuple(names)


_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|#)[A-Za-z_$][\w$]*)*(?:\(\))?")
PATH = re.compile(r"(?<![\w.-])[\w.-]+(?:/[\w.-]+)+|(?<![\w-])[\w-]+\.[a-z]{1,4}\b")


def names_in(phrase: str) -> list[str]:
    """Return the names in a phrase that have the form of code, qualified by dots."""
    code_spans = re.findall(r"`([^`]+)`", phrase)
    texts = code_spans or [phrase]
    only_word = len(phrase.split()) == 1
    names: dict[str, None] = {}
    for text in texts:
        without_paths = PATH.sub(" ", text) if "/" in text else text
        for match in _NAME.findall(without_paths):
            name = re.sub(r"::|->|#", ".", match)
            plain = name.removesuffix("()")
            has_form = name != plain or "." in plain or "_" in plain or is_telling(plain) or plain.isupper()
            if code_spans or only_word or has_form or re.search(r"[a-z][A-Z]", plain):
                names.setdefault(plain)
    return list(names)


def is_telling(name: str) -> bool:
    """Return True if a name is unlikely to be shared by accident: it has several words."""
    return len(name) >= 10 and bool(re.search(r"[a-z0-9][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]", name))
