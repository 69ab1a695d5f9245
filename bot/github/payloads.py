"""Convert GitHub's JSON to our values, for webhooks and the API.

Optional fields may be missing; a missing required field raises KeyError or ValidationError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import getitem
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from bot.core.errors import TransientError
from bot.core.frozen import Frozen
from bot.core.subjects import (
    INSIDERS,
    PERMISSIONS,
    Actor,
    Comment,
    Issue,
    Permission,
    PullRequest,
    Repository,
    ReviewComment,
)
from bot.github.protocol import (
    ClaimedIssue,
    IssueLink,
    ListPage,
    OpenPull,
    PostedReview,
    PullDiff,
    PullFacts,
    Reactions,
)

Json = Mapping[str, Any]
T = TypeVar("T")
M = TypeVar("M", bound=Frozen)

#: Valid in JSON, but not in a database or a file: lone surrogates, and NUL.
_UNSTORABLE = re.compile(r"[\ud800-\udfff\0]")
_ESCAPED = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")


def load_json(text: str | bytes) -> Any:
    """Parse JSON, with U+FFFD for every character that cannot be stored.

    Raises ValueError or RecursionError if it is not JSON, nests too deeply, or holds a number of more than
    64 bits.
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    # JSON is UTF-8 here; the parser would guess the encoding of bytes.
    value = json.loads(text if isinstance(text, str) else text.decode(), parse_int=_integer)
    return _storable(value) if _ESCAPED.search(raw) else value


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= (value := int(digits)) < 2**63:
        raise ValueError("a number is too large")
    return value


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value


def actor(user: Json | None) -> Actor:
    """Convert a user; ``ghost`` if the account was deleted."""
    if not user:
        return Actor(id=0, login="ghost")
    login = str(user.get("login") or "ghost")
    kinds = (user.get("type"), user.get("__typename"))
    return Actor(id=user.get("id") or 0, login=login, is_bot="Bot" in kinds or login.endswith("[bot]"))


def repository(value: Json) -> Repository:
    owner, _, name = str(value["full_name"]).partition("/")
    if not owner or not name:
        raise TypeError("full_name")
    return build(Repository, value, id=value.get("id") or 0, owner=owner, name=name)


def issue(value: Json) -> Issue:
    """Convert an issue of REST or a webhook, or of a query that asks for the same names."""
    assignees = _items(value, "assignees")
    return build(
        Issue,
        value,
        title=value.get("title") or "",
        author=actor(value.get("user")),
        state=_state(value),
        labels=_labels(value),
        type=str((value.get("type") or {}).get("name") or ""),
        is_pull_request=bool(value.get("pull_request")),
        claimed=bool(assignees or value.get("milestone")),
        assignees=tuple(str(user.get("login") or "") for user in assignees),
        milestone=str((value.get("milestone") or {}).get("title") or ""),
        closed_by=(value.get("closed_by") or {}).get("id"),
    )


def pull_request(value: Json) -> PullRequest:
    head, base = value["head"], value["base"]
    return build(
        PullRequest,
        value,
        title=value.get("title") or "",
        author=actor(value.get("user")),
        state=_state(value),
        merged=bool(value.get("merged") or value.get("merged_at")),
        head_sha=head["sha"],
        head_ref=head.get("ref") or "",
        head_repository=(head.get("repo") or {}).get("full_name"),
        base_sha=base.get("sha") or "",
        base_ref=base.get("ref") or "main",
        base_repository=(base.get("repo") or {}).get("full_name") or "",
        labels=_labels(value),
    )


def comment(value: Json) -> Comment:
    app = value.get("performed_via_github_app") or {}
    return build(Comment, value, author=actor(value.get("user")), by_app=app.get("id"))


def numbered_comment(value: Json) -> tuple[int, Comment]:
    """Return a comment with the number of its issue or pull request."""
    return int(str(value["issue_url"]).rpartition("/")[2]), comment(value)


def review_comment(value: Json) -> ReviewComment:
    return build(
        ReviewComment,
        value,
        author=actor(value.get("user")),
        path=value.get("path") or "",
        side="LEFT" if value.get("side") == "LEFT" else "RIGHT",
        in_reply_to=value.get("in_reply_to_id"),
    )


def posted_review(value: Json) -> PostedReview:
    return build(PostedReview, value, author=actor(value.get("user")))


def open_pull(node: Any) -> OpenPull:
    """Return a pull request of a list.

    Authors choose the dates of commits: none counts as later than the last event.
    """
    author = (node["author"] or {}).get("login") or ""
    created, updated = (datetime.fromisoformat(node[name]) for name in ("created_at", "updated_at"))
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
    return build(
        OpenPull,
        node,
        author=author,
        author_at=max(times[True]),
        member_at=max(times[False], default=None),
    )


