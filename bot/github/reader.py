"""Reading a repository on GitHub."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from bot.core.errors import ForgeError, NotFound
from bot.core.subjects import (
    INSIDERS,
    PERMISSIONS,
    Actor,
    CheckRun,
    Comment,
    Issue,
    Permission,
    PullRequest,
    Repository,
    ReviewComment,
)
from bot.github import archive, payloads
from bot.github.http import PER_PAGE, Client, Query, below, segment
from bot.github.payloads import nodes, read
from bot.github.protocol import (
    MAX_TAGS,
    ClaimedIssue,
    IssueLink,
    OpenPull,
    PostedReview,
    PullDiff,
    PullFacts,
    Reactions,
    SourceTree,
)

T = TypeVar("T")

_DIFF = "application/vnd.github.diff"

_OF_PULL = """
query ($owner: String!, $name: String!, $number: Int!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      CONNECTION(first: $first, after: $after) { nodes { NODE } pageInfo { hasNextPage endCursor } }
    }
  }
}
"""


def _of_pull(connection: str, node: str) -> str:
    return _OF_PULL.replace("CONNECTION", connection).replace("NODE", node)


_CLOSING = _of_pull("closingIssuesReferences", "number repository { nameWithOwner }")
_THREADS = _of_pull("reviewThreads", "isResolved comments(first: 1) { nodes { fullDatabaseId } }")

#: A path that git writes as it stands.
_PLAIN = re.compile(r'[^"\\\x00-\x1f\x7f-\U0010ffff]*')

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

_OPEN_ISSUES = """
query ($owner: String!, $name: String!) {
  repository(owner: $owner, name: $name) { issues(states: OPEN) { totalCount } }
}
"""

_CLOSED_BY = "closedByPullRequestsReferences(first: 50) { nodes { number state repository { nameWithOwner } } }"
_ISSUE = f"""
query ($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{ issue(number: $number) {{ {_CLOSED_BY} }} }}
}}
"""
_FACTS = f"""
query ($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{
    pullRequest(number: $number) {{
      id number title body state isDraft merged headRefOid baseRefName authorAssociation
      author {{ __typename login }}
      additions deletions changedFiles
      files(first: 100) {{ nodes {{ path changeType }} }}
      closingIssuesReferences(first: 10) {{
        nodes {{
          number title state
          repository {{ nameWithOwner }}
          author {{ __typename login }}
          labels(first: 50) {{ nodes {{ name }} }}
          assignees(first: 10) {{ nodes {{ login }} }}
          milestone {{ title }}
          {_CLOSED_BY}
        }}
      }}
    }}
  }}
}}
"""

_PULLS = """
query ($owner: String!, $name: String!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequests(states: OPEN, first: $first, after: $after, orderBy: {field: CREATED_AT, direction: ASC}) {
      nodes {
        number title isDraft createdAt updatedAt headRefOid
        author { login }
        commits(last: 1) { nodes { commit { committedDate } } }
        comments(last: 30) { nodes { createdAt authorAssociation author { __typename login } } }
        reviews(last: 30) { nodes { submittedAt authorAssociation author { __typename login } } }
      }
      pageInfo { hasNextPage endCursor }
    }
  }
}
"""
#: Pull requests of one page.
_PULLS_PAGE = 50

#: The GraphQL queries of this module.
QUERIES = (_CLOSING, _THREADS, _OPEN_ISSUES, _ISSUE, _FACTS, _PULLS)


class GitHubForge:
    """A ``Forge``; see the protocol for what each method promises."""

    def __init__(
        self,
        client: Client,
        repository: str,
        identity: Callable[[Callable[[str], Any]], Actor],
        archives: archive.Archives,
    ) -> None:
        self._client = client
        self._repository = repository
        self._identity = identity
        self._archives = archives
        self._path = f"/repos/{quote(repository)}"

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Any:
        owner, _, name = self._repository.partition("/")
        return self._client.graphql(query, {"owner": owner, "name": name, **variables})

    @property
    def repository(self) -> str:
        return self._repository

    def about(self) -> Repository:
        return read(payloads.repository, self._client.get(self._path))

    def identity(self) -> Actor:
        return self._identity(self._client.get)

    def issue(self, number: int) -> Issue:
        issue = read(payloads.issue, self._client.get(f"{self._path}/issues/{number}"))
        if issue.number != number:
            raise NotFound(f"#{number} was transferred to another repository")
        return issue

    def open_issues(self, limit: int) -> tuple[Issue, ...]:
        """List the newest open issues, ``limit`` at most, without pull requests."""
        values = self._client.pages(
            f"{self._path}/issues", {"state": "open", "sort": "created", "direction": "desc"}
        )
        issues = islice((value for value in values if "pull_request" not in value), limit)
        return tuple(read(payloads.issue, value) for value in issues)

    def issue_page(
        self, state: Literal["open", "closed"], page: int, since: datetime | None = None
    ) -> tuple[tuple[Issue, ...], bool]:
        """Return a page of issues and pull requests, oldest first, and True if more follow.

        ``since`` leaves out those that did not change later.
        """
        return self._page("/issues", payloads.issue, page, since, state=state)

    def comment_page(self, page: int, since: datetime) -> tuple[tuple[tuple[int, Comment], ...], bool]:
        """Return a page of comments with the numbers of their subjects, and True if more follow.

        ``since`` leaves out those that did not change later.
        """
        return self._page("/issues/comments", payloads.numbered_comment, page, since)

    def _page(
        self, path: str, convert: Callable[[Any], T], page: int, since: datetime | None, **more: str
    ) -> tuple[tuple[T, ...], bool]:
        query: Query = {**more, "sort": "created", "direction": "asc", "per_page": PER_PAGE, "page": page}
        if since is not None:
            query = {**query, "since": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}
        items = read(lambda values: tuple(map(convert, values)), self._client.value(self._path + path, query))
        return items, len(items) == PER_PAGE

    def open_issue_count(self) -> int | None:
        """Return the number of open issues; None without a token, which GraphQL needs."""
        try:
            data = self.graphql(_OPEN_ISSUES, {})
        except ForgeError:
            return None
        return read(lambda value: int(value["repository"]["issues"]["totalCount"]), data)

    def comments(self, number: int) -> tuple[Comment, ...]:
        return self._list(f"/issues/{number}/comments", payloads.comment)

    def pull_request(self, number: int) -> PullRequest:
        return read(payloads.pull_request, self._client.get(f"{self._path}/pulls/{number}"))

    def diff(self, number: int) -> PullDiff:
        try:
            text = self._client.text(f"{self._path}/pulls/{number}", _DIFF)
        except ForgeError as error:
            if error.status not in (406, 422):
                raise
        else:
            return PullDiff(text=text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        # GitHub refuses to show a large diff as a whole, but lists its files.
        files = list(self._client.pages(f"{self._path}/pulls/{number}/files"))
        changed = self._client.get(f"{self._path}/pulls/{number}").get("changed_files") or 0
        return read(lambda entries: assemble(entries, changed), files)

    def linked_issues(self, number: int) -> tuple[IssueLink, ...]:
        return self._connection(_CLOSING, ("pullRequest", "closingIssuesReferences"), _link, number=number)

    def pull_facts(self, number: int) -> PullFacts:
        convert = partial(_facts, repository=self._repository)
        return read(
            lambda data: convert(data["repository"]["pullRequest"]), self.graphql(_FACTS, {"number": number})
        )

    def open_pulls(self, limit: int) -> tuple[OpenPull, ...]:
        """Return the oldest open pull requests. It costs a request for 50 of them."""
        return self._connection(_PULLS, ("pullRequests",), _open_pull, first=_PULLS_PAGE, limit=limit)

    def pulls_for_issue(self, number: int) -> tuple[int, ...]:
        convert = partial(_open_pulls, repository=self._repository)
        return read(lambda data: convert(data["repository"]["issue"]), self.graphql(_ISSUE, {"number": number}))

    def review_comments(self, number: int) -> tuple[ReviewComment, ...]:
        return self._list(f"/pulls/{number}/comments", payloads.review_comment)

    def reviews(self, number: int) -> tuple[PostedReview, ...]:
        return self._list(
            f"/pulls/{number}/reviews",
            lambda value: payloads.build(PostedReview, value, author=payloads.actor(value.get("user"))),
        )

    def check_runs(self, sha: str, name: str) -> tuple[CheckRun, ...]:
        query: Query = {"check_name": name, "filter": "all"}
        path = f"{self._path}/commits/{segment(sha)}/check-runs"
        runs = list(self._client.pages(path, query, "check_runs"))
        slug = self.identity().login.removesuffix("[bot]")
        build_run = partial(payloads.build, CheckRun)
        own_runs = [read(build_run, run) for run in runs if (run.get("app") or {}).get("slug") == slug]
        return tuple(sorted(own_runs, key=lambda run: run.id, reverse=True))

    def pulls_for_commit(self, sha: str) -> tuple[PullRequest, ...]:
        return self._list(f"/commits/{segment(sha)}/pulls", payloads.pull_request)

    def permission(self, login: str) -> Permission:
        try:
            value = self._client.get(f"{self._path}/collaborators/{segment(login)}/permission")
        except NotFound:
            return "none"
        return read(_permission, value)

    def reactions(self, comment_id: int, *, review: bool = False) -> Reactions:
        place = "pulls" if review else "issues"
        path = f"{self._path}/{place}/comments/{comment_id}/reactions"
        return read(_reactions, list(self._client.pages(path)))

    def resolved_threads(self, number: int) -> tuple[int, ...]:
        firsts = self._connection(_THREADS, ("pullRequest", "reviewThreads"), _resolved, number=number)
        return tuple(first for first in firsts if first is not None)

    def head(self, ref: str) -> str:
        value = self._client.get(f"{self._path}/git/ref/heads/{below(ref)}")
        return read(lambda reference: str(reference["object"]["sha"]), value)

    def commits(self, sha: str, limit: int) -> tuple[str, ...]:
        values = islice(self._client.pages(f"{self._path}/commits", {"sha": sha}), limit)
        first_parents = dict(read(_first_parent, value) for value in values)
        chain = []
        while sha in first_parents:
            chain.append(sha)
            sha = first_parents[sha]
        return tuple(chain)

    def tags(self) -> Mapping[str, str]:
        values = islice(self._client.pages(f"{self._path}/tags"), MAX_TAGS)
        return dict(read(lambda tag: (str(tag["name"]), str(tag["commit"]["sha"])), value) for value in values)

    def file(self, path: str, ref: str) -> bytes:
        return self._file(self._path, path, {"ref": ref})

    def policy_file(self, path: str, repository: Repository) -> bytes:
        """Read a file that decides policy from the default branch.

        A redirect is followed only to the same repository, renamed since its name was read.
        """
        query = {"ref": repository.default_branch}
        return self._file(self._path, path, query, redirects=f"/repositories/{repository.id}/")

    def shared_file(self, path: str) -> bytes:
        """Read a file of the owner's public repository ``.github``. Raises NotFound if it was renamed."""
        owner = self._repository.partition("/")[0]
        return self._file(f"/repos/{quote(owner)}/.github", path, {}, redirects="")

    def _file(self, repository: str, path: str, query: Query, *, redirects: str = "/") -> bytes:
        value = self._client.value(f"{repository}/contents/{below(path)}", query, redirects=redirects)
        if not isinstance(value, dict) or value.get("type") != "file":
            raise NotFound(f"{path}: not a file")
        if value.get("encoding") != "base64":
            # Over 1 MB the contents come by their hash.
            blob = f"{repository}/git/blobs/{segment(str(value.get('sha')))}"
            value = self._client.value(blob, redirects=redirects)
        return read(lambda file: base64.b64decode(file["content"]), value)

    def checkout(self, ref: str, folder: Path) -> None:
        archive.unpack(self._client.location(f"{self._path}/tarball/{segment(ref)}"), folder)

    def sources(self, ref: str) -> SourceTree:
        sha = ref if _SHA.fullmatch(ref) else self.head(ref)
        return self._archives.tree(self._repository, sha, lambda folder: self.checkout(sha, folder))

    def _list(self, path: str, convert: Callable[[Any], T]) -> tuple[T, ...]:
        return tuple(read(convert, value) for value in self._client.pages(self._path + path))

    def _connection(
        self,
        query: str,
        place: tuple[str, ...],
        convert: Callable[[Any], T],
        *,
        first: int = 100,
        limit: int = sys.maxsize,
        **variables: object,
    ) -> tuple[T, ...]:
        """Read the nodes of a GraphQL connection, ``first`` in a request and ``limit`` in all."""
        items: tuple[T, ...] = ()
        after: str | None = None
        while True:
            size = min(first, limit - len(items))
            data = self.graphql(query, {**variables, "first": size, "after": after})
            page = read(partial(payloads.page, place=("repository", *place), convert=convert), data)
            items, after = items + page.items, page.after
            if after is None or len(items) >= limit:
                return items


