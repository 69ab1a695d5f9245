"""The names that lines of code call, by their text alone."""

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


def called_names(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the names that lines of code call, qualified and in order: ``re.compile``, ``load``."""
    names: dict[str, None] = {}
    for line in lines:
        if line.lstrip().startswith(("#", "//", "*", "/*")):
            continue
        for match in _CALL.finditer(line[:2_000]):
            if match[2] in _KEYWORDS or _DEFINES.search(line[max(match.start() - 60, 0) : match.start()]):
                continue
            names.setdefault(f"{match[1]}{match[2]}".replace("::", ".").replace("->", "."))
    return tuple(names)
