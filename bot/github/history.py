"""Read a repository's past from GitHub, 50 issues or pull requests a request.

GitHub keeps every version of an edited text: the oldest ``UserContentEdit`` holds the text as it was opened (its
``diff`` is the whole text, despite its name), the first rename the title.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from bot.core.subjects import Issue, PullRequest, Repository
from bot.github.payloads import actor, build, is_in, nodes, page, read
from bot.github.protocol import Labelled, ListPage, Message, PastIssue, PastPull, PullDiff
from bot.github.reader import GitHubForge

T = TypeVar("T")

#: Issues or pull requests a request: with more, GitHub sometimes times out.
PER_PAGE = 50
#: Characters of a commit's message that are read.
_MESSAGE = 2000

_TEXT = """
  number title body html_url: url created_at: createdAt
  author { __typename login }
  userContentEdits(last: 1) { nodes { diff deletedAt } }
  renamed: timelineItems(first: 1, itemTypes: [RENAMED_TITLE_EVENT]) {
    nodes { ... on RenamedTitleEvent { previousTitle } }
  }
"""

_ISSUES = f"""
query ($owner: String!, $name: String!, $first: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{
    issues(states: [CLOSED], first: $first, after: $after, orderBy: {{field: CREATED_AT, direction: DESC}}) {{
      nodes {{
        {_TEXT}
        closedAt stateReason
        closedByPullRequestsReferences(first: 5, includeClosedPrs: true) {{ nodes {{ number merged }} }}
        labelled: timelineItems(last: 30, itemTypes: [LABELED_EVENT]) {{
          nodes {{ ... on LabeledEvent {{ createdAt label {{ name }} }} }}
        }}
        comments(last: 30) {{ nodes {{ createdAt author {{ __typename login }} }} }}
      }}
      pageInfo {{ hasNextPage endCursor }}
    }}
  }}
}}
"""

_PULLS = f"""
query ($owner: String!, $name: String!, $first: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{
    pullRequests(
      states: [MERGED], first: $first, after: $after, orderBy: {{field: CREATED_AT, direction: DESC}}
    ) {{
      nodes {{
        {_TEXT}
        mergedAt base_ref: baseRefName base_sha: baseRefOid head_sha: headRefOid
        mergeCommit {{ oid }}
        closingIssuesReferences(first: 5) {{
          nodes {{
            {_TEXT}
            repository {{ nameWithOwner }}
            reopened: timelineItems(last: 5, itemTypes: [REOPENED_EVENT]) {{
              nodes {{ ... on ReopenedEvent {{ createdAt }} }}
            }}
          }}
        }}
      }}
      pageInfo {{ hasNextPage endCursor }}
    }}
  }}
}}
"""

_COMMITS = """
query ($owner: String!, $name: String!, $first: Int!, $after: String, $since: GitTimestamp!) {
  repository(owner: $owner, name: $name) {
    defaultBranchRef {
      target {
        ... on Commit {
          history(first: $first, after: $after, since: $since) {
            nodes { oid message committedDate }
            pageInfo { hasNextPage endCursor }
          }
        }
      }
    }
  }
}
"""


class GitHubChronicle:
    """Closed issues, merged pull requests and commits, newest first; raises the errors of a ``Forge``."""

    def __init__(self, forge: GitHubForge) -> None:
        self._forge = forge

    def about(self) -> Repository:
        return self._forge.about()

    def diff(self, number: int) -> PullDiff:
        return self._forge.diff(number)

    def closed_issues(self, after: str | None) -> ListPage[PastIssue]:
        return self._page(_ISSUES, ("issues",), _issue, after=after)

    def merged_pulls(self, after: str | None) -> ListPage[PastPull]:
        return self._page(_PULLS, ("pullRequests",), partial(_pull, self._forge.repository), after=after)

    def messages(self, since: datetime, after: str | None) -> ListPage[Message]:
        """Commits on the default branch."""
        place = ("defaultBranchRef", "target", "history")
        return self._page(_COMMITS, place, _message, after=after, first=100, since=since.isoformat())

    def _page(
        self, query: str, place: tuple[str, ...], convert: Callable[[Any], T], **more: object
    ) -> ListPage[T]:
        data = self._forge.graphql(query, {"first": PER_PAGE, **more})
        return read(partial(page, place=("repository", *place), convert=convert), data)


def _text_of(node: Mapping[str, Any]) -> tuple[Issue, bool]:
    """Return an issue or pull request as opened, and False if GitHub does not have that text any more."""
    title = next((rename["previousTitle"] for rename in nodes(node["renamed"])), node["title"])
    edit = next(iter(nodes(node["userContentEdits"])), None)
    body = node.get("body") or "" if edit is None else edit["diff"]
    whole = edit is None or (edit["deletedAt"] is None and body is not None)
    author = actor(node["author"])
    return build(Issue, node, title=title, body=body if whole else "", author=author, comments=0), whole


def _issue(node: Any) -> PastIssue:
    issue, whole = _text_of(node)
    author_comments = [
        comment["createdAt"]
        for comment in nodes(node["comments"])
        if actor(comment["author"]).login == issue.author.login
    ]
    return PastIssue(
        issue=issue,
        whole=whole,
        closed_at=node["closedAt"],
        state_reason=(node["stateReason"] or "").lower() or None,
        closed_by=tuple(
            closing["number"] for closing in nodes(node["closedByPullRequestsReferences"]) if closing["merged"]
        ),
        labelled=tuple(
            Labelled(name=labelling["label"]["name"], at=labelling["createdAt"])
            for labelling in nodes(node["labelled"])
        ),
        author_spoke_at=author_comments[-1] if author_comments else None,
    )


def _pull(repository: str, node: Any) -> PastPull:
    text, whole = _text_of(node)
    issue_nodes = [closing for closing in nodes(node["closingIssuesReferences"]) if is_in(repository, closing)]
    issues = [_text_of(issue_node) for issue_node in issue_nodes]
    return PastPull(
        pull=build(
            PullRequest,
            node,
            title=text.title,
            body=text.body,
            author=text.author,
            head_repository=repository,
            base_repository=repository,
        ),
        whole=whole and all(is_whole for _, is_whole in issues),
        merged_at=node["mergedAt"],
        merge_sha=(node["mergeCommit"] or {}).get("oid") or "",
        issues=tuple(issue for issue, _ in issues),
        reopened=tuple(
            event["createdAt"] for issue_node in issue_nodes for event in nodes(issue_node["reopened"])
        ),
    )


def _message(node: Any) -> Message:
    return Message(sha=node["oid"], text=node["message"][:_MESSAGE], at=node["committedDate"])
