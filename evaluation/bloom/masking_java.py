"""New names for methods of a Java code base: what resolves to them, and nothing else.

Receivers are resolved by the types that variables are declared with; a receiver whose type cannot be told (a
chain of calls, ``var``, a lambda's parameter) is taken for an own one, since the compiler says where that is
wrong. What code outside of the repository calls is refused: methods of supertypes that the repository does not
define, as far as the JDK at hand has them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from bot.reproduction.java.syntax import TYPES, Node, field_text, parse, simple, text_of, walk
from evaluation.bloom.code_base import CannotMask

#: What the language, its run-time or serialisation calls by name.
_KNOWN = frozenset(
    {"main", "equals", "hashCode", "toString", "clone", "finalize", "getClass", "notify", "notifyAll", "wait",
     "values", "valueOf", "ordinal", "readObject", "readObjectNoData", "readResolve", "writeObject",
     "writeReplace"}
)  # fmt: skip
_REFLECTION = frozenset({"getMethod", "getDeclaredMethod"})
_MARKED = frozenset({"MethodSource"})
_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)\\u+([0-9a-fA-F]{4})")


@dataclass(frozen=True)
class Type:
    """One class, interface, enum or record."""

    name: str
    path: str
    supertypes: tuple[str, ...]
    methods: frozenset[str]


@dataclass(frozen=True)
class JavaCode:
    """Java sources by path, and what can be told from all of them together."""

    sources: Mapping[str, str]

    @cached_property
    def trees(self) -> dict[str, Node]:
        return {path: parse(unescaped(text)) for path, text in self.sources.items()}

    @cached_property
    def types(self) -> dict[str, list[Type]]:
        """Own types by plain name."""
        types: dict[str, list[Type]] = {}
        for path, tree in self.trees.items():
            for node in walk(tree):
                if node.type in TYPES:
                    own_type = Type(field_text(node), path, tuple(_supertypes(node)), frozenset(_methods(node)))
                    types.setdefault(own_type.name, []).append(own_type)
        return types

    @cached_property
    def library(self) -> dict[str, frozenset[str]]:
        """The methods of the JDK's types that own types inherit from, by full name; one JVM is asked about all."""
        own_types = (own_type for group in self.types.values() for own_type in group)
        return _library(
            frozenset(
                full
                for own_type in own_types
                for above in own_type.supertypes
                if above not in self.types
                for full in _full_names(above, self.trees[own_type.path])
            )
        )

    def family(self, method: str) -> dict[str, Type]:
        """Own types that declare a method, their subtypes, and the own supertypes of all of these, by name."""
        family = {
            member.name: member for group in self.types.values() for member in group if method in member.methods
        }
        while True:
            more = {
                member.name: member
                for group in self.types.values()
                for member in group
                if member.name not in family and (set(member.supertypes) & family.keys())
            }
            if not more:
                return family
            family |= more


def _supertypes(node: Node) -> Iterator[str]:
    for child in node.children:
        if child.type in ("superclass", "super_interfaces", "extends_interfaces"):
            lists = [type_node for type_node in child.children if type_node.type == "type_list"] or [child]
            yield from (simple(type_node) for group in lists for type_node in group.children if type_node.is_named)


def _methods(node: Node) -> Iterator[str]:
    body = node.child_by_field_name("body")
    for child in body.children if body else ():
        inner = child.children if child.type == "enum_body_declarations" else (child,)
        yield from (field_text(member) for member in inner if member.type == "method_declaration")


def check_java(name: str, code: JavaCode) -> None:
    """Raises CannotMask if ``name`` is not the repository's own to change."""
    if name in _KNOWN:
        raise CannotMask(f"{name} is called by Java itself")
    for path, tree in code.trees.items():
        for node in walk(tree):
            if node.type == "annotation_type_element_declaration" and field_text(node) == name:
                raise CannotMask(f"{name} is an element of an annotation in {path}, too")
            if node.type == "record_declaration":
                parameters = node.child_by_field_name("parameters")
                if parameters and name in map(field_text, parameters.children):
                    raise CannotMask(f"{name} is a component of a record in {path}, too")
            if node.type == "method_invocation" and field_text(node) in _REFLECTION:
                _check_built(name, node, path)
    for declaring_type in code.family(name).values():
        _check_supertypes(name, declaring_type, code)


