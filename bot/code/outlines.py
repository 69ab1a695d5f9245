"""The definitions, imports and references of a file. Only child processes call this module, by ``parse_apart``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from bot.code.declarations import chain
from bot.code.syntax import Definition, Grammar, Import, Kind, Outline, Reference, ReferenceKind, grammar_of
from bot.code.trees import LONGEST_NAME, MAX_DEPTH, language_of, nodes, parse

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

#: Most definitions and imports of one file, and most references that are returned.
MAX_DEFINITIONS, MAX_IMPORTS, MAX_REFERENCES = 10_000, 1_000, 3_000
#: Deepest nesting of definitions.
MAX_NESTING = 50
#: Fields and nodes that hold the bases of a class.
_BASES = ("superclasses", "superclass", "interfaces", "trait", "bounds")
_HERITAGE = frozenset({"class_heritage", "extends_interfaces", "extends_type_clause"})
#: Bytes of an import, of a type, of a receiver, and of the expression that gives a value.
_IMPORT, _TYPE, _RECEIVER, _VALUE = 2_000, 120, 120, 500


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
    for node in _outline_nodes(tree, grammar):
        while open_ and open_[-1].node.end_byte <= node.start_byte:
            open_.pop()
        if _is_import(node, grammar, data):
            if node.type in _PACKAGES:
                package = _text(node, data, _IMPORT).strip()
            elif len(imports) < MAX_IMPORTS:
                imports.append(Import(node.start_point.row + 1, _text(node, data, _IMPORT).rstrip()))
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
    places = islice(_offsets(data, {name.encode() for name in names}, lines), 4 * MAX_REFERENCES)
    references = filter(None, (_reference(tree, data, grammar, offset, line) for offset, line in places))
    return Outline(tuple(definitions), tuple(imports), package, tuple(islice(references, MAX_REFERENCES)))


def _definition(node: Node, around: Sequence[_Open], grammar: Grammar, data: bytes) -> Definition | None:
    """Return the definition that a node makes, or None."""
    kind: Kind
    if node.type in grammar.functions:
        kind = "function"
    elif node.type in grammar.classes:
        kind = "class"
    elif node.type in grammar.values:
        kind = "value"
    else:
        return None
    is_declared = node.type == "mod_item" or (grammar.name == "c" and kind == "class")
    if is_declared and node.child_by_field_name("body") is None:
        return None
    name = _name(node, around, grammar, data)
    if kind == "value" and not (name and _is_lasting(node, around, grammar, name)):
        return None
    within = ".".join(outer for outer in (around[-1].names if around else ()) if outer)
    if kind == "function" and grammar.name == "go" and (receiver := node.child_by_field_name("receiver")):
        within = (re.findall(r"[A-Za-z_]\w*", _text(receiver, data, _TYPE).partition("[")[0]) or [""])[-1]
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
        body=(node.child_by_field_name("body") or node).start_point.row + 1,
        within=within,
        call="" if name or kind != "function" else _call(node, around, grammar, data),
        type=_type(node, kind, data),
        value=_value(node, data) if kind == "value" else "",
    )


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
        parts = [_text(base, data, _TYPE) for base in bases if base is not None]
        return " ".join(" ".join(parts).split())[:_TYPE]
    for field in ("return_type", "result", "type"):
        declared = node.child_by_field_name(field)
        if declared is not None:
            return " ".join(_text(declared, data, _TYPE).split())
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
    text = chain(_text(value, data, _VALUE))
    return text if len(text) <= _RECEIVER else ""


def _is_import(node: Node, grammar: Grammar, data: bytes) -> bool:
    if node.type in grammar.imports:
        return node.type != "export_statement" or node.child_by_field_name("source") is not None
    return node.type == "variable_declarator" and re.search(rb"=\s*require\(", _bytes(node, data, 600)) is not None


def _outline_nodes(tree: Tree, grammar: Grammar) -> list[Node]:
    """Return the nodes that make or name definitions, and the imports, parents before children.

    A query is fifty times as fast as a walk, but its time can grow with the square of the file if that has syntax
    errors or is nested very deeply.
    """
    if tree.root_node.has_error:
        types = _types(grammar)
        return [node for node, _ in nodes(tree) if node.type in types]
    from tree_sitter import QueryCursor

    cursor = QueryCursor(_query(grammar))
    cursor.set_max_start_depth(MAX_DEPTH)
    captures = cursor.captures(tree.root_node).get("it", [])
    return sorted(captures, key=lambda node: (node.start_byte, -node.end_byte))


def _types(grammar: Grammar) -> frozenset[str]:
    types = grammar.functions | grammar.classes | grammar.calls | grammar.values | grammar.imports
    return types.union(grammar.heads, grammar.owners)


@cache
def _defining(grammar: Grammar) -> frozenset[str]:
    return grammar.functions | grammar.classes | grammar.values - {"pair"}


@cache
def _query(grammar: Grammar) -> Any:
    from tree_sitter import Query

    types = _types(grammar)
    return Query(language_of(grammar), "\n".join(f"({node_type}) @it" for node_type in sorted(types)))


def _name(node: Node, around: Sequence[_Open], grammar: Grammar, data: bytes) -> str:
    """Return the name of a definition; for a function value, that of its variable or key."""
    own = next(
        filter(
            None, (node.child_by_field_name(field) for field in ("name", "property", "key", "left", "pattern"))
        ),
        None,
    )
    if own is None and node.type in ("impl_item", "type_item"):
        own = node.child_by_field_name("type")
    if own is None and node.type == "field_declaration" and grammar.name == "go":  # an embedded type
        own = node.child_by_field_name("type")
        while own is not None and own.child_count:
            own = own.child_by_field_name("name") or own.child_by_field_name("type")
    inner = node.child_by_field_name("declarator")
    while own is None and inner is not None:  # C: pointers, arrays and functions around the name
        own = inner.child_by_field_name("name") or (None if inner.child_count else inner)
        is_pointer = inner.type == "parenthesized_declarator"  # to a function
        inner = inner.named_child(0) if is_pointer else inner.child_by_field_name("declarator")
    owner = around[-1].node if around else None
    if owner is not None and owner.type in grammar.owners and node.type not in grammar.values:
        value, name = grammar.owners[owner.type]
        target = owner.child_by_field_name(name) if owner.child_by_field_name(value) == node else None
        if target is not None and (own is None or _MEMBER.fullmatch(_text(target, data, LONGEST_NAME))):
            own = target
    if own is None:
        return ""
    text = _text(own, data, LONGEST_NAME).split("<")[0].split("[")[0]
    form = _ASSIGNED if node.type == "assignment_expression" else _PLAIN
    if node.type in grammar.values and not form.fullmatch(text):
        return ""
    return text.strip("'\"")


def _call(node: Node, around: Sequence[_Open], grammar: Grammar, data: bytes) -> str:
    """Return the start of the call that takes the function, or of the macro, in one line."""
    if node.type == "macro_invocation":
        call: Node | None = node
    else:
        call = around[-1].node if around and around[-1].node.type in grammar.calls else None
        arguments = call.child_by_field_name("arguments") if call is not None else None
        if arguments is None or not arguments.start_byte <= node.start_byte < arguments.end_byte:
            return ""
    return "" if call is None else _text(call, data, LONGEST_NAME).split("\n")[0].rstrip()[:60]


def _text(node: Node, data: bytes, most: int) -> str:
    return _bytes(node, data, most).decode("utf-8", "replace")


def _bytes(node: Node, data: bytes, most: int) -> bytes:
    """Return the start of a node's text. ``node.text`` could be most of a hostile file, many times."""
    return data[node.start_byte : min(node.end_byte, node.start_byte + most)]


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


