"""The data that only GraphQL has: closing links, resolved threads, and the first versions of texts.

The queries that Bouncer sends are recognised by their fields; all others are refused.
"""

from __future__ import annotations

from datetime import datetime

from bot.simgithub import diffs
from bot.simgithub.routes import apps
from bot.simgithub.state import CommentState, IssueState, Json, Pull, RepositoryState, User, World
from bot.simgithub.wire import ApiAnswer, ApiCall, ApiRefusal, Route


def query(call: ApiCall) -> ApiAnswer:
    text = call.field("query", str)
    if "viewer" in text:
        return ApiAnswer(body={"data": {"viewer": {"login": call.bot.login, "databaseId": call.bot.id}}})
    if call.token and not apps.allows(call.token, "pull_requests:read"):
        raise ApiRefusal(403, "Resource not accessible by integration")
    if "__type(" in text:
        missing = call.world.without_fields
        schema = {
            kind: {"fields": [{"name": name} for name in names if f"{kind}.{name}" not in missing]}
            for kind, names in _FIELDS.items()
        }
        return ApiAnswer(body={"data": schema})
    if lacking := [name for name in sorted(call.world.without_fields) if name.partition(".")[2] in text]:
        kind, _, field = lacking[0].partition(".")
        return _error("undefinedField", f"Field '{field}' doesn't exist on type '{kind}'")
    variables: Json = call.field("variables", dict, {})
    if "minimizeComment" in text:
        return _minimize(call, str(variables.get("id")), str(variables.get("why")))
    if "mutation" in text:
        return _set_draft(call, text, str(variables.get("id")))
    repository = call.world.repository(f"{variables.get('owner')}/{variables.get('name')}")
    if repository is None or (call.token and repository.full_name not in call.token.repositories):
        return _error("NOT_FOUND", "Could not resolve to a Repository")
    if "issue(number:" in text:
        issue = repository.issues.get(variables["number"])
        if issue is None or issue.pull is not None:
            return _error("NOT_FOUND", "Could not resolve to an Issue")
        return _answer({"issue": _closed_by(repository, issue)})
    if "number" in variables:
        return _of_pull(call, text, variables, repository)
    if "states: OPEN" in text and "pullRequests(" in text:
        pulls = [issue for issue in repository.issues.values() if issue.pull is not None and issue.state == "open"]
        nodes = [_open_pull(call, repository, issue) for issue in pulls]
        return _answer({"pullRequests": _page(variables, nodes)})
    past = _Past(call, repository)
    if "pullRequests(" in text:
        return _answer({"pullRequests": _page(variables, past.pulls())})
    if "totalCount" in text:
        is_open = [issue for issue in repository.issues.values() if issue.pull is None and issue.closed_at is None]
        return _answer({"issues": {"totalCount": len(is_open)}})
    if "issues(" in text:
        return _answer({"issues": _page(variables, past.issues())})
    if "history(" in text:
        commits = past.commits(datetime.fromisoformat(str(variables.get("since"))))
        return _answer({"defaultBranchRef": {"target": {"history": _page(variables, commits)}}})
    return _error("undefinedField", "this field is not simulated")


#: The fields of each type that can be missing on an older server.
_FIELDS = {
    "PullRequest": ("closingIssuesReferences", "reviewThreads"),
    "Issue": ("closedByPullRequestsReferences",),
    "Mutation": ("convertPullRequestToDraft", "markPullRequestReadyForReview"),
}


def _of_pull(call: ApiCall, text: str, variables: Json, repository: RepositoryState) -> ApiAnswer:
    issue = repository.issues.get(variables["number"])
    if issue is None or issue.pull is None:
        return _error("NOT_FOUND", "Could not resolve to a PullRequest")
    if "changedFiles" in text:
        return _answer({"pullRequest": _facts(call, repository, issue, issue.pull)})
    if "closingIssuesReferences" in text:
        field = "closingIssuesReferences"
        nodes = [{"number": number, "repository": {"nameWithOwner": name}} for name, number in issue.pull.closes]
    elif "reviewThreads" in text:
        field = "reviewThreads"
        nodes = [
            {"isResolved": comment.resolved, "comments": {"nodes": [{"fullDatabaseId": str(comment.id)}]}}
            for comment in issue.pull.comments
            if comment.in_reply_to is None
        ]
    else:
        return _error("undefinedField", "this field is not simulated")
    return _answer({"pullRequest": {field: _page(variables, nodes)}})


