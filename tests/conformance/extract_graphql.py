"""Cut the types and fields that our queries touch out of GitHub's GraphQL schema.

    npm pack @octokit/graphql-schema && tar xzf octokit-graphql-schema-*.tgz
    python -m tests.conformance.extract_graphql package/schema.graphql

Writes ``schema.graphql`` beside this file. A query that GitHub would refuse cannot be extracted.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

from graphql import (
    FieldNode,
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLUnionType,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    build_schema,
    get_named_type,
    parse,
    print_ast,
    print_type,
    validate,
    visit,
)

from bot.github import app, reader
from bot.github import history as past

QUERIES = (*reader.QUERIES, *past.QUERIES, *app.QUERIES)
TARGET = Path(__file__).with_name("schema.graphql")
HEAD = "# From npm @octokit/graphql-schema (MIT License, see LICENSE): the fields that our queries touch.\n"
BUILT_IN = ("String", "Int", "Boolean", "ID")

#: Type -> field -> what it returns, and the arguments that are given.
Used = dict[str, dict[str, tuple[str, dict[str, str]]]]


class _Fields(Visitor):
    """Collects every field of a query as it is declared in the schema, with the arguments that are given."""

    def __init__(self, info: TypeInfo, used: Used, named: set[str]) -> None:
        super().__init__()
        self._info = info
        self._used = used
        self._named = named

    def enter_field(self, node: FieldNode, *_: object) -> None:
        parent, field = self._info.get_parent_type(), self._info.get_field_def()
        assert parent is not None
        assert field is not None
        self._named |= {parent.name, get_named_type(field.type).name}
        if node.name.value.startswith("__"):
            return
        _, arguments = self._used[parent.name].setdefault(node.name.value, (str(field.type), {}))
        for name in (argument.name.value for argument in node.arguments or ()):
            arguments[name] = str(field.args[name].type)
            self._named.add(get_named_type(field.args[name].type).name)

    def enter_inline_fragment(self, *_: object) -> None:
        parent = self._info.get_type()
        assert parent is not None
        self._named.add(get_named_type(parent).name)


def fields(schema: GraphQLSchema) -> tuple[Used, set[str]]:
    """Declarations of all fields used, by type; and the names of all types that they mention."""
    used: Used = defaultdict(dict)
    named: set[str] = set()
    for query in QUERIES:
        document = parse(query)
        if problems := validate(schema, document):
            raise SystemExit(f"GitHub would refuse a query: {problems[0].message}")
        info = TypeInfo(schema)
        visit(document, TypeInfoVisitor(info, _Fields(info, used, named)))
        for definition in document.definitions:
            for variable in getattr(definition, "variable_definitions", None) or ():
                named |= set(re.findall(r"\w+", print_ast(variable.type)))
    for name in list(named):
        each = schema.get_type(name)
        if isinstance(each, GraphQLInputObjectType):
            named |= {get_named_type(field.type).name for field in each.fields.values()}
    return used, named - set(BUILT_IN)


def declared(schema: GraphQLSchema, used: Used, named: set[str], name: str) -> str:
    """One type, cut down to what is used of it."""
    each = schema.get_type(name)
    match each:
        case GraphQLEnumType() | GraphQLInputObjectType():
            each.description = None
            for value in (each.values if isinstance(each, GraphQLEnumType) else each.fields).values():
                value.description = None
            return print_type(each) + "\n"
        case GraphQLScalarType():
            return f"scalar {name}\n"
        case GraphQLUnionType() | GraphQLInterfaceType() if name not in used:
            members = sorted({possible.name for possible in schema.get_possible_types(each)} & named)
            return f"union {name} = {' | '.join(members)}\n"
        case GraphQLObjectType() | GraphQLInterfaceType():
            lines = [
                f"  {field}{_arguments(given)}: {kind}\n" for field, (kind, given) in sorted(used[name].items())
            ]
            word = "interface" if isinstance(each, GraphQLInterfaceType) else "type"
            return f"{word} {name} {{\n{''.join(lines)}}}\n"
        case _:
            raise SystemExit(f"{name}: no such type")


def _arguments(given: dict[str, str]) -> str:
    return f"({', '.join(f'{name}: {kind}' for name, kind in given.items())})" if given else ""


def main(source: str) -> None:
    """Write the extract."""
    schema = build_schema(Path(source).read_text(encoding="utf-8"), assume_valid=True)
    used, named = fields(schema)
    TARGET.write_text("\n".join([HEAD, *(declared(schema, used, named, name) for name in sorted(named))]))


if __name__ == "__main__":
    main(sys.argv[1])
