"""Declarations, read from the text of a function by pattern: types of variables and local names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

import re2

from bot.code.parsing.definitions import Definition
from bot.code.parsing.expressions import WORD, chain
from bot.code.symbols.language_rules import LanguageRules

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
#: Wrappers, through which members are reached.
_WRAPPERS = frozenset({
    "Optional", "Option", "Arc", "Rc", "Box", "RefCell", "Cell", "Mutex", "RwLock", "Final", "ClassVar", "typing",
    "t", "dyn", "mut", "const", "struct", "impl", "undefined", "null", "None", "Readonly", "Type", "type",
    "readonly", "Nullable", "lambda", "Promise", "Awaitable",
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
#: Where a function of Python begins, and where the parameters of one have ended.
_BEHIND_DECORATORS = re2.compile(r"(?m)^[ \t]*(?:async[ \t]+)?def\b")
_AFTER_PARAMETERS = re2.compile(r"\{|=>\s*[\w$.]+\(|\)\s*(?:->[^:\n]*)?:\s")
#: Most expressions of one variable that are read.
_MAX_VALUES = 20


def type_names(declared: str) -> list[str]:
    """Return the names that a declared type may mean, likely ones first; of a container only its own."""
    text = declared.strip(" :?'\"")
    if _ARRAY.match(text):
        return []
    words = WORD.findall(re.split(r"[\[<]", text)[0] if _CONTAINERS.match(text) else text)
    return [word for word in words if word not in _WRAPPERS] or words


def declared_type(text: str, word: str, language: LanguageRules) -> str:
    """Return the type that a variable or parameter is declared with; empty if none is."""
    if not text or not WORD.fullmatch(word):
        return ""
    code = _without_comments(text, language)
    matches = (match[1] for pattern in language.declares for match in re2.finditer(_of(pattern, word), code))
    return next((str(match) for match in matches if match not in _NO_TYPES), "")


def assigned_value(text: str, word: str, language: LanguageRules) -> str:
    """Return the names and calls of the expression that a variable is set to: ``store.New()``; else an empty text.

    In Go, which has several results, the variable is the first on its side.
    """
    if not text or not WORD.fullmatch(word):
        return ""
    code = _without_comments(text, language)
    for match in islice(re2.finditer(_of(language.assigns, word), code), _MAX_VALUES):
        value = chain(code[match.end() : match.end() + _LONGEST_VALUE])
        if value and value not in _NO_VALUES:
            return value
    return _bound_value(text, word, language)


def _bound_value(text: str, word: str, language: LanguageRules) -> str:
    """Return the expression that ``with`` binds to a name, or the one in which ``for`` looks, with ``[]``."""
    if language.contexts and (match := re2.search(_of(language.contexts, word), text)) is not None:
        return chain(re2.split(r"\s+as\s+\w+\s*,", match[1])[-1].strip())
    match = re2.search(_of(language.loops, word), text) if language.loops else None
    value = chain(match[1]) if match is not None else ""
    return f"{value}[]" if value else ""


def _of(pattern: str, word: str) -> str:
    """Return a language's pattern for one name."""
    return pattern.replace("NAME", re2.escape(word))


def element_type(declared: str) -> str:
    """Return the start of the type of what a container holds; empty if it is none, or holds several types."""
    text = declared.strip(" :?'\"")
    match = _ARRAY.match(text)
    if match is not None:
        return match[0].removesuffix("[]")
    match = _ELEMENTS.match(text)
    return match[1] if match is not None else ""


def _without_comments(text: str, language: LanguageRules) -> str:
    return re.sub(language.comments, "", text) if language.comments else text


def bound_type(head: str, word: str, language: LanguageRules) -> str:
    """Return the type that a type parameter is bound to in the head of a function or class; empty if none is."""
    if not language.bounds or not WORD.fullmatch(word):
        return ""
    match = re2.search(rf"[<\[,\s]{re2.escape(word)}{language.bounds}((?:\w+(?:::|\.))*[A-Z]\w*)", head)
    return str(match[1]) if match else ""


def is_local(
    lines: Sequence[str],
    name: str,
    scope: Sequence[Definition],
    line: int,
    language: LanguageRules,
    *,
    is_call: bool,
) -> bool:
    """Return True if a name is a parameter of the functions around a line, or a variable that is set up to it."""
    if is_call and language.names_members:  # methods have names of their own
        return False
    escaped = re2.escape(name)
    parameter = (
        rf"(?:[(,]|^)\s*(?:mut |final |\*+|&)*{escaped}\s*(?:[,)=?]|:[^:])|[\w>\]*&]\s+\**{escaped}\s*[,)=]"
    )
    for definition in scope:
        head = "\n".join(lines[definition.first - 1 : definition.body])
        is_macro = re.match(r"[\w:]+!", definition.call) is not None
        if definition.kind == "function" and not is_macro and re2.search(parameter, _parameters(head)):
            return True
    text = function_text(lines, scope, line)
    if language.outer and re2.search(_of(language.outer, name), text):
        return False
    if not language.variable:
        return bool(declared_type(text, name, language))
    return re2.search(_of(language.variable, name), text) is not None


def _parameters(head: str) -> str:
    """Return the head of a function up to the end of its parameters, without decorators and type arguments."""
    start = _BEHIND_DECORATORS.search(head)
    head = head if start is None else head[start.start() :]
    end = _AFTER_PARAMETERS.search(head)
    return re.sub(r"<[^<>]*>|\[[^\[\]]*\]", "", head if end is None else head[: end.start() + 1])


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


def is_visible(definition: Definition, scope: Sequence[Definition], language: LanguageRules) -> bool:
    """Return True if the plain name of a definition can be used in a scope of its file."""
    if not definition.within:
        return True
    if language.is_flat:
        return definition.kind != "value" or not definition.type  # an enumerator, not a field
    around = [outer for outer in scope if outer.qualified == definition.within]
    if not around:
        return False
    return around[-1].kind == "function" or language.names_members


def of_kind(definitions: Sequence[Definition], language: LanguageRules, *, is_call: bool) -> Sequence[Definition]:
    """Return the methods or the fields of one name, if a class may have both."""
    if not language.separates_fields:
        return definitions
    return [definition for definition in definitions if (definition.kind == "value") != is_call] or definitions


def with_bodies(definitions: Sequence[Definition]) -> list[Definition]:
    """Return the definitions with a body if there are any: no overloads and prototypes. At most two.

    Of a field that several methods set, these are the first ones, as in the constructor; of a type in Rust too,
    whose ``impl`` blocks follow.
    """
    if {definition.kind for definition in definitions} in ({"value"}, {"class"}):
        return list(definitions)[:2]
    whole = [definition for definition in definitions if definition.last > definition.body]
    return (whole or list(definitions))[-2:]