def _open_pull(call: ApiCall, repository: RepositoryState, issue: IssueState) -> Json:
    pull = issue.pull
    assert pull is not None

    def comment_node(comment: CommentState, time: str) -> Json:
        association = call.render.association(repository, comment.author)
        return {
            time: _time(comment.created_at),
            "authorAssociation": association,
            "author": {
                "__typename": "Bot" if comment.author.type == "Bot" else "User",
                "login": comment.author.login,
            },
        }

    return {
        "number": issue.number,
        "title": issue.title,
        "isDraft": pull.draft,
        "createdAt": _time(issue.created_at),
        "updatedAt": _time(call.world.now()),
        "headRefOid": pull.head_sha,
        "author": {"login": issue.author.login},
        "commits": {"nodes": [{"commit": {"committedDate": _time(call.world.commits[pull.head_sha].at)}}]},
        "comments": {"nodes": [comment_node(comment, "createdAt") for comment in issue.comments[-30:]]},
        # GitHub makes a review of every comment on a line.
        "reviews": {"nodes": [comment_node(comment, "submittedAt") for comment in pull.comments[-30:]]},
    }


def _answer(repository: Json) -> ApiAnswer:
    return ApiAnswer(body={"data": {"repository": repository}})


def _page(variables: Json, nodes: list[Json]) -> Json:
    size, after = int(variables.get("first", 100)), variables.get("after")
    start = int(after) if after else 0
    return {
        "nodes": nodes[start : start + size],
        "pageInfo": {"hasNextPage": start + size < len(nodes), "endCursor": str(start + size)},
    }


def _set_draft(call: ApiCall, text: str, node_id: str) -> ApiAnswer:
    """Convert a pull request to a draft or back. GitHub asks for ``contents: write`` as well."""
    needed = ("contents:write", "pull_requests:write")
    if call.token and not all(apps.allows(call.token, permission) for permission in needed):
        return _error("FORBIDDEN", "Resource not accessible by integration")
    for repository in call.world.repositories.values():
        for issue in repository.issues.values():
            if issue.pull is not None and call.render.issue(issue)["node_id"] == node_id:
                draft = "convertPullRequestToDraft" in text
                if issue.pull.draft != draft:
                    call.operations.set_draft(issue, draft, call.bot)
                name = "convertPullRequestToDraft" if draft else "markPullRequestReadyForReview"
                return ApiAnswer(body={"data": {name: {"pullRequest": {"isDraft": draft}}}})
    return _error("NOT_FOUND", "Could not resolve to a node")


def _minimize(call: ApiCall, node_id: str, why: str) -> ApiAnswer:
    if call.token and not apps.allows(call.token, "pull_requests:write"):
        return _error("FORBIDDEN", "Resource not accessible by integration")
    for repository in call.world.repositories.values():
        for issue in repository.issues.values():
            for comment in issue.pull.comments if issue.pull is not None else ():
                if comment.node_id == node_id:
                    comment.minimized = why
                    return ApiAnswer(
                        body={"data": {"minimizeComment": {"minimizedComment": {"isMinimized": True}}}}
                    )
    return _error("NOT_FOUND", "Could not resolve to a node")


def _closed_by(repository: RepositoryState, issue: IssueState) -> Json:
    """Return the pull requests that close an issue: those that are open or merged."""
    pulls = [
        {
            "number": other.number,
            "state": "MERGED" if other.pull.merged else other.state.upper(),
            "repository": {"nameWithOwner": repository.full_name},
        }
        for other in repository.issues.values()
        if other.pull is not None and (repository.full_name, issue.number) in other.pull.closes
    ]
    return {"closedByPullRequestsReferences": {"nodes": [pull for pull in pulls if pull["state"] != "CLOSED"]}}


def _facts(call: ApiCall, repository: RepositoryState, issue: IssueState, pull: Pull) -> Json:
    changed = diffs.changes(*call.world.pull_files(pull))
    return {
        "id": call.render.issue(issue)["node_id"],
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "state": "MERGED" if pull.merged else issue.state.upper(),
        "isDraft": pull.draft,
        "merged": pull.merged,
        "headRefOid": pull.head_sha,
        "baseRefName": pull.base_ref,
        "authorAssociation": call.render.association(repository, issue.author),
        "author": _user(issue.author),
        "additions": sum(file.additions for file in changed),
        "deletions": sum(file.deletions for file in changed),
        "changedFiles": len(changed),
        "files": {"nodes": [{"path": file.path, "changeType": file.status.upper()} for file in changed[:100]]},
        "closingIssuesReferences": {"nodes": [_linked(call, name, number) for name, number in pull.closes]},
    }