def _open_pull(node: Any) -> OpenPull:
    """Return a pull request of a list.

    Authors choose the dates of commits: none counts as later than the last event.
    """
    author = (node["author"] or {}).get("login") or ""
    created, updated = (datetime.fromisoformat(node[name]) for name in ("createdAt", "updatedAt"))
    commits = [
        min(updated, datetime.fromisoformat(item["commit"]["committedDate"])) for item in nodes(node["commits"])
    ]
    times: dict[bool, list[datetime]] = {True: [created, *commits], False: []}
    for item in (*nodes(node["comments"]), *nodes(node["reviews"])):
        account, at = item["author"] or {}, item.get("createdAt") or item.get("submittedAt")
        is_author = account.get("login") == author
        # A review that is not submitted has no time.
        if at and (is_author or (item["authorAssociation"] in INSIDERS and account.get("__typename") == "User")):
            times[is_author].append(datetime.fromisoformat(at))
    return OpenPull(
        number=node["number"],
        title=node["title"],
        author=author,
        draft=node["isDraft"],
        head_sha=node["headRefOid"],
        created_at=created,
        author_at=max(times[True]),
        member_at=max(times[False], default=None),
    )


def _reactions(values: list[Any]) -> Reactions:
    def by(content: str) -> tuple[Actor, ...]:
        return tuple(payloads.actor(value.get("user")) for value in values if value["content"] == content)

    return Reactions(up=by("+1"), down=by("-1"))