def _check_built(name: str, node: Node, path: str) -> None:
    """A method that is looked up under a name which is put together may be any whose name has its parts."""
    arguments = node.child_by_field_name("arguments")
    first = next((child for child in arguments.children if child.is_named), None) if arguments else None
    if first is None or first.type != "binary_expression":
        return
    parts = [text_of(fragment) for fragment in walk(first) if fragment.type == "string_fragment"]
    if any(part in name for part in parts):
        raise CannotMask(f"{path} builds names like {text_of(first)}, and may find {name} by one")


def _check_supertypes(name: str, own: Type, code: JavaCode) -> None:
    for above in own.supertypes:
        if above in code.types:
            continue
        full_names = _full_names(above, code.trees[own.path])
        methods = next((code.library[full] for full in full_names if full in code.library), None)
        if methods is None:
            raise CannotMask(f"{own.name} in {own.path} inherits from {above}, of which nothing is known here")
        if name in methods:
            raise CannotMask(f"{own.name} in {own.path} inherits from {above}, which calls {name} itself")


def _full_names(plain: str, tree: Node) -> Iterator[str]:
    imports = [
        text_of(child).removeprefix("import").strip(" ;\n")
        for child in tree.children
        if child.type == "import_declaration"
    ]
    yield from (imported_name for imported_name in imports if imported_name.rpartition(".")[2] == plain)
    yield f"java.lang.{plain}"
    yield from (imported_name[:-1] + plain for imported_name in imports if imported_name.endswith(".*"))


@lru_cache(maxsize=8)
def _library(names: frozenset[str]) -> dict[str, frozenset[str]]:
    """The methods of those names that are types of the JDK, inherited ones too; empty without a JDK."""
    program = shutil.which("java")
    if program is None:
        return {}
    source = Path(__file__).with_name("LibraryMethods.java")
    answer = subprocess.run(  # noqa: S603
        [program, str(source)], input="\n".join(names), capture_output=True, text=True, check=False, timeout=60
    )
    lines = (line.split() for line in answer.stdout.splitlines())
    return {name: frozenset(methods) for name, *methods in lines}


def mask_java(path: str, names: Mapping[str, str], code: JavaCode) -> str:
    """A file of ``code`` with declarations, invocations and references of the named methods renamed.

    Fields, types, annotations and other libraries' methods of the same name stay.
    """
    text = unescaped(code.sources[path])
    relevant = {name: new for name, new in names.items() if name in text}
    if not relevant:
        return code.sources[path]
    data = text.encode("utf-8", "surrogatepass")
    families = {name: frozenset(code.family(name)) for name in relevant}
    for node in reversed(list(_renamed(code.trees[path], families, code))):
        data = data[: node.start_byte] + relevant[text_of(node)].encode() + data[node.end_byte :]
    return data.decode("utf-8", "surrogatepass")


def _renamed(tree: Node, families: Mapping[str, frozenset[str]], code: JavaCode) -> Iterator[Node]:
    """The words to change, in the order of the text."""
    for node in walk(tree):
        word = node.child_by_field_name("name")
        if node.type == "method_declaration" and text_of(word) in families:
            assert word is not None
            yield word
        elif node.type == "method_invocation" and text_of(word) in families:
            assert word is not None
            if _is_own(node.child_by_field_name("object"), text_of(word), node, families, code):
                yield word
        elif node.type == "method_reference" and text_of(node.children[-1]) in families:
            if _is_own(node.children[0], text_of(node.children[-1]), node, families, code):
                yield node.children[-1]
        elif node.type == "string_fragment" and text_of(node) in families and _names_a_method(node):
            yield node


