"""The parameters and local variables of a file. Only child processes call this module, by ``parse_apart``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from bot.code.parsing.definitions import Local
from bot.code.parsing.expressions import chain
from bot.code.parsing.grammars import Grammar
from bot.code.parsing.trees import LONGEST_NAME, is_import, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: Most local names of a file, and names that one node declares.
MAX_LOCALS, MAX_DECLARED = 20_000, 100
#: Bytes of a type, and of the expression that gives a value.
_TYPE, _VALUE = 120, 2_000
_NAMES = frozenset({"identifier", "shorthand_property_identifier_pattern", "shorthand_field_identifier"})
#: Fields of a pattern, and nodes in it, whose names it does not declare.
_USED_FIELDS = frozenset({"type", "right", "default", "key", "size", "parameters", "condition"})
_USED_NODES = frozenset({"attribute", "subscript", "call", "member_expression", "subscript_expression",
                         "selector_expression", "index_expression", "unary_expression", "field_expression",
                         "call_expression", "scoped_identifier", "marker_annotation", "annotation",
                         "class_pattern"})  # fmt: skip
#: Patterns that take a value apart; a name in one has neither its type nor its value.
_TAKES_APART = re.compile(r"(?<!mut_)(?<!ref_)(?:pattern|list|tuple)$")
#: Declarations of scripts, which hold several variables; that with ``var`` holds in the whole function.
_DECLARATIONS = frozenset({"lexical_declaration", "variable_declaration"})
#: Nodes that declare a name for the whole function.
_HOISTED = frozenset({"variable_declaration", "named_expression"})
_OUTER_NAMES = frozenset({"global_statement", "nonlocal_statement"})
_NO_VALUES = frozenset({"None", "null", "nil", "undefined", "true", "false", "True", "False"})
#: Types that say nothing.
_INFERRED = frozenset({"var", "auto", "_"})


@dataclass(frozen=True, slots=True)
class _Scope:
    """A node in which names hold: their places in the result, and names that the function has from outside."""

    node: Node
    places: dict[str, int] = field(default_factory=dict)
    outer_names: set[str] = field(default_factory=set)


def local_names(nodes: Iterable[Node], grammar: Grammar, data: bytes) -> tuple[Local, ...]:
    """Return the parameters and variables of the functions and blocks of a file, in order.

    Of ``nodes``, which are in the order of the file, those of ``types_with_names`` count.
    """
    results: list[Local] = []
    scopes: list[_Scope] = []
    scope_types = _scope_types(grammar)
    inner_end = 0
    for node in nodes:
        while scopes and scopes[-1].node.end_byte <= node.start_byte:
            scopes.pop()
        if node.type in scope_types:
            scopes.append(_Scope(node))
        if not scopes or scopes[-1].node.type in grammar.classes:
            continue
        if node.type in _OUTER_NAMES:
            scopes[-1].outer_names.update(text_of(child, data, LONGEST_NAME) for child in node.named_children)
        elif node.type in grammar.updates:
            _update(node, scopes, results, data)
        elif node.type in grammar.binds and node.start_byte >= inner_end:
            if grammar.name == "c":  # the parameters of a function pointer are no names
                inner_end = node.end_byte
            scope = _scope_of(node, scopes, grammar)
            if scope is None:
                continue
            for local in _declared(node, scope.node, grammar, data):
                if local.name not in scope.outer_names:
                    scope.places[local.name] = len(results)
                    results.append(local)
        if len(results) > MAX_LOCALS:
            break
    return tuple(results[:MAX_LOCALS])


def _scope_of(node: Node, scopes: Sequence[_Scope], grammar: Grammar) -> _Scope | None:
    """Return the scope in which a node declares names; None if it is the file."""
    loop_word = node.child_by_field_name("kind") if node.type == "for_in_statement" else None
    if node.type not in _HOISTED and (loop_word is None or loop_word.type != "var"):
        return scopes[-1]
    return next((scope for scope in reversed(scopes) if scope.node.type in grammar.functions), None)


@cache
def types_with_names(grammar: Grammar) -> frozenset[str]:
    """Return the types of nodes that declare local names, or in which these hold."""
    outer_names = _OUTER_NAMES if grammar.name == "python" else frozenset[str]()
    return _scope_types(grammar).union(grammar.binds, grammar.updates, outer_names)


@cache
def _scope_types(grammar: Grammar) -> frozenset[str]:
    return grammar.functions | grammar.classes | grammar.scopes


def _update(node: Node, scopes: Sequence[_Scope], results: list[Local], data: bytes) -> None:
    """Give a variable that was declared without a value the one that it is set to."""
    for target, value in _targets(node, "left", "right"):
        name = text_of(target, data, LONGEST_NAME)
        place = next((scope.places[name] for scope in reversed(scopes) if name in scope.places), None)
        if place is not None and value is not None and not (results[place].type or results[place].value):
            results[place] = replace(results[place], value=_value(value, data))


def _declared(node: Node, scope: Node, grammar: Grammar, data: bytes) -> Iterator[Local]:
    """Yield the names that a node declares in a scope."""
    line, first, last = node.start_point.row + 1, scope.start_point.row + 1, scope.end_point.row + 1
    if node.type == "as_pattern" and node.parent is not None and node.parent.type == "except_clause":
        first, last = line, node.parent.end_point.row + 1
    if scope.type in grammar.blocks and first < last:
        # A value may have the name of its variable: ``let load = load()``.
        rest = data[node.end_byte : node.end_byte + 200].partition(b"\n")[0].strip(b" \t\r;,)}")
        first = node.end_point.row + (1 if rest else 2)
    lines = line, first, last
    names_field, value_field = grammar.binds[node.type]
    if node.type in _DECLARATIONS:
        for declarator in node.named_children[:MAX_DECLARED]:
            if declarator.type == "variable_declarator" and not is_import(declarator, grammar, data):
                yield from _of_targets(declarator, lines, _targets(declarator, "name", "value"), grammar, data)
        return
    yield from _of_targets(node, lines, _targets(node, names_field, value_field), grammar, data)


def _of_targets(
    node: Node,
    lines: tuple[int, int, int],
    targets: Sequence[tuple[Node, Node | None]],
    grammar: Grammar,
    data: bytes,
) -> Iterator[Local]:
    """Yield the names of what a node declares; ``lines`` as in ``Local``."""
    declared = node.child_by_field_name("type")
    type_ = "" if declared is None else " ".join(text_of(declared, data, _TYPE).split())
    for place, (pattern, value) in enumerate(targets):
        names = _names(pattern, grammar, data)
        is_whole = len(names) == 1 and not _TAKES_APART.search(pattern.type)
        text = _value(value, data) if is_whole and value is not None else ""
        if text and node.type in grammar.loops:
            text = f"{text}[]" if _is_element(node, grammar, place) else ""
        for name in names:
            own_type = type_ if is_whole and type_ not in _INFERRED else ""
            yield Local(name, *lines, own_type, text)


def _is_element(loop: Node, grammar: Grammar, place: int) -> bool:
    """Return True if the variable of a loop is an element, no key: ``in`` of scripts, the first one in Go."""
    operator = loop.child_by_field_name("operator")
    return place == 1 if grammar.name == "go" else operator is None or operator.type != "in"


def _targets(node: Node, names_field: str, value_field: str) -> list[tuple[Node, Node | None]]:
    """Return what a node declares or sets, each a name or a pattern, with its value."""
    patterns = _in_lists(node.children_by_field_name(names_field)) if names_field else [node]
    values = _in_lists(node.children_by_field_name(value_field)) if value_field else []
    if node.type == "as_pattern":
        values = node.named_children[:1]
    if node.type == "range_clause":
        values = [*values, *values][: len(patterns)]
    targets: list[tuple[Node, Node | None]] = []
    for place, pattern in enumerate(patterns[:MAX_DECLARED]):
        value = values[place] if place < len(values) and len(values) in (1, len(patterns)) else None
        if pattern.type in ("init_declarator", "variable_declarator"):
            value = pattern.child_by_field_name("value")
            pattern = pattern.child_by_field_name("declarator") or pattern.child_by_field_name("name") or pattern
        if not _is_prototype(pattern):
            targets.append((pattern, value))
    return targets


def _is_prototype(declarator: Node) -> bool:
    inner = declarator.child_by_field_name("declarator")
    return declarator.type == "function_declarator" and inner is not None and inner.type == "identifier"


def _in_lists(fields: Sequence[Node]) -> list[Node]:
    """Return the nodes, and in place of a list of expressions in Go what is in it."""
    return [
        inner for node in fields for inner in (node.named_children if node.type == "expression_list" else [node])
    ]


def _names(pattern: Node, grammar: Grammar, data: bytes) -> list[str]:
    """Return the names that a pattern declares. In Rust, a name with a capital letter is a constant."""
    names: list[str] = []
    cursor = pattern.walk()
    depth = 0
    while len(names) < MAX_DECLARED:
        node = cursor.node
        if node is None:
            break
        is_used = cursor.field_name in _USED_FIELDS or node.type in _USED_NODES
        is_declared_elsewhere = depth and node.type in grammar.binds
        is_qualified = node.type == "dotted_name" and node.named_child_count > 1
        if node.type in _NAMES and not is_used:
            name = text_of(node, data, LONGEST_NAME)
            names += [name] if grammar.name != "rust" or not name[:1].isupper() else []
        elif not (is_used or is_declared_elsewhere or is_qualified) and cursor.goto_first_child():
            depth += 1
            if node.type == "keyword_pattern":  # its first child is the name of an attribute
                cursor.goto_next_sibling()
            continue
        while depth and not cursor.goto_next_sibling():
            cursor.goto_parent()
            depth -= 1
        if not depth:
            break
    return names


def _value(node: Node, data: bytes) -> str:
    """Return the names and calls of the expression that gives a value, or the type that it is asserted to have."""
    if node.type == "type_assertion_expression":
        node = node.child_by_field_name("type") or node
    text = chain(text_of(node, data, _VALUE).lstrip("*")) if node.end_byte - node.start_byte <= _VALUE else ""
    return "" if text in _NO_VALUES else text
