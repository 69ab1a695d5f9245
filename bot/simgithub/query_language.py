"""The part of the GraphQL language that Bouncer uses: fields with aliases, arguments and fragments."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Brackets are left out: every list in a query has one item.
_TOKEN = re.compile(r'"[^"]*"|\.\.\.|[$\w]+|[{}():]')

Tokens = deque[str]
Variables = Mapping[str, Any]
Arguments = Mapping[str, Any]


class QueryError(Exception):
    """An error of a query, with GitHub's type for it."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


@dataclass(frozen=True)
class QueryField:
    """A field that is asked for; ``key`` is its name in the answer."""

    key: str
    name: str
    arguments: Arguments
    fields: Sequence[QueryField]


def parse(text: str, variables: Variables) -> Sequence[QueryField]:
    """Return the fields of the one operation in a query."""
    tokens = deque(_TOKEN.findall(text))
    # The types of the variables are checked by the tests, against GitHub's schema.
    while tokens[0] != "{":
        tokens.popleft()
    return _fields(tokens, variables)


def _fields(tokens: Tokens, variables: Variables) -> list[QueryField]:
    fields: list[QueryField] = []
    tokens.popleft()
    while (key := tokens.popleft()) != "}":
        if key == "...":
            # ``on`` and a type. Every list has objects of one type here.
            tokens.popleft(), tokens.popleft()
            fields += _fields(tokens, variables)
            continue
        name = key
        if tokens[0] == ":":
            tokens.popleft()
            name = tokens.popleft()
        arguments = _object(tokens, variables, end=")") if tokens[0] == "(" else {}
        fields.append(QueryField(key, name, arguments, _fields(tokens, variables) if tokens[0] == "{" else ()))
    return fields


def _object(tokens: Tokens, variables: Variables, end: str) -> dict[str, Any]:
    values = {}
    tokens.popleft()
    while (name := tokens.popleft()) != end:
        tokens.popleft()
        values[name] = _object(tokens, variables, end="}") if tokens[0] == "{" else _value(tokens, variables)
    return values


def _value(tokens: Tokens, variables: Variables) -> Any:
    token = tokens.popleft()
    if token.startswith("$"):
        return variables.get(token[1:])
    return int(token) if token.isdigit() else token.strip('"')


def select(value: Any, fields: Sequence[QueryField], missing: frozenset[str]) -> Any:
    """Return the fields of an object, or of every object in a list.

    An object is a dictionary; a function in it is called with the field's arguments. Raises QueryError for a field
    that the object does not have, or whose ``TYPE.field`` is in ``missing``.
    """
    if isinstance(value, list):
        return [select(item, fields, missing) for item in value]
    if value is None or not fields:
        return value
    answer = {}
    for field in fields:
        kind = value.get("__typename", "object")
        if field.name not in value or f"{kind}.{field.name}" in missing:
            raise QueryError("undefinedField", f"Field '{field.name}' doesn't exist on type '{kind}'")
        member = value[field.name]
        member = member(field.arguments) if callable(member) else member
        answer[field.key] = select(member, field.fields, missing)
    return answer
