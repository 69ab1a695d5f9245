"""Hold requests, and the simulated GitHub's answers, against GitHub's own description of its API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from graphql import GraphQLSchema, OperationDefinitionNode, build_schema, parse, validate
from graphql.execution import get_variable_values
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from bot.simgithub.server import RecordedRequest
from tests.conformance.extract import pattern_of

EXTRACT = Path(__file__).with_name("openapi.json")
SCHEMA = Path(__file__).with_name("schema.graphql")


@cache
def description() -> dict[str, Any]:
    """The extract that ``extract.py`` wrote."""
    value: dict[str, Any] = json.loads(EXTRACT.read_text(encoding="utf-8"))
    return value


@cache
def validator(operation: str, *where: str) -> Draft202012Validator:
    schema = description()["operations"][operation]
    for key in where:
        schema = schema[key]
    return Draft202012Validator({"schemas": description()["schemas"], **schema})


def operation_of(request: RecordedRequest) -> str | None:
    """``METHOD /template`` of the operation that a request means; None where GitHub has none."""
    fitting = [
        name
        for name in description()["operations"]
        if name.startswith(f"{request.method} ") and re.fullmatch(pattern_of(name.partition(" ")[2]), request.path)
    ]
    # The template with the most fixed words, as a router chooses.
    return max(fitting, key=lambda name: len(re.sub(r"\{[^}]+\}", "", name)), default=None)


def violations(requests: Iterable[RecordedRequest]) -> list[str]:
    """Yield a line for each thing that GitHub would not understand."""
    return [
        problem
        for request in requests
        for problem in (_graphql(request) if request.path == "/graphql" else _problems(request))
    ]


@cache
def schema() -> GraphQLSchema:
    """The extract that ``extract_graphql.py`` wrote."""
    return build_schema(SCHEMA.read_text(encoding="utf-8"))


def _graphql(request: RecordedRequest) -> Iterator[str]:
    if set(request.body) - {"query", "variables"}:
        yield f"GraphQL: unknown fields in {sorted(request.body)}"
    document = parse(request.body["query"])
    yield from (f"GraphQL: {error.message}" for error in validate(schema(), document))
    for definition in document.definitions:
        assert isinstance(definition, OperationDefinitionNode)
        values = get_variable_values(schema(), definition.variable_definitions or (), request.body["variables"])
        yield from (f"GraphQL: {error.message}" for error in (values if isinstance(values, list) else ()))


def _problems(request: RecordedRequest) -> Iterator[str]:
    name = operation_of(request)
    if name is None:
        yield f"{request.method} {request.path}: no such operation"
        return
    operation = description()["operations"][name]
    yield from (f"{name}: query {item}" for item in _query(request, name, operation))
    if request.body is None:
        if operation["body_required"]:
            yield f"{name}: no body"
    elif operation["body"] is None:
        yield f"{name}: a body where none is known"
    else:
        yield from (f"{name}: body {error}" for error in _errors(validator(name, "body"), request.body))
    status = str(request.status)
    if status in operation["answers"] and not request.injected and isinstance(request.answer, dict | list):
        errors = _errors(validator(name, "answers", status), request.answer)
        yield from (f"{name}: answer {item}" for item in errors)


def _query(request: RecordedRequest, name: str, operation: dict[str, Any]) -> Iterator[str]:
    for key, value in request.query.items():
        if key not in operation["query"]:
            yield f"{key} is not known"
            continue
        kind = operation["query"][key].get("type")
        typed: Any = int(value) if kind == "integer" and value.isdigit() else value
        yield from (f"{key} {error}" for error in _errors(validator(name, "query", key), typed))


def _errors(check: Draft202012Validator, value: Any) -> Iterator[str]:
    for error in check.iter_errors(value):
        # Of several alternatives, what is wrong with the nearest one.
        near = best_match([error]) or error
        yield f"at {near.json_path}: {near.message[:160]}"
