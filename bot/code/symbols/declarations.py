"""Declarations, read from the text of a function by pattern: types of variables, local names, receivers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

import re2

from bot.code.parsing.expressions import WORD, chain, closing
from bot.code.parsing.syntax import Definition

#: Containers, whose members are not those of their elements.
_CONTAINERS = re.compile(
    r"^[&*\s]*(?:\[|(?:\w+\.)*(?:list|set|dict|tuple|map|array|vec\w*|hash\w*|btree\w*|collection|sequence|iterable|"
    r"iterator|mutablemapping|mapping|queue|deque|stream|record|linked\w+)\b)",
    re.I,
)
_ARRAY = re.compile(r"[\w.]+(?:<[\w., ]*>)?\[\]")
_ELEMENTS = re.compile(
    r"(?:readonly )?(?:\w+\.)*(?:list|(?:frozen|readonly)?set|(?:mutable)?sequence|collection|deque|"
    r"(?:async)?(?:iterable|iterator|generator)|(?:readonly)?array)[\[<](.+)",
    re.I,
)
#: What gives a name its value in Python and in scripts, other than an assignment.
_WITH = r"(?m)^[ \t]*(?:async[ \t]+)?with[ \t]+(.+)[ \t]as[ \t]+%s[ \t]*[,:]"
_FOR = r"(?m)\bfor[ \t]+%s[ \t]+in[ \t]+([A-Za-z_][\w.]*(?:\([^()\n]*\))?)[ \t]*(?:[:\])}]|if\b|$)"
_FOR_OF = r"\bfor\s*(?:await\s*)?\((?:const|let|var)\s+%s\s+of\s+([\w.$]+(?:\([^()\n]*\))?)\s*\)"
#: Wrappers, through which members are reached.
_WRAPPERS = frozenset({
    "Optional", "Option", "Arc", "Rc", "Box", "RefCell", "Cell", "Mutex", "RwLock", "Final", "ClassVar", "typing",
    "t", "dyn", "mut", "const", "struct", "impl", "undefined", "null", "None", "Readonly", "Type", "type",
    "readonly", "Nullable", "lambda", "Promise", "Awaitable",
})  # fmt: skip
#: Calls in Rust and Java that give the value in a wrapper, or one of the same class, which need not define them.
OF_SAME_CLASS = frozenset({
    "unwrap()", "expect()", "clone()", "borrow()", "borrow_mut()", "lock()", "read()", "write()", "as_ref()",
    "as_mut()", "default()", "from()", "orElseThrow()",
})  # fmt: skip
#: Words that stand where a type could stand.
_NO_TYPES = frozenset({
    "return", "else", "new", "await", "const", "let", "var", "in", "throw", "case", "range", "final", "mut",
})  # fmt: skip
_NO_VALUES = frozenset({"None", "null", "nil", "undefined", "true", "false", "True", "False"})
#: Deepest type arguments in a list of bases.
_DEEPEST_ARGUMENTS = 4
#: Most characters of the expression that a variable is set to.
_LONGEST_VALUE = 2_000
#: Most expressions of one variable that are read.
_MAX_VALUES = 20


def type_names(declared: str) -> list[str]:
    """Return the names that a declared type may mean, likely ones first; of a container only its own."""
    text = declared.strip(" :?'\"")
    if _ARRAY.match(text):
        return []
    words = WORD.findall(re.split(r"[\[<]", text)[0] if _CONTAINERS.match(text) else text)
    return [word for word in words if word not in _WRAPPERS] or words


def declared_type(text: str, word: str, language: str) -> str:
    """Return the type that a variable or parameter is declared with; empty if none is."""
    if not text or not WORD.fullmatch(word):
        return ""
    name = re2.escape(word)
    if language in ("python", "script", "rust"):
        before = r"(?m)(?:^|[(,])[ \t]*\**" if language == "python" else r"\b"
        patterns = [rf"{before}{name}\??[ \t]*:[ \t]*([^:=,;)\n{{][^=,;)\n{{]{{0,79}})"]
    elif language == "go":
        patterns = [
            rf"\b{name}(?:,[ \t]*\w+)*[ \t]+(\*?[A-Za-z_][\w.]*)[ \t]*[,)\n=]",
            rf"\b{name}\s*(?:,\s*\w+\s*)?:?=[^\n]*\.\(\*?([\w.]+)\)",
        ]
    else:
        patterns = [rf"\b([A-Za-z_]\w*(?:<[^;(){{}}\n]{{0,60}}>)?)[\s*]+{name}\s*[;=,)\[:]"]
    code = _without_comments(text, language)
    matches = (match[1] for pattern in patterns for match in re2.finditer(pattern, code))
    return next((str(match) for match in matches if match not in _NO_TYPES), "")


def assigned_value(text: str, word: str, language: str) -> str:
    """Return the names and calls of the expression that a variable is set to: ``store.New()``; else an empty text.

    In Go, which has several results, the variable is the first on its side.
    """
    if not text or not WORD.fullmatch(word):
        return ""
    before = r"(?m)(?:^|[;{]|\b(?:if|for|switch|var)\b)[ \t]*" if language == "go" else r"(?:^|[^.\w$])"
    further = r"(?:,[ \t]*\w+)*" if language == "go" else r"(?::[^=\n(]{0,60})?"
    code = _without_comments(text, language)
    pattern = rf"{before}{re2.escape(word)}[ \t]*{further}[ \t]*:?=\s*"
    for match in islice(re2.finditer(pattern, code), _MAX_VALUES):
        value = chain(code[match.end() : match.end() + _LONGEST_VALUE])
        if value and value not in _NO_VALUES:
            return value
    return _bound_value(text, word, language)


def _bound_value(text: str, word: str, language: str) -> str:
    """Return the expression that ``with`` binds to a name, or the one in which ``for`` looks, with ``[]``."""
    name = re2.escape(word)
    if language not in ("python", "script"):
        return ""
    if language == "python" and (match := re2.search(_WITH % name, text)) is not None:
        return chain(re2.split(r"\s+as\s+\w+\s*,", match[1])[-1].strip())
    match = re2.search((_FOR if language == "python" else _FOR_OF) % name, text)
    value = chain(match[1]) if match is not None else ""
    return f"{value}[]" if value else ""


def element_type(declared: str) -> str:
    """Return the start of the type of what a container holds; empty if it is none, or holds several types."""
    text = declared.strip(" :?'\"")
    match = _ARRAY.match(text)
    if match is not None:
        return match[0].removesuffix("[]")
    match = _ELEMENTS.match(text)
    return match[1] if match is not None else ""


def _without_comments(text: str, language: str) -> str:
    return text if language == "python" else re2.sub(r"//[^\n]*", "", text)


def bound_type(head: str, word: str, language: str) -> str:
    """Return the type that a type parameter is bound to in the head of a function or class; empty if none is."""
    sign = {"rust": r"\s*:\s*", "go": r"\s+", "java": r"\s+extends\s+", "script": r"\s+extends\s+"}.get(language)
    if sign is None or not WORD.fullmatch(word):
        return ""
    match = re2.search(rf"[<\[,\s]{re2.escape(word)}{sign}((?:\w+(?:::|\.))*[A-Z]\w*)", head)
    return str(match[1]) if match else ""


def is_local(lines: Sequence[str], name: str, scope: Sequence[Definition], line: int) -> bool:
    """Return True if a name is a parameter or a variable of the functions around a line."""
    escaped = re2.escape(name)
    parameter = (
        rf"(?:[(,|]|^)\s*(?:mut |final |\*+|&)*{escaped}\s*(?:[,)=?|]|:[^:])|[\w>\]*&]\s+\**{escaped}\s*[,)=]"
    )
    for definition in scope:
        head = "\n".join(lines[definition.first - 1 : definition.body])
        is_macro = re.match(r"[\w:]+!", definition.call) is not None
        if definition.kind == "function" and not is_macro and re2.search(parameter, head.partition("{")[0]):
            return True
    variable = rf"\b{escaped}\s*(?::[^=\n(]{{0,60}})?(?::=|=[^=>])|\bfor\s+\(?(?:const |let |var )?{escaped}\b"
    return re2.search(variable, function_text(lines, scope, line)) is not None


def function_text(lines: Sequence[str], scope: Sequence[Definition], line: int) -> str:
    """Return the text of the outermost function around a line, up to that line; empty outside of functions."""
    functions = [definition for definition in scope if definition.kind == "function"]
    if not functions:
        return ""
    return "\n".join(lines[functions[0].first - 1 : max(line, functions[0].first)])[-20_000:]


def base_names(declared: str) -> list[list[str]]:
    """Return the names of the bases of a class, with their modules, without their type arguments.

    A metaclass, and other keywords in the list of bases, are none.
    """
    for _ in range(_DEEPEST_ARGUMENTS):
        declared = re.sub(r"<[^<>]*>|\[[^\[\]]*\]", "", declared)
    declared = re.sub(r"\b\w+\s*=\s*[\w.]+", "", declared)
    return [WORD.findall(name) for name in re.findall(r"[A-Za-z_$][\w$.:]*", declared)]


def go_signature(head: str, name: str) -> tuple[str, ...]:
    """Return the types of a method's parameters and of its results, without their packages."""
    head = re.sub(r"//[^\n]*", "", head[:_LONGEST_VALUE])
    head = head.replace("interface{}", "any").replace("struct{}", "empty")
    start = re.search(rf"\b{re.escape(name)}\s*\(", head)
    if start is None:
        return ()
    end = closing(head, start.end() - 1)
    results = head[end:].partition("{")[0].strip()
    results = results[1:-1] if results.startswith("(") else results
    return (*_go_types(head[start.end() : end - 1]), "->", *_go_types(results))