def _first_parent(commit: Any) -> tuple[str, str]:
    parents = commit["parents"]
    return str(commit["sha"]), str(parents[0]["sha"]) if parents else ""


def _facts(value: Any, *, repository: str) -> PullFacts:
    files = nodes(value.get("files"))
    pull = payloads.build(
        PullRequest,
        value,
        author=payloads.actor(value.get("author")),
        state="open" if value["state"] == "OPEN" else "closed",
        draft=value["isDraft"],
        head_sha=value["headRefOid"],
        base_ref=value["baseRefName"],
        base_repository=repository,
    )
    return PullFacts(
        pull=pull,
        node_id=value["id"],
        association=value["authorAssociation"],
        lines=value["additions"] + value["deletions"],
        changed_files=value["changedFiles"],
        paths=tuple(file["path"] for file in files),
        renames=any(file["changeType"] in ("RENAMED", "COPIED") for file in files),
        claims=tuple(
            _claim(node, repository)
            for node in value["closingIssuesReferences"]["nodes"]
            if node and node["repository"]["nameWithOwner"].lower() == repository.lower()
        ),
    )


def _claim(node: Any, repository: str) -> ClaimedIssue:
    assignees = tuple(user["login"] for user in node["assignees"]["nodes"] if user)
    milestone = (node.get("milestone") or {}).get("title") or ""
    issue = payloads.build(
        Issue,
        node,
        author=payloads.actor(node.get("author")),
        state="open" if node["state"] == "OPEN" else "closed",
        labels=tuple(label["name"] for label in node["labels"]["nodes"]),
        claimed=bool(assignees or milestone),
        assignees=assignees,
        milestone=milestone,
    )
    return ClaimedIssue(issue=issue, pulls=_open_pulls(node, repository=repository))


