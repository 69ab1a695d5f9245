"""Types as text, and which definitions of a name count."""

from __future__ import annotations

import re
from collections.abc import Sequence

import re2

from bot.code.parsing.definitions import Definition
from bot.code.parsing.expressions import WORD
from bot.code.symbols.language_rules import LanguageRules

#: Containers, whose members are not those of their elements.
_CONTAINERS = re.compile(
    r"^[&*\s]*(?:\[|(?:\w+\.)*(?:list|set|dict|tuple|map|array|vec\w*|hash\w*|btree\w*|collection|sequence|iterable|"
    r"iterator|mutablemapping|mapping|queue|deque|stream|record|linked\w+)\b)",
    re.I,
)
_ARRAY = re.compile(r"[\w.]+(?:<[\w., ]*>)?\[\]")
#: Slices and maps of Go.
_SLICE = re.compile(r"(?:\[\d*\]|map\[[^\]]*\])(?=[*\w\[])")
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
#: Deepest type arguments in a list of bases.
_DEEPEST_ARGUMENTS = 4


def type_names(declared: str) -> list[str]:
    """Return the names that a declared type may mean, likely ones first; of a container only its own."""
    text = declared.strip(" :?'\"")
    if _ARRAY.match(text):
        return []
    words = WORD.findall(re.split(r"[\[<]", text)[0] if _CONTAINERS.match(text) else text)
    return [word for word in words if word not in _WRAPPERS] or words


def element_type(declared: str) -> str:
    """Return the start of the type of what a container holds; empty if it is none, or holds several types."""
    text = declared.strip(" :?'\"")
    match = _ARRAY.match(text)
    if match is not None:
        return match[0].removesuffix("[]")
    match = _SLICE.match(text)
    if match is not None:
        return text[match.end() :]
    match = _ELEMENTS.match(text)
    return match[1] if match is not None else ""


def bound_type(head: str, word: str, language: LanguageRules) -> str:
    """Return the type that a type parameter is bound to in the head of a function or class; empty if none is."""
    if not language.bounds or not WORD.fullmatch(word):
        return ""
    match = re2.search(rf"[<\[,\s]{re2.escape(word)}{language.bounds}((?:\w+(?:::|\.))*[A-Z]\w*)", head)
    return str(match[1]) if match else ""


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
