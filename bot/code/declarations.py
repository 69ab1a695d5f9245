"""Declarations, read from the text of a function by pattern: types of variables, local names, receivers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import re2

from bot.code.syntax import Definition

#: Containers, whose members are not those of their elements.
_CONTAINERS = re.compile(
    r"^[&*\s]*(?:\[|(?:\w+\.)*(?:list|set|dict|tuple|map|array|vec\w*|hash\w*|btree\w*|collection|sequence|iterable|"
    r"iterator|mutablemapping|mapping|queue|deque|stream|promise|record|linked\w+)\b)",
    re.I,
)
#: Wrappers, through which members are reached.
_WRAPPERS = frozenset({
    "Optional", "Option", "Arc", "Rc", "Box", "RefCell", "Cell", "Mutex", "RwLock", "Final", "ClassVar", "typing",
    "t", "dyn", "mut", "const", "struct", "impl", "undefined", "null", "None", "Readonly", "Type", "type",
    "readonly", "Nullable", "lambda",
})  # fmt: skip
WORD = re.compile(r"[A-Za-z_$][\w$]*")
#: Words that stand where a type could stand.
_NO_TYPES = frozenset({"return", "else", "new", "await", "const", "let", "var", "in"})


def segments(receiver: str) -> list[str]:
    """Return the parts of a receiver: ``(await a::b(x).c)`` gives ``a``, ``b()`` and ``c``."""
    text, depth = "", 0
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


def type_names(declared: str) -> list[str]:
    """Return the names that a declared type may mean, likely ones first; none for a container."""
    if _CONTAINERS.match(declared.strip(" :?'\"")):
        return []
    words = WORD.findall(declared)
    return [word for word in words if word not in _WRAPPERS] or words


def declared_type(text: str, word: str, language: str) -> str:
    """Return the type that a variable or parameter is declared with, or constructed from; empty if none is."""
    if not text or not WORD.fullmatch(word):
        return ""
    name = re2.escape(word)
    patterns = [
        rf"\b{name}\s*(?::=|=)[^\n]*\.\(\*?([\w.]+)\)",
        rf"\b{name}\s*(?::=|=)\s*(?:await\s+)?(?:new\s+|&)?([A-Za-z_][\w.:]*)\s*[({{]",
    ]
    if language in ("python", "script", "rust"):
        patterns.insert(0, rf"\b{name}\??\s*:\s*([^=,;)\n{{]{{1,80}})")
    elif language == "go":
        patterns.insert(0, rf"\b{name}\s+(\*?[A-Za-z_][\w.]*)\s*[,)\n=]")
    else:
        patterns.insert(0, rf"\b([A-Za-z_]\w*(?:<[^;(){{}}\n]{{0,60}}>)?)[\s*]+{name}\s*[;=,)\[:]")
    for pattern in patterns:
        match = re2.search(pattern, text)
        if match is not None and match[1] not in _NO_TYPES:
            return str(match[1])
    return ""


def is_local(lines: Sequence[str], name: str, scope: Sequence[Definition], line: int) -> bool:
    """Return True if a name is a parameter or a variable of the functions around a line."""
    escaped = re2.escape(name)
    parameter = rf"(?:[(,|]|^)\s*(?:mut |final |\*+|&)*{escaped}\s*[,):=?|]|[\w>\]*&]\s+\**{escaped}\s*[,)=]"
    for definition in scope:
        head = "\n".join(lines[definition.first - 1 : max(definition.body, definition.first)])
        if definition.kind == "function" and re2.search(parameter, head.partition("{")[0]):
            return True
    variable = rf"\b{escaped}\s*(?::[^=\n(]{{0,60}})?(?::=|=[^=>])|\bfor\s+\(?(?:const |let |var )?{escaped}\b"
    return re2.search(variable, function_text(lines, scope, line)) is not None


def function_text(lines: Sequence[str], scope: Sequence[Definition], line: int) -> str:
    """Return the text of the outermost function around a line, up to that line; empty outside of functions."""
    functions = [definition for definition in scope if definition.kind == "function"]
    if not functions:
        return ""
    return "\n".join(lines[functions[0].first - 1 : max(line, functions[0].first)])[-20_000:]


def go_receiver(lines: Sequence[str], scope: Sequence[Definition]) -> str:
    """Return the name that a method in Go gives to its receiver, or an empty text."""
    match = re.match(r"func\s*\(\s*(\w+)", lines[scope[0].first - 1]) if scope else None
    return match[1] if match else ""