def _open_pulls(issue: Any, *, repository: str) -> tuple[int, ...]:
    return tuple(
        node["number"]
        for node in issue["closedByPullRequestsReferences"]["nodes"]
        if node and node["state"] == "OPEN" and node["repository"]["nameWithOwner"].lower() == repository.lower()
    )


def _link(node: Any) -> IssueLink:
    return IssueLink(repository=node["repository"]["nameWithOwner"], number=node["number"])


def _resolved(node: Any) -> int | None:
    """Return the first comment of a thread if the thread is resolved."""
    comments = node["comments"]["nodes"]
    return int(comments[0]["fullDatabaseId"]) if node["isResolved"] and comments else None


def _permission(value: Any) -> Permission:
    """Convert GitHub's role; an organisation's own role counts as the strongest standard role in it."""
    role = value.get("role_name")
    for permission in PERMISSIONS:
        if permission == role:
            return permission
    included = (value.get("user") or {}).get("permissions") or {}
    names = {"read": "pull", "triage": "triage", "write": "push", "maintain": "maintain", "admin": "admin"}
    granted = [permission for permission in PERMISSIONS if included.get(names.get(permission))]
    old = value.get("permission")
    return granted[-1] if granted else next((level for level in PERMISSIONS if level == old), "none")


def assemble(files: Sequence[Mapping[str, Any]], changed: int) -> PullDiff:
    """Build a diff from GitHub's list of changed files, if the whole is too large to be shown.

    ``changed`` is the number of changed files that GitHub counts; it lists 3,000 of them at most.
    """
    text = "".join(_file(file) for file in files if _is_shown(file))
    omitted = tuple(str(file["filename"]) for file in files if not _is_shown(file))
    return PullDiff(text=text, omitted=omitted, unlisted=max(changed - len(files), 0))


