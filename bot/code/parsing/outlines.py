"""The definitions and imports of a file. Only child processes call this module, by ``parse_apart``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from bot.code.parsing.definitions import Definition, Import, Kind, Outline
from bot.code.parsing.expressions import chain
from bot.code.parsing.grammars import Grammar, grammar_of
from bot.code.parsing.local_names import local_names, types_with_names
from bot.code.parsing.references import references
from bot.code.parsing.trees import LONGEST_NAME, is_import, nodes_of, parse, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: Most definitions and imports of one file.
MAX_DEFINITIONS, MAX_IMPORTS = 10_000, 1_000
#: Deepest nesting of definitions.
MAX_NESTING = 50
#: Fields and nodes that hold the bases of a class.
_BASES = ("superclasses", "superclass", "interfaces", "trait", "bounds")
_HERITAGE = frozenset({"class_heritage", "extends_interfaces", "extends_type_clause"})
#: Bytes of an import and of a type, of the expression that gives a value, and characters of what is kept of it.
_IMPORT, _TYPE, _VALUE, _CHAIN = 2_000, 120, 500, 120
_PACKAGES = frozenset({"package_clause", "package_declaration"})

#: Parameters of a constructor in TypeScript, and what makes them fields.
_PARAMETERS = frozenset({"required_parameter", "optional_parameter"})
_FIELD_MODIFIERS = frozenset({"accessibility_modifier", "readonly", "override_modifier"})
#: The names of values; what scripts assign that outlives a call; and what a function is assigned to that is not
#: called by the function's own name.
_PLAIN = re.compile(r"(?:self\.)?[\w$#]+")
_ASSIGNED = re.compile(r"(?:this|exports|module\.exports|[\w$]+\.prototype)\.[\w$#]+")
_MEMBER = re.compile(r"[\w$.]+\.(?!exports$|default$)[\w$#]+")


@dataclass(frozen=True, slots=True)
class _Open:
    """A node around the current one, and the names of the definitions up to it."""

    node: Node
    names: tuple[str, ...]
    is_function: bool = False


def outline(text: str, path: str, names: frozenset[str], lines: frozenset[int]) -> Outline:
    """Return the outline of a file with the references to ``names`` and on ``lines``."""
    grammar = grammar_of(path)
    tree = parse(text, path)
    if grammar is None or tree is None:
        return Outline()
    data = text.encode("utf-8", "surrogatepass")
    definitions: list[Definition] = []
    imports: list[Import] = []
    package = ""
    open_: list[_Open] = []
    own_types = _types(grammar)
    nodes = nodes_of(tree, grammar, own_types | types_with_names(grammar))
    for node in nodes:
        if node.type not in own_types:
            continue
        while open_ and open_[-1].node.end_byte <= node.start_byte:
            open_.pop()
        if is_import(node, grammar, data):
            if node.type in _PACKAGES:
                package = text_of(node, data, _IMPORT).strip()
            elif len(imports) < MAX_IMPORTS:
                imports.append(Import(node.start_point.row + 1, text_of(node, data, _IMPORT).rstrip()))
            continue
        outer = open_[-1].names if open_ else ()
        definition = _definition(node, open_, grammar, data)
        if definition is not None and len(outer) < MAX_NESTING:
            if len(definitions) == MAX_DEFINITIONS:
                break
            definitions.append(definition)
            own = (*definition.within.split("."), definition.name)
            outer = tuple(filter(None, own)) if definition.kind != "value" else outer
        is_function = node.type in grammar.functions or bool(open_ and open_[-1].is_function)
        open_.append(_Open(node, outer, is_function))
    definitions.sort(key=lambda definition: (definition.first, -definition.last))
    return Outline(
        tuple(definitions),
        tuple(imports),
        local_names(nodes, grammar, data),
        package,
        tuple(references(tree, data, grammar, names, lines)),
    )


def _definition(node: Node, around: Sequence[_Open], grammar: Grammar, data: bytes) -> Definition | None:
    """Return the definition that a node makes, or None."""
    kind = _kind(node, grammar)
    if kind is None:
        return None
    name = _name(node, around, grammar, data)
    if kind == "value" and not (name and _is_lasting(node, around, grammar, name)):
        return None
    within = ".".join(outer for outer in (around[-1].names if around else ()) if outer)
    if kind == "function" and grammar.name == "go" and (receiver := node.child_by_field_name("receiver")):
        within = (re.findall(r"[A-Za-z_]\w*", text_of(receiver, data, _TYPE).partition("[")[0]) or [""])[-1]
    if name.startswith(("self.", "this.")):  # in a method, or in a function that is called by ``new``
        name, within = name[5:], within.rpartition(".")[0] or within
    elif node.type in _PARAMETERS:
        within = within.rpartition(".")[0]
    elif "." in name:  # ``Owner.prototype.name = function``
        owner, *_, name = name.split(".")
        within = within if owner in ("exports", "module") else owner
    return Definition(
        kind,
        name,
        first=_first(node, around, grammar),
        last=_last(node),
        body=_head_end(node, grammar),
        within=within,
        call="" if name or kind != "function" else _call(node, around, grammar, data),
        type=_type(node, kind, data),
        value=_value(node, data) if kind == "value" else "",
    )


def _kind(node: Node, grammar: Grammar) -> Kind | None:
    """Return the kind of definition that a node can be; None for a class that is only declared or named."""
    if node.type in grammar.functions:
        return "function"
    if node.type in grammar.classes:
        needs_body = node.type == "mod_item" or grammar.name == "c"
        return None if needs_body and node.child_by_field_name("body") is None else "class"
    return "value" if node.type in grammar.values else None


def _head_end(node: Node, grammar: Grammar) -> int:
    """Return the line on which the body begins; in Python that of the colon before it."""
    body = node.child_by_field_name("body") or node
    colon = next((child for child in node.children if child.type == ":"), body)
    return (colon if grammar.name == "python" else body).start_point.row + 1


def _last(node: Node) -> int:
    """Return the last line; a line break that ends a preprocessor's line is part of its node."""
    end = node.end_point
    return end.row if not end.column and end.row > node.start_point.row else end.row + 1