def reactions(values: list[Any]) -> Reactions:
    def by(content: str) -> tuple[Actor, ...]:
        return tuple(actor(value.get("user")) for value in values if value["content"] == content)

    return Reactions(up=by("+1"), down=by("-1"))


def first_parent(commit: Any) -> tuple[str, str]:
    parents = commit["parents"]
    return str(commit["sha"]), str(parents[0]["sha"]) if parents else ""


def pull_facts(repository: str, data: Any) -> PullFacts:
    value = data["repository"]["pullRequest"]
    files = nodes(value.get("files"))
    author = actor(value.get("user"))
    return build(
        PullFacts,
        value,
        pull=build(PullRequest, value, author=author, state=_state(value), base_repository=repository),
        lines=value["additions"] + value["deletions"],
        paths=tuple(file["path"] for file in files),
        renames=any(file["changeType"] in ("RENAMED", "COPIED") for file in files),
        claims=tuple(
            ClaimedIssue(issue=issue(node), pulls=closing_pulls(repository, node))
            for node in nodes(value["closingIssuesReferences"])
            if is_in(repository, node)
        ),
    )


def is_in(repository: str, node: Any) -> bool:
    """Return True if the issue or pull request is one of the repository."""
    return bool(node["repository"]["nameWithOwner"].lower() == repository.lower())


def closing_pulls(repository: str, issue: Any) -> tuple[int, ...]:
    """Return the open pull requests of the repository that close an issue."""
    return tuple(
        node["number"]
        for node in nodes(issue["closedByPullRequestsReferences"])
        if node["state"] == "OPEN" and is_in(repository, node)
    )


def issue_link(node: Any) -> IssueLink:
    return IssueLink(repository=node["repository"]["nameWithOwner"], number=node["number"])


def resolved_thread(node: Any) -> int | None:
    """Return the first comment of a thread if the thread is resolved."""
    comments = node["comments"]["nodes"]
    return int(comments[0]["fullDatabaseId"]) if node["isResolved"] and comments else None


def permission(value: Any) -> Permission:
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


def _labels(value: Json) -> tuple[str, ...]:
    labels = _items(value, "labels")
    return tuple(label if isinstance(label, str) else str(label.get("name") or "") for label in labels)


def _items(value: Json, name: str) -> list[Any]:
    """Return a list, which is a connection in answers of GraphQL."""
    items = value.get(name) or ()
    return nodes(items) if isinstance(items, dict) else [item for item in items if item]


def _state(value: Json) -> Literal["open", "closed"]:
    return "closed" if str(value.get("state")).lower() in ("closed", "merged") else "open"


def build(model: type[M], value: Json, **more: object) -> M:
    """Build a ``model`` from the fields with the same name at GitHub, nulls left out, and from ``more``."""
    same = {name: value[name] for name in model.model_fields if value.get(name) is not None}
    return model(**{**same, **more})


def nodes(connection: Any) -> list[Any]:
    """Return the nodes of a connection; GitHub sends null for an empty one, and for a hidden node."""
    return [node for node in (connection or {}).get("nodes") or () if node]


def page(data: Json, place: tuple[str, ...], convert: Callable[[Json], T]) -> ListPage[T]:
    """Convert a page of the GraphQL connection at ``place``. A node that the token may not read is null."""
    connection = reduce(getitem, place, data)
    ends = connection["pageInfo"]
    items = tuple(convert(node) for node in connection["nodes"] if node)
    return ListPage(items=items, after=str(ends["endCursor"]) if ends["hasNextPage"] else None)


def parse_json(text: str, operation: str) -> Any:
    """Parse the JSON of an answer; None if it is empty. Raises TransientError if it is not JSON."""
    if not text:
        return None
    try:
        return load_json(text)
    except (ValueError, RecursionError):
        raise TransientError(f"{operation}: GitHub's answer is not JSON") from None


def read(convert: Callable[[Any], T], answer: Any) -> T:
    """Convert an answer. Raises TransientError if it is not what GitHub documents."""
    try:
        return convert(answer)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        kind = type(error).__name__
        detail = f" at {error.errors()[0]['loc']}" if isinstance(error, ValidationError) else f" {error}"
        raise TransientError(f"GitHub's answer is not what it documents: {kind}{detail[:100]}") from None


#: A path that git writes as it stands.
_PLAIN = re.compile(r'[^"\\\x00-\x1f\x7f-\U0010ffff]*')


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
    escapes = {ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r", ord('"'): '\\"', ord("\\"): "\\\\"}
    characters = (
        escapes.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in path.encode("utf-8", "surrogatepass")
    )
    return f'"{"".join(characters)}"'
