"""GraphQL: closing links, resolved threads, first versions of texts, and lists of whole repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from bot.simgithub import diffs
from bot.simgithub.query_language import Arguments, QueryError, parse, select
from bot.simgithub.routes import apps
from bot.simgithub.state import CommentState, IssueState, Json, Pull, RepositoryState, User
from bot.simgithub.wire import ApiAnswer, ApiCall, ApiRefusal, Route

#: A list that is asked for by page.
Connection = Callable[[Arguments], Json]

#: The fields of each type that can be missing on an older server.
_FIELDS = {
    "PullRequest": ("closingIssuesReferences", "reviewThreads"),
    "Issue": ("closedByPullRequestsReferences",),
    "Mutation": ("convertPullRequestToDraft", "markPullRequestReadyForReview"),
}


def query(call: ApiCall) -> ApiAnswer:
    text = call.field("query")
    fields = parse(text, call.field("variables", {}))
    objects = _Objects(call)
    if fields[0].name != "viewer" and not objects.may("pull_requests:read"):
        raise ApiRefusal(403, "Resource not accessible by integration")
    root = objects.mutations() if text.lstrip().startswith("mutation") else objects.queries()
    try:
        return ApiAnswer(body={"data": select(root, fields, call.world.without_fields)})
    except QueryError as error:
        return ApiAnswer(body={"data": None, "errors": [{"type": error.error_type, "message": str(error)}]})


class _Objects:
    """GitHub's objects with the fields that Bouncer asks for, as one token may read them."""

    def __init__(self, call: ApiCall) -> None:
        assert call.token is not None
        self._call, self._token = call, call.token
        self._world, self._render = call.world, call.render

    def may(self, permission: str) -> bool:
        return apps.allows(self._token, permission)

    def queries(self) -> Json:
        bot = self._call.bot
        return {
            "viewer": {"login": bot.login, "databaseId": bot.id},
            "repository": self._repository,
            "__type": self._type,
        }

    def mutations(self) -> Json:
        return {
            "__typename": "Mutation",
            "convertPullRequestToDraft": partial(self._set_draft, True),
            "markPullRequestReadyForReview": partial(self._set_draft, False),
            "minimizeComment": self._minimize,
        }

    def _type(self, arguments: Arguments) -> Json:
        name = arguments["name"]
        fields = [field for field in _FIELDS[name] if f"{name}.{field}" not in self._world.without_fields]
        return {"fields": [{"name": field} for field in fields]}

    def _set_draft(self, draft: bool, arguments: Arguments) -> Json:
        """Convert a pull request to a draft or back. GitHub asks for ``contents: write`` as well."""
        self._demand("contents:write", "pull_requests:write")
        node_id = arguments["input"]["pullRequestId"]
        for issue in self._all_pulls():
            if issue.pull and self._render.issue(issue)["node_id"] == node_id:
                if issue.pull.draft != draft:
                    self._call.operations.set_draft(issue, draft, self._call.bot)
                return {"pullRequest": {"isDraft": draft}}
        raise QueryError("NOT_FOUND", "Could not resolve to a node")

    def _minimize(self, arguments: Arguments) -> Json:
        self._demand("pull_requests:write")
        for issue in self._all_pulls():
            for comment in issue.pull.comments if issue.pull else ():
                if comment.node_id == arguments["input"]["subjectId"]:
                    comment.minimized = arguments["input"]["classifier"]
                    return {"minimizedComment": {"isMinimized": True}}
        raise QueryError("NOT_FOUND", "Could not resolve to a node")

    def _demand(self, *permissions: str) -> None:
        if not all(map(self.may, permissions)):
            raise QueryError("FORBIDDEN", "Resource not accessible by integration")

    def _all_pulls(self) -> Iterable[IssueState]:
        issues = (issue for place in self._world.repositories.values() for issue in place.issues.values())
        return (issue for issue in issues if issue.pull)

    def _repository(self, arguments: Arguments) -> Json:
        repository = self._world.repository(f"{arguments['owner']}/{arguments['name']}")
        if repository is None or repository.full_name not in self._token.repositories:
            raise QueryError("NOT_FOUND", "Could not resolve to a Repository")
        return {
            "issue": partial(self._numbered, repository, "Issue"),
            "pullRequest": partial(self._numbered, repository, "PullRequest"),
            "issues": partial(self._listed, repository, "Issue"),
            "pullRequests": partial(self._listed, repository, "PullRequest"),
            "defaultBranchRef": {"target": {"history": partial(self._commits, repository)}},
        }

    def _numbered(self, repository: RepositoryState, kind: str, arguments: Arguments) -> Json:
        issue = repository.issues.get(arguments["number"])
        if issue is None or _kind(issue) != kind:
            raise QueryError("NOT_FOUND", f"Could not resolve to a {kind}")
        return self._subject(issue)

    def _listed(self, repository: RepositoryState, kind: str, arguments: Arguments) -> Json:
        issues = [
            issue
            for issue in repository.issues.values()
            if _kind(issue) == kind and _state(issue) == arguments["states"]
        ]
        newest_first = arguments.get("orderBy", {}).get("direction") == "DESC"
        issues.sort(key=lambda issue: issue.number, reverse=newest_first)
        return _connection([self._subject(issue) for issue in issues])(arguments)

    def _commits(self, repository: RepositoryState, arguments: Arguments) -> Json:
        since = datetime.fromisoformat(arguments["since"])
        shas = self._world.ancestors(repository.branches[repository.default_branch])
        commits = [commit for sha in shas if (commit := self._world.commits[sha]).at >= since]
        nodes = [
            {"oid": commit.sha, "message": commit.message, "committedDate": _time(commit.at)} for commit in commits
        ]
        return _connection(nodes)(arguments)

    def _subject(self, issue: IssueState) -> Json:
        """Return an issue or a pull request."""
        return {
            "__typename": _kind(issue),
            "id": self._render.issue(issue)["node_id"],
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "url": self._render.page(issue),
            "state": _state(issue),
            "createdAt": _time(issue.created_at),
            "updatedAt": _time(self._world.now()),
            "author": _user(issue.author),
            "authorAssociation": self._render.association(issue.repository, issue.author),
            "repository": {"nameWithOwner": issue.repository.full_name},
            "comments": _connection([self._comment(comment, "createdAt") for comment in issue.comments]),
            # GitHub lists the versions of a text from new to old.
            "userContentEdits": _connection(
                [{"diff": body, "deletedAt": None} for body in reversed(issue.bodies)]
            ),
            "timelineItems": partial(_timeline, issue),
            **(self._issue(issue) if issue.pull is None else self._pull(issue, issue.pull)),
        }

    def _comment(self, comment: CommentState, time: str) -> Json:
        return {
            time: _time(comment.created_at),
            "authorAssociation": self._render.association(comment.issue.repository, comment.author),
            "author": _user(comment.author),
        }

    def _issue(self, issue: IssueState) -> Json:
        return {
            "closedAt": _time(issue.closed_at),
            "stateReason": (issue.state_reason or "completed").upper(),
            "labels": _connection([{"name": label} for label in issue.labels]),
            "assignees": _connection([_user(user) for user in issue.assignees]),
            "milestone": {"title": issue.milestone} if issue.milestone else None,
            "closedByPullRequestsReferences": partial(self._closed_by, issue),
        }

    def _closed_by(self, issue: IssueState, arguments: Arguments) -> Json:
        """Return the pull requests that close an issue; closed ones only if they are asked for."""
        link = (issue.repository.full_name, issue.number)
        pulls = [
            self._subject(other)
            for other in issue.repository.issues.values()
            if other.pull and link in other.pull.closes
        ]
        visible_pulls = [pull for pull in pulls if arguments.get("includeClosedPrs") or pull["state"] != "CLOSED"]
        return _connection(visible_pulls)(arguments)

    def _pull(self, issue: IssueState, pull: Pull) -> Json:
        changed = diffs.changes(*self._world.pull_files(pull))
        threads = [
            {"isResolved": comment.resolved, "comments": _connection([{"fullDatabaseId": str(comment.id)}])}
            for comment in pull.comments
            if comment.in_reply_to is None
        ]
        last_commit = {"commit": {"committedDate": _time(self._world.commits[pull.head_sha].at)}}
        return {
            "isDraft": pull.draft,
            "merged": pull.merged,
            "mergedAt": _time(pull.merged_at),
            "mergeCommit": {"oid": pull.merge_sha},
            "headRefOid": pull.head_sha,
            "baseRefOid": pull.base_sha,
            "baseRefName": pull.base_ref,
            "additions": sum(file.additions for file in changed),
            "deletions": sum(file.deletions for file in changed),
            "changedFiles": len(changed),
            "files": _connection([{"path": file.path, "changeType": file.status.upper()} for file in changed]),
            "commits": _connection([last_commit]),
            # GitHub makes a review of every comment on a line.
            "reviews": _connection([self._comment(comment, "submittedAt") for comment in pull.comments]),
            "reviewThreads": _connection(threads),
            "closingIssuesReferences": partial(self._closing, pull),
        }

    def _closing(self, pull: Pull, arguments: Arguments) -> Json:
        """Return the linked issues; None, as GitHub answers, for one that the token may not read."""
        nodes: list[Json | None] = []
        for name, number in pull.closes:
            place = self._world.repositories[name]
            is_readable = not place.private or name in self._token.repositories
            nodes.append(self._subject(place.issues[number]) if is_readable else None)
        return _connection(nodes)(arguments)