_WORD = re.compile(rb"[A-Za-z_$#][\w$]*")
#: Node types of names, the fields of what stands before the dot, and of the name behind it.
_NAMES = re.compile(r"identifier$|^(?:property|field)_identifier$")
#: ``super(1)`` and ``this(1)``.
_CONSTRUCTORS = frozenset({("super", "constructor"), ("this", "constructor"), ("super", "function")})
_BEFORE = ("object", "operand", "value", "argument", "path", "scope", "package", "module")
_BEHIND = frozenset({"attribute", "property", "field", "name"})
_CALLS = frozenset({"call", "call_expression", "method_invocation", "new_expression", "object_creation_expression",
                    "macro_invocation", "explicit_constructor_invocation"})  # fmt: skip
_CALLED = frozenset({"function", "constructor", "name", "macro", "type"})
_MEMBERS = frozenset({"attribute", "member_expression", "selector_expression", "field_expression", "field_access",
                      "method_invocation", "scoped_identifier", "qualified_type", "scoped_type_identifier",
                      "nested_type_identifier"})  # fmt: skip


#: From the name of a field to the literal that sets it, in Rust, Go and C.
_LITERALS = (
    ("field_initializer", "field_initializer_list", "struct_expression"),
    ("shorthand_field_initializer", "field_initializer_list", "struct_expression"),
    ("literal_element", "keyed_element", "literal_value", "composite_literal"),
    ("field_designator", "initializer_pair", "initializer_list", "init_declarator", "declaration"),
    ("field_designator", "initializer_pair", "initializer_list", "compound_literal_expression"),
)
_LITERAL_TYPES = frozenset({"type_identifier", "qualified_type", "generic_type", "generic_type_with_turbofish",
                            "scoped_type_identifier"})  # fmt: skip


