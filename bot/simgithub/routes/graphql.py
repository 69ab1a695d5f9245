"""The few things that only GraphQL says: closing links and resolved threads.

The two queries that Bouncer sends are recognised by what they ask for; anything else is refused.
"""

from __future__ import annotations

from bot.simgithub.state import IssueState, Json, Pull
from bot.simgithub.wire import ApiAnswer, ApiCall, Route


def query(call: ApiCall) -> ApiAnswer:
    text = call.field("query", str)
    variables: Json = call.field("variables", dict, {})
    repository = call.world.repositories.get(f"{variables.get('owner')}/{variables.get('name')}")
    if repository is None or (call.token and repository.full_name not in call.token.repositories):
        return _error("NOT_FOUND", "Could not resolve to a Repository")
    issue = repository.issues.get(variables.get("number", 0))
    if issue is None or issue.pull is None:
        return _error("NOT_FOUND", "Could not resolve to a PullRequest")
    size, after = int(variables.get("first", 100)), variables.get("after")
    if "closingIssuesReferences" in text:
        field, nodes = "closingIssuesReferences", _links(issue.pull)
    elif "reviewThreads" in text:
        field, nodes = "reviewThreads", _threads(issue)
    else:
        return _error("undefinedField", "this field is not simulated")
    start = int(after) if after else 0
    page = {
        "nodes": nodes[start : start + size],
        "pageInfo": {"hasNextPage": start + size < len(nodes), "endCursor": str(start + size)},
    }
    return ApiAnswer(body={"data": {"repository": {"pullRequest": {field: page}}}})


def _links(pull: Pull) -> list[Json]:
    return [{"number": number, "repository": {"nameWithOwner": name}} for name, number in pull.closes]


def _threads(issue: IssueState) -> list[Json]:
    assert issue.pull is not None
    first = [each for each in issue.pull.comments if each.in_reply_to is None]
    return [
        {"isResolved": each.resolved, "comments": {"nodes": [{"fullDatabaseId": str(each.id)}]}} for each in first
    ]


def _error(kind: str, message: str) -> ApiAnswer:
    return ApiAnswer(body={"data": None, "errors": [{"type": kind, "message": message}]})


ROUTES = (Route("POST", "/graphql", query, "pull_requests:read"),)
