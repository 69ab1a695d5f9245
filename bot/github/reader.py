"""Reading a repository on GitHub."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from bot.core.errors import ForgeError, NotFound
from bot.core.subjects import Actor, CheckRun, Comment, Issue, Permission, PullRequest, Repository, ReviewComment
from bot.github import archive, payloads
from bot.github.http import PER_PAGE, Client, Query, below, segment
from bot.github.payloads import read
from bot.github.protocol import (
    MAX_TAGS,
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


def _of_pull(connection: str, node: str) -> str:
    return f"""
query ($owner: String!, $name: String!, $number: Int!, $first: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{
    pullRequest(number: $number) {{
      {connection}(first: $first, after: $after) {{ nodes {{ {node} }} pageInfo {{ hasNextPage endCursor }} }}
    }}
  }}
}}
"""


_CLOSING = _of_pull("closingIssuesReferences", "number repository { nameWithOwner }")
_THREADS = _of_pull("reviewThreads", "isResolved comments(first: 1) { nodes { fullDatabaseId } }")

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
      number title body state merged additions deletions
      node_id: id draft: isDraft head_sha: headRefOid base_ref: baseRefName association: authorAssociation
      changed_files: changedFiles
      user: author {{ __typename login }}
      files(first: 100) {{ nodes {{ path changeType }} }}
      closingIssuesReferences(first: 10) {{
        nodes {{
          number title state
          repository {{ nameWithOwner }}
          user: author {{ __typename login }}
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
        number title draft: isDraft created_at: createdAt updated_at: updatedAt head_sha: headRefOid
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
        self.repository = repository
        self._identity = identity
        self._archives = archives
        self._path = f"/repos/{quote(repository)}"

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Any:
        owner, _, name = self.repository.partition("/")
        return self._client.graphql(query, {"owner": owner, "name": name, **variables})

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
        return read(lambda entries: payloads.assemble(entries, changed), files)

    def linked_issues(self, number: int) -> tuple[IssueLink, ...]:
        return self._connection(
            _CLOSING, ("pullRequest", "closingIssuesReferences"), payloads.issue_link, number=number
        )

    def pull_facts(self, number: int) -> PullFacts:
        convert = partial(payloads.pull_facts, self.repository)
        return read(convert, self.graphql(_FACTS, {"number": number}))

    def open_pulls(self, limit: int) -> tuple[OpenPull, ...]:
        """Return the oldest open pull requests. It costs a request for 50 of them."""
        return self._connection(_PULLS, ("pullRequests",), payloads.open_pull, first=_PULLS_PAGE, limit=limit)

    def pulls_for_issue(self, number: int) -> tuple[int, ...]:
        data = self.graphql(_ISSUE, {"number": number})
        return read(lambda data: payloads.closing_pulls(self.repository, data["repository"]["issue"]), data)

    def review_comments(self, number: int) -> tuple[ReviewComment, ...]:
        return self._list(f"/pulls/{number}/comments", payloads.review_comment)

    def reviews(self, number: int) -> tuple[PostedReview, ...]:
        return self._list(f"/pulls/{number}/reviews", payloads.posted_review)

    def check_runs(self, sha: str, name: str) -> tuple[CheckRun, ...]:
        query: Query = {"check_name": name, "filter": "all"}
        path = f"{self._path}/commits/{segment(sha)}/check-runs"
        runs = list(self._client.pages(path, query, "check_runs"))
        slug = self.identity().login.removesuffix("[bot]")
        convert = partial(payloads.build, CheckRun)
        own_runs = [read(convert, run) for run in runs if (run.get("app") or {}).get("slug") == slug]
        return tuple(sorted(own_runs, key=lambda run: run.id, reverse=True))

    def pulls_for_commit(self, sha: str) -> tuple[PullRequest, ...]:
        return self._list(f"/commits/{segment(sha)}/pulls", payloads.pull_request)

    def permission(self, login: str) -> Permission:
        try:
            value = self._client.get(f"{self._path}/collaborators/{segment(login)}/permission")
        except NotFound:
            return "none"
        return read(payloads.permission, value)

    def reactions(self, comment_id: int, *, review: bool = False) -> Reactions:
        comments = "pulls/comments" if review else "issues/comments"
        path = f"{self._path}/{comments}/{comment_id}/reactions"
        return read(payloads.reactions, list(self._client.pages(path)))

    def resolved_threads(self, number: int) -> tuple[int, ...]:
        firsts = self._connection(
            _THREADS, ("pullRequest", "reviewThreads"), payloads.resolved_thread, number=number
        )
        return tuple(first for first in firsts if first is not None)

    def head(self, ref: str) -> str:
        value = self._client.get(f"{self._path}/git/ref/heads/{below(ref)}")
        return read(lambda reference: str(reference["object"]["sha"]), value)

    def commits(self, sha: str, limit: int) -> tuple[str, ...]:
        values = islice(self._client.pages(f"{self._path}/commits", {"sha": sha}), limit)
        first_parents = dict(read(payloads.first_parent, value) for value in values)
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
        """Read a file that decides policy from the default branch, whose name in an event may be an old one.

        A redirect is followed only to the same repository, renamed since its name was read.
        """
        return self._file(self._path, path, {}, redirects=f"/repositories/{repository.id}/")

    def shared_file(self, path: str) -> bytes:
        """Read a file of the owner's public repository ``.github``. Raises NotFound if it was renamed."""
        owner = self.repository.partition("/")[0]
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
        return self._archives.tree(self.repository, sha, lambda folder: self.checkout(sha, folder))

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
