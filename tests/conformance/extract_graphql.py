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

from bot.github import app, reader, writer
from bot.github import history as past

QUERIES = [
    text
    for module in (reader, past, app, writer)
    for text in vars(module).values()
    if isinstance(text, str) and text.lstrip().startswith(("query ", "mutation "))
]
TARGET = Path(__file__).with_name("schema.graphql")
HEAD = "# From npm @octokit/graphql-schema (MIT License, see LICENSE): the fields that our queries touch.\n"
BUILT_IN = ("String", "Int", "Boolean", "ID")

#: Type -> field -> what it returns, and the arguments that are given.
Used = dict[str, dict[str, tuple[str, dict[str, str]]]]


class _Fields(Visitor):
    """Collects every field of a query as it is declared in the schema, with the arguments that are given."""

    def __init__(self, info: TypeInfo, used: Used, type_names: set[str]) -> None:
        super().__init__()
        self._info = info
        self._used = used
        self._named = type_names

    def enter_field(self, node: FieldNode, *_: object) -> None:
        parent, field = self._info.get_parent_type(), self._info.get_field_def()
        assert parent is not None
        if parent.name.startswith("__") or node.name.value.startswith("__"):
            return
        assert field is not None
        self._named |= {parent.name, get_named_type(field.type).name}
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
    type_names: set[str] = set()
    for query in QUERIES:
        document = parse(query)
        if problems := validate(schema, document):
            raise SystemExit(f"GitHub would refuse a query: {problems[0].message}")
        info = TypeInfo(schema)
        visit(document, TypeInfoVisitor(info, _Fields(info, used, type_names)))
        for definition in document.definitions:
            for variable in getattr(definition, "variable_definitions", None) or ():
                type_names |= set(re.findall(r"\w+", print_ast(variable.type)))
    for name in list(type_names):
        graphql_type = schema.get_type(name)
        if isinstance(graphql_type, GraphQLInputObjectType):
            type_names |= {get_named_type(field.type).name for field in graphql_type.fields.values()}
    return used, type_names - set(BUILT_IN)


def declared(schema: GraphQLSchema, used: Used, type_names: set[str], name: str) -> str:
    """One type, cut down to what is used of it."""
    graphql_type = schema.get_type(name)
    match graphql_type:
        case GraphQLEnumType() | GraphQLInputObjectType():
            graphql_type.description = None
            for value in (
                graphql_type.values if isinstance(graphql_type, GraphQLEnumType) else graphql_type.fields
            ).values():
                value.description = None
            return print_type(graphql_type) + "\n"
        case GraphQLScalarType():
            return f"scalar {name}\n"
        case GraphQLUnionType() | GraphQLInterfaceType() if name not in used:
            members = sorted({possible.name for possible in schema.get_possible_types(graphql_type)} & type_names)
            return f"union {name} = {' | '.join(members)}\n"
        case GraphQLObjectType() | GraphQLInterfaceType():
            lines = [
                f"  {field}{_arguments(arguments)}: {kind}\n"
                for field, (kind, arguments) in sorted(used[name].items())
            ]
            word = "interface" if isinstance(graphql_type, GraphQLInterfaceType) else "type"
            return f"{word} {name} {{\n{''.join(lines)}}}\n"
        case _:
            raise SystemExit(f"{name}: no such type")


def _arguments(arguments: dict[str, str]) -> str:
    return f"({', '.join(f'{name}: {kind}' for name, kind in arguments.items())})" if arguments else ""


def main(source: str) -> None:
    """Write the extract."""
    schema = build_schema(Path(source).read_text(encoding="utf-8"), assume_valid=True)
    used, type_names = fields(schema)
    TARGET.write_text(
        "\n".join([HEAD, *(declared(schema, used, type_names, name) for name in sorted(type_names))])
    )


if __name__ == "__main__":
    main(sys.argv[1])