def _is_shown(file: Mapping[str, Any]) -> bool:
    """Return True unless the file is binary or too large: it then has no patch, and was not only renamed."""
    return "patch" in file or (file["status"] == "renamed" and not file.get("changes"))


def _file(file: Mapping[str, Any]) -> str:
    path, status = str(file["filename"]), file["status"]
    before = str(file.get("previous_filename") or path)
    old, new = quoted(f"a/{before}"), quoted(f"b/{path}")
    lines = [f"diff --git {old} {new}"]
    if status == "added":
        lines.append("new file mode 100644")
    elif status == "removed":
        lines.append("deleted file mode 100644")
    elif status in ("renamed", "copied"):
        word = "rename" if status == "renamed" else "copy"
        lines += [f"{word} from {quoted(before)}", f"{word} to {quoted(path)}"]
    if patch := file.get("patch"):
        lines.append(f"--- {'/dev/null' if status == 'added' else old}")
        lines.append(f"+++ {'/dev/null' if status == 'removed' else new}")
        lines.append(str(patch))
    return "\n".join(lines) + "\n"


def quoted(path: str) -> str:
    """Write a path as git does: in quotes, with escapes, if it holds unusual characters."""
    if _PLAIN.fullmatch(path):
        return path
    escapes = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}

    def escape(char: str) -> str:
        if char in escapes:
            return escapes[char]
        if " " <= char <= "~":
            return char
        return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))

    return '"' + "".join(map(escape, path)) + '"'
