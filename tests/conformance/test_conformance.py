"""The check of our requests against GitHub's description can fail, and covers every operation that we use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from graphql import parse, validate

from bot.github import app, history, reader, writer
from bot.simgithub.routes import ROUTES
from bot.simgithub.server import RecordedRequest
from tests.conformance.checking import description, operation_of, schema, violations

REVIEW = RecordedRequest(
    method="POST",
    path="/repos/octo/demo/pulls/3/reviews",
    query={},
    body={"commit_id": "a", "event": "COMMENT", "comments": [{"path": "a.py", "line": 1, "body": "x"}]},
    status=200,
    authorization="Bearer",
    answer={"id": 1, "body": "x"},
    injected=False,
)
VARIABLES = {"owner": "octo", "name": "demo", "number": 3, "first": 100, "after": None}
LIST = replace(REVIEW, method="GET", path="/repos/octo/demo/pulls/3/files", body=None, answer=[])


def test_a_right_request_is_no_violation() -> None:
    assert violations([REVIEW, LIST]) == []
    assert operation_of(REVIEW) == "POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews"


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (replace(REVIEW, path="/repos/octo/demo/pulls/3/review"), "no such operation"),
        (replace(REVIEW, method="PUT"), "no such operation"),
        (replace(REVIEW, body={"evnt": "COMMENT"}), "'evnt' was unexpected"),
        (replace(REVIEW, body={"event": "SHOUT"}), "'SHOUT' is not one of"),
        (replace(REVIEW, body={"comments": [{"path": "a.py"}]}), "'body' is a required property"),
        (replace(REVIEW, body={"comments": [{"path": "a", "body": "b", "lines": 1}]}), "'lines' was unexpected"),
        (replace(REVIEW, answer={"id": "one"}), "'one' is not of type 'integer'"),
        (replace(LIST, query={"per_page": "many"}), "query per_page at $: 'many' is not of type 'integer'"),
        (replace(LIST, query={"size": "10"}), "query size is not known"),
        (replace(LIST, body={}), "a body where none is known"),
        (replace(REVIEW, path="/repos/octo/demo/check-runs", body=None, status=422), "no body"),
    ],
)
def test_a_request_that_github_would_refuse_is_reported(wrong: RecordedRequest, expected: str) -> None:
    [problem] = violations([wrong])
    assert expected in problem


CLOSING = replace(REVIEW, path="/graphql", body={"query": reader._CLOSING, "variables": VARIABLES}, answer={})


def test_a_right_query_is_no_violation() -> None:
    assert violations([CLOSING]) == []


QUERIES = [
    pytest.param(text, id=f"{module.__name__}.{name}")
    for module in (app, history, reader, writer)
    for name, text in vars(module).items()
    if isinstance(text, str) and text.lstrip().startswith(("query", "mutation"))
]


@pytest.mark.parametrize("query", QUERIES)
def test_github_understands_every_query_of_ours(query: str) -> None:
    assert validate(schema(), parse(query)) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"query": reader._THREADS.replace("isResolved", "resolved"), "variables": VARIABLES}, "field 'resolved'"),
        ({"query": reader._CLOSING, "variables": {**VARIABLES, "number": "one"}}, "$number"),
        ({"query": reader._CLOSING, "variables": VARIABLES, "token": "x"}, "unknown fields"),
    ],
)
def test_a_query_that_github_would_refuse_is_reported(body: dict[str, Any], expected: str) -> None:
    [problem] = violations([replace(CLOSING, body=body)])
    assert expected in problem


def test_everything_that_is_simulated_exists_on_github() -> None:
    described = description()["operations"]
    assert len(described) == sum(route.path != "/graphql" for route in ROUTES)


def test_the_extract_names_its_source_and_licence() -> None:
    assert "@octokit/openapi" in description()["source"]
    assert "MIT" in description()["source"]