def _is_lasting(node: Node, around: Sequence[_Open], grammar: Grammar, name: str) -> bool:
    """Return True if a value outlives a call: it is not a local variable, a nested key or a prototype."""
    is_local = bool(around and around[-1].is_function)
    if grammar.name == "python":
        return not is_local if not name.startswith("self.") else bool(around and len(around[-1].names) > 1)
    if grammar.name == "c" and node.type == "declaration":
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        return not is_local and declarator is None
    if any(child.type in grammar.functions or child.type in grammar.classes for child in node.named_children):
        return False
    if node.type in _PARAMETERS:
        return any(child.type in _FIELD_MODIFIERS for child in node.children)
    return not is_local if not name.startswith("this.") else bool(around and any(around[-1].names))


def _type(node: Node, kind: Kind, data: bytes) -> str:
    """Return the start of a declared type or of a list of bases, in one line."""
    if kind == "class":
        bases = [node.child_by_field_name(field) for field in _BASES]
        bases += [child for child in node.named_children if child.type in _HERITAGE]
        bases += _embedded(node)
        parts = [text_of(base, data, _TYPE) for base in bases if base is not None]
        return " ".join(" ".join(parts).split())[:_TYPE]
    for field in ("return_type", "result", "type"):
        declared = node.child_by_field_name(field)
        if declared is not None:
            return " ".join(text_of(declared, data, _TYPE).split())
    return ""


def _embedded(node: Node) -> list[Node]:
    """Return the types that a struct or an interface of Go embeds."""
    inner = node.child_by_field_name("type")
    if inner is None or inner.type not in ("struct_type", "interface_type"):
        return []
    members = inner.named_children if inner.type == "interface_type" else inner.named_children[0].named_children
    types = [
        member.child_by_field_name("type") if member.type == "field_declaration" else member
        for member in members[:MAX_DEFINITIONS]
        if member.type == "type_elem"
        or (member.type == "field_declaration" and not member.child_by_field_name("name"))
    ]
    return [type_ for type_ in types if type_ is not None]