def _offsets(data: bytes, names: Collection[bytes], lines: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield offset and line of the words that may be references."""
    start = 0
    for number, text in enumerate(data.split(b"\n"), start=1):
        if number in lines or any(name in text for name in names):
            for match in _WORD.finditer(text[:2_000]):
                if number in lines or match[0] in names:
                    yield start + match.start(), number
        start += len(text) + 1


def _reference(tree: Tree, data: bytes, grammar: Grammar, offset: int, line: int) -> Reference | None:
    """Return the reference at an offset, or None for a definition, a comment or a part of a text."""
    cursor = tree.walk()
    chain: list[tuple[Node, str]] = [(tree.root_node, "")]
    while len(chain) < MAX_DEPTH and cursor.goto_first_child_for_byte(offset) is not None:
        node = cursor.node
        if node is None or node.start_byte > offset:
            return None
        chain.append((node, cursor.field_name or ""))
    leaf, field = chain[-1]
    if leaf.start_byte != offset or len(chain) < 2:
        return None
    if not _NAMES.search(leaf.type) and (leaf.type, field) not in _CONSTRUCTORS:
        return None
    if any(node.type != "export_statement" and _is_import(node, grammar, data) for node, _ in chain[1:-1]):
        return None
    parent = chain[-2][0]
    if field in ("name", "property", "key") and parent.type in _defining(grammar):
        return None
    receiver, at = "", len(chain) - 1
    if parent.type in _MEMBERS and field in _BEHIND:
        before = next(filter(None, (parent.child_by_field_name(name) for name in _BEFORE)), None)
        if before is not None and before.start_byte != leaf.start_byte:
            receiver = "".join(_text(before, data, _RECEIVER).split())
        at = at if parent.type == "method_invocation" else at - 1
    if parent.type == "method_reference" and leaf.prev_named_sibling is not None:
        receiver = "".join(_text(leaf.prev_named_sibling, data, _RECEIVER).split())
        return Reference(_text(leaf, data, LONGEST_NAME), receiver, line, "call")
    if parent.type == "token_tree":  # Rust: the arguments of a macro are not parsed
        match = re.search(rb"([\w.:]*[\w)])(?:\.|::)$", data[max(0, offset - _RECEIVER) : offset])
        is_call = data[leaf.end_byte : leaf.end_byte + 1] == b"("
        receiver = match[1].decode("utf-8", "replace") if match else ""
        return Reference(_text(leaf, data, LONGEST_NAME), receiver, line, "call" if is_call else "read")
    kind: ReferenceKind = "read"
    outer, role = chain[at - 1][0], chain[at][1]
    if outer.type in _CALLS and role in _CALLED:
        kind = "call"
    elif role == "left" and "assignment" in outer.type:
        kind = "write"
    elif outer.type in ("keyword_argument", "pair") and role in ("name", "key"):
        kind = "argument"
    elif literal := _literal_type(chain):
        kind, receiver = "argument", re.split(r"::<|[<\[]", _text(literal, data, _RECEIVER))[0]
    return Reference(_text(leaf, data, LONGEST_NAME), receiver, line, kind)


def _literal_type(chain: Sequence[tuple[Node, str]]) -> Node | None:
    """Return the type of the literal whose field the last node names: ``S{n: 1}``, ``struct s v = {.n = 1}``."""
    types = [node.type for node, _ in chain[-6:-1]][::-1]
    up = next((len(path) for path in _LITERALS if types[: len(path)] == list(path)), 0)
    if not up or (types[1] == "keyed_element" and chain[-2][1] != "key"):
        return None
    if types[0] == "field_initializer" and chain[-1][1] == "value":
        return None
    outer = chain[-1 - up][0]
    declared = outer.child_by_field_name("type") or outer.child_by_field_name("name")
    if declared is not None and declared.type == "type_descriptor":
        declared = declared.child_by_field_name("type")
    if declared is not None and declared.type == "struct_specifier":
        declared = declared.child_by_field_name("name")
    return declared if declared is not None and declared.type in _LITERAL_TYPES else None