def _names_a_method(fragment: Node) -> bool:
    """A string that reflection, or an annotation of JUnit, takes for the name of a method."""
    above = fragment.parent.parent if fragment.parent else None
    while above is not None and above.type in (
        "argument_list",
        "annotation_argument_list",
        "element_value_array_initializer",
    ):
        above = above.parent
    return above is not None and (
        (above.type == "method_invocation" and field_text(above) in _REFLECTION)
        or (above.type == "annotation" and field_text(above).rpartition(".")[2] in _MARKED)
    )


def _is_own(
    receiver: Node | None, name: str, place: Node, families: Mapping[str, frozenset[str]], code: JavaCode
) -> bool:
    """Return True if a method of ``receiver`` (None: of the code around) is one that the repository declares."""
    if receiver is None:
        return _around(name, place, families[name])
    if receiver.type in ("this", "super"):
        return True
    if receiver.type == "string_literal":
        return False
    kind = _type_of(receiver, place)
    if kind is None or kind in families[name]:
        return True
    # A variable of an own type that stands above the family may hold a member.
    members = (own_type for member in families[name] for own_type in code.types.get(member, ()))
    return kind in code.types and any(kind in own_type.supertypes for own_type in members)


def _around(name: str, place: Node, family: frozenset[str]) -> bool:
    """A call without receiver is a statically imported method where no type around it is of the family."""
    above: Node | None = place
    while above is not None:
        if above.type in TYPES and field_text(above) in family:
            return True
        root, above = above, above.parent
    for child in root.children:
        text = text_of(child)
        if child.type == "import_declaration" and "static" in text.split():
            owner, _, last = text.rstrip("; \n").rpartition(".")
            if last == name:
                return owner.rpartition(".")[2] in family
    return True


def _type_of(receiver: Node, place: Node) -> str | None:
    """The plain name of a receiver's type; None if it cannot be told."""
    if receiver.type == "parenthesized_expression":
        return _type_of(receiver.children[1], place)
    if receiver.type in ("object_creation_expression", "cast_expression"):
        return simple(receiver.child_by_field_name("type"))
    if receiver.type != "identifier":
        return (
            text_of(receiver).rpartition(".")[2] if re.fullmatch(r"(\w+\.)+[A-Z]\w*", text_of(receiver)) else None
        )
    above, word = place.parent, text_of(receiver)
    while above is not None:
        if above.type in ("method_declaration", "constructor_declaration", "lambda_expression", *TYPES):
            declared = _declared(word, above)
            if declared is not None:
                return None if declared in ("var", "") else declared
        above = above.parent
    return word if word[:1].isupper() else None


def _declared(word: str, scope: Node) -> str | None:
    """The type that a variable, parameter or field is declared with in a scope; empty for an untyped one."""
    for node in walk(scope):
        if node.type in ("formal_parameter", "enhanced_for_statement", "resource") and field_text(node) == word:
            return simple(node.child_by_field_name("type"))
        if node.type == "catch_formal_parameter" and field_text(node) == word:
            return ""
        if node.type in ("local_variable_declaration", "field_declaration") and any(
            field_text(declarator) == word for declarator in node.children_by_field_name("declarator")
        ):
            return simple(node.child_by_field_name("type"))
        if node.type == "lambda_expression" and word in re.findall(r"\w+", field_text(node, "parameters")):
            return ""
    return None


def unescaped(text: str) -> str:
    """Source with the letters that are written as ``\\u0041`` written plainly: the same program (JLS 3.3)."""

    def plain(match: re.Match[str]) -> str:
        letter = chr(int(match[2], 16))
        return match[1] + letter if letter.isascii() and (letter.isalpha() or letter in "_$") else match[0]

    return _ESCAPED.sub(plain, text) if "\\u" in text else text