def _value(node: Node, data: bytes) -> str:
    """Return the names and calls of the expression that gives a value."""
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if value is None or value.end_byte - value.start_byte > _VALUE:
        return ""
    text = chain(text_of(value, data, _VALUE))
    return text if len(text) <= _CHAIN else ""


@cache
def _types(grammar: Grammar) -> frozenset[str]:
    types = grammar.functions | grammar.classes | grammar.calls | grammar.values | grammar.imports
    return types.union(grammar.heads, grammar.owners)


def _name(node: Node, around: Sequence[_Open], grammar: Grammar, data: bytes) -> str:
    """Return the name of a definition; for a function value, that of its variable or key."""
    own = _name_node(node, grammar)
    owner = around[-1].node if around else None
    if owner is not None and owner.type in grammar.owners and node.type not in grammar.values:
        value, name = grammar.owners[owner.type]
        target = owner.child_by_field_name(name) if owner.child_by_field_name(value) == node else None
        if target is not None and (own is None or _MEMBER.fullmatch(text_of(target, data, LONGEST_NAME))):
            own = target
    if own is None:
        return ""
    text = text_of(own, data, LONGEST_NAME).split("<")[0].split("[")[0]
    form = _ASSIGNED if node.type == "assignment_expression" else _PLAIN
    if node.type in grammar.values and not form.fullmatch(text):
        return ""
    return text.strip("'\"")


def _name_node(node: Node, grammar: Grammar) -> Node | None:
    """Return the node with the name of a definition, if it has a name of its own."""
    for field in ("name", "property", "key", "left", "pattern"):
        if (own := node.child_by_field_name(field)) is not None:
            return own
    if node.type in ("impl_item", "type_item"):
        return node.child_by_field_name("type")
    if node.type == "field_declaration" and grammar.name == "go":  # an embedded type
        own = node.child_by_field_name("type")
        while own is not None and own.child_count:
            own = own.child_by_field_name("name") or own.child_by_field_name("type")
        return own
    inner = node.child_by_field_name("declarator")
    while inner is not None:  # C: pointers, arrays and functions around the name
        if (own := inner.child_by_field_name("name") or (None if inner.child_count else inner)) is not None:
            return own
        is_pointer = inner.type == "parenthesized_declarator"  # to a function
        inner = inner.named_child(0) if is_pointer else inner.child_by_field_name("declarator")
    return None


def _call(node: Node, around: Sequence[_Open], grammar: Grammar, data: bytes) -> str:
    """Return the start of the call that takes the function, or of the macro, in one line."""
    if node.type == "macro_invocation":
        call: Node | None = node
    else:
        call = around[-1].node if around and around[-1].node.type in grammar.calls else None
        arguments = call.child_by_field_name("arguments") if call is not None else None
        if arguments is None or not arguments.start_byte <= node.start_byte < arguments.end_byte:
            return ""
    return "" if call is None else text_of(call, data, LONGEST_NAME).split("\n")[0].rstrip()[:60]


def _first(node: Node, around: Sequence[_Open], grammar: Grammar) -> int:
    """Return the first line, including decorators and ``const`` or ``export``."""
    for open_node in reversed(around):
        outer = open_node.node
        inside = grammar.heads.get(outer.type) or grammar.owners.get(outer.type, ("",))[0]
        if outer.type in ("pair", "assignment_expression") or not inside:
            break
        inner = outer.child_by_field_name(inside)
        # ``export const f = ...``: a declaration lies between the two nodes.
        if inner is None or not inner.start_byte <= node.start_byte <= node.end_byte <= inner.end_byte:
            break
        if inner != node and inner.type not in ("lexical_declaration", "variable_declaration"):
            break
        node = outer
    return node.start_point.row + 1