def _go_types(parameters: str) -> list[str]:
    """Return the types in a list of parameters or results, of which several may share one: ``a, b int``."""
    parts, depth = [""], 0
    for char in parameters:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    parts = [" ".join(part.split()) for part in parts if part.strip()]
    have_names = any(re.match(r"(?!(?:func|chan|map)\b)\w+ ", part) for part in parts)
    types: list[str] = []
    for part in reversed(parts):
        own = part.partition(" ")[2] if have_names else part
        types.append(re.sub(r"\b\w+\.", "", own) or "".join(types[-1:]))
    return types[::-1]


def go_receiver(lines: Sequence[str], scope: Sequence[Definition]) -> str:
    """Return the name that a method in Go gives to its receiver, or an empty text."""
    match = re.match(r"func\s*\(\s*(\w+)", lines[scope[0].first - 1]) if scope else None
    return match[1] if match else ""


def is_visible(definition: Definition, scope: Sequence[Definition], language: str) -> bool:
    """Return True if the plain name of a definition can be used in a scope of its file."""
    if not definition.within:
        return True
    if language == "c":
        return definition.kind != "value" or not definition.type  # an enumerator, not a field
    around = [outer for outer in scope if outer.qualified == definition.within]
    if not around:
        return False
    return around[-1].kind == "function" or language == "java"


def of_kind(definitions: Sequence[Definition], language: str, *, is_call: bool) -> Sequence[Definition]:
    """Return the methods or the fields of one name, which a class may have both in Java and Rust."""
    if language not in ("java", "rust"):
        return definitions
    return [definition for definition in definitions if (definition.kind == "value") != is_call] or definitions


def with_bodies(definitions: Sequence[Definition]) -> list[Definition]:
    """Return the definitions with a body if there are any: no overloads and prototypes. At most two.

    Of a field that several methods set, these are the first ones, as in the constructor.
    """
    if all(definition.kind == "value" for definition in definitions):
        return list(definitions)[:2]
    whole = [definition for definition in definitions if definition.last > definition.body]
    if len(whole) > 2 and all(definition.kind == "function" for definition in whole):
        whole = whole[-2:]
    return (whole or list(definitions))[-2:]