def _linked(call: ApiCall, name: str, number: int) -> Json | None:
    """Return a linked issue; None, as GitHub answers, if the token may not read it."""
    if call.token and name not in call.token.repositories:
        return None
    repository = call.world.repositories[name]
    issue = repository.issues[number]
    return {
        "number": number,
        "title": issue.title,
        "state": issue.state.upper(),
        "repository": {"nameWithOwner": name},
        "author": _user(issue.author),
        "labels": {"nodes": [{"name": label} for label in issue.labels]},
        "assignees": {"nodes": [{"login": user.login} for user in issue.assignees]},
        "milestone": {"title": issue.milestone} if issue.milestone else None,
        **_closed_by(repository, issue),
    }


class _Past:
    """Closed issues and merged pull requests of a repository, newest first."""

    def __init__(self, call: ApiCall, repository: RepositoryState) -> None:
        self._world: World = call.world
        self._render = call.render
        self._repository = repository

    def issues(self) -> list[Json]:
        closed_issues = [issue for issue in self._newest() if issue.pull is None and issue.closed_at is not None]
        return [
            {
                **self._text(issue),
                "closedAt": _time(issue.closed_at),
                "stateReason": (issue.state_reason or "completed").upper(),
                "closedByPullRequestsReferences": {
                    "nodes": [{"number": number, "merged": True} for number in issue.closed_by]
                },
                "labelled": {
                    "nodes": [
                        {"createdAt": _time(at), "label": {"name": name}} for name, at in issue.labelled[-30:]
                    ]
                },
                "comments": {
                    "nodes": [
                        {"createdAt": _time(comment.created_at), "author": _user(comment.author)}
                        for comment in issue.comments[-30:]
                    ]
                },
            }
            for issue in closed_issues
        ]

    def pulls(self) -> list[Json]:
        return [
            self._pull(issue, issue.pull)
            for issue in self._newest()
            if issue.pull is not None and issue.pull.merged
        ]

    def _pull(self, issue: IssueState, pull: Pull) -> Json:
        repository = self._repository
        linked = [repository.issues[number] for name, number in pull.closes if name == repository.full_name]
        return {
            **self._text(issue),
            "mergedAt": _time(pull.merged_at),
            "baseRefName": pull.base_ref,
            "baseRefOid": pull.base_sha,
            "headRefOid": pull.head_sha,
            "mergeCommit": {"oid": pull.merge_sha},
            "closingIssuesReferences": {
                "nodes": [
                    {
                        **self._text(issue),
                        "repository": {"nameWithOwner": repository.full_name},
                        "reopened": {"nodes": [{"createdAt": _time(at)} for at in issue.reopened_at]},
                    }
                    for issue in linked
                ]
            },
        }

    def commits(self, since: datetime) -> list[Json]:
        head = self._repository.branches[self._repository.default_branch]
        commits = [self._world.commits[sha] for sha in self._world.ancestors(head)]
        return [
            {"oid": commit.sha, "message": commit.message, "committedDate": _time(commit.at)}
            for commit in commits
            if commit.at >= since
        ]

    def _newest(self) -> list[IssueState]:
        return sorted(self._repository.issues.values(), key=lambda issue: issue.number, reverse=True)

    def _text(self, issue: IssueState) -> Json:
        kind = "issues" if issue.pull is None else "pull"
        # GitHub lists the versions of a text from new to old; the oldest is asked for.
        edits = [{"diff": issue.bodies[0], "deletedAt": None}] if issue.bodies else []
        return {
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "url": f"{self._render.web}/{self._repository.full_name}/{kind}/{issue.number}",
            "createdAt": _time(issue.created_at),
            "author": _user(issue.author),
            "userContentEdits": {"nodes": edits},
            "renamed": {"nodes": [{"previousTitle": title} for title in issue.titles[:1]]},
        }


def _user(user: User) -> Json:
    return {"__typename": user.type, "login": user.login.removesuffix("[bot]")}


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _error(kind: str, message: str) -> ApiAnswer:
    return ApiAnswer(body={"data": None, "errors": [{"type": kind, "message": message}]})


ROUTES = (Route("POST", "/graphql", query, "metadata:read"),)
