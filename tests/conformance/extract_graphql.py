"""Cut the types and fields that our queries touch out of GitHub's GraphQL schema.

    npm pack @octokit/graphql-schema && tar xzf octokit-graphql-schema-*.tgz
    python -m tests.conformance.extract_graphql package/schema.graphql

Writes ``schema.graphql`` beside this file. A query that GitHub would refuse cannot be extracted.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from graphql import (
    FieldNode,
    GraphQLSchema,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    build_schema,
    get_named_type,
    parse,
    validate,
    visit,
)

from bot.forge.github.reader import QUERIES

TARGET = Path(__file__).with_name("schema.graphql")
HEAD = "# From npm @octokit/graphql-schema (MIT License, see LICENSE): the fields that our queries touch.\n"

Used = dict[str, dict[str, str]]


class _Fields(Visitor):
    """Collects every field of a query as it is declared in the schema, with the arguments that are given."""

    def __init__(self, info: TypeInfo, used: Used) -> None:
        super().__init__()
        self._info = info
        self._used = used

    def enter_field(self, node: FieldNode, *_: object) -> None:
        parent, field = self._info.get_parent_type(), self._info.get_field_def()
        assert parent is not None
        assert field is not None
        given = [argument.name.value for argument in node.arguments or ()]
        arguments = ", ".join(f"{name}: {field.args[name].type}" for name in given)
        declared = f"{node.name.value}({arguments})" if arguments else node.name.value
        self._used[parent.name][node.name.value] = f"{declared}: {field.type}"


def fields(schema: GraphQLSchema) -> tuple[Used, set[str]]:
    """Declarations of all fields used, by type; and the scalars that they are made of."""
    used: Used = defaultdict(dict)
    for query in QUERIES:
        document = parse(query)
        if problems := validate(schema, document):
            raise SystemExit(f"GitHub would refuse a query: {problems[0].message}")
        info = TypeInfo(schema)
        visit(document, TypeInfoVisitor(info, _Fields(info, used)))
    named = {
        get_named_type(schema.get_type(parent).fields[field].type).name  # type: ignore[union-attr]
        for parent, each in used.items()
        for field in each
    }
    return used, {name for name in named if name not in used and name not in ("String", "Int", "Boolean", "ID")}


def main(source: str) -> None:
    """Write the extract."""
    used, scalars = fields(build_schema(Path(source).read_text(encoding="utf-8"), assume_valid=True))
    types = [
        f"type {name} {{\n" + "".join(f"  {line}\n" for _, line in sorted(each.items())) + "}\n"
        for name, each in sorted(used.items())
    ]
    TARGET.write_text("\n".join([HEAD, *(f"scalar {name}\n" for name in sorted(scalars)), *types]))


if __name__ == "__main__":
    main(sys.argv[1])