def _kind(issue: IssueState) -> str:
    return "PullRequest" if issue.pull else "Issue"


def _state(issue: IssueState) -> str:
    return "MERGED" if issue.pull and issue.pull.merged else issue.state.upper()


def _timeline(issue: IssueState, arguments: Arguments) -> Json:
    events: dict[str, list[Json]] = {
        "RENAMED_TITLE_EVENT": [{"previousTitle": title} for title in issue.titles],
        "LABELED_EVENT": [{"createdAt": _time(at), "label": {"name": name}} for name, at in issue.labelled],
        "REOPENED_EVENT": [{"createdAt": _time(at)} for at in issue.reopened_at],
    }
    return _connection(events[arguments["itemTypes"]])(arguments)


def _connection(nodes: Sequence[Json | None]) -> Connection:
    """Return the field of a list, which has the arguments ``first`` and ``after``, or ``last``."""

    def page(arguments: Arguments) -> Json:
        some = nodes[-arguments["last"] :] if "last" in arguments else nodes
        start = int(arguments.get("after") or 0)
        end = start + arguments.get("first", len(some))
        return {
            "totalCount": len(nodes),
            "nodes": list(some[start:end]),
            "pageInfo": {"hasNextPage": end < len(some), "endCursor": str(end)},
        }

    return page


def _user(user: User) -> Json:
    return {"__typename": user.type, "login": user.login.removesuffix("[bot]")}


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


ROUTES = (Route("POST", "/graphql", query, "metadata:read"),)
