"""Convert GitHub's JSON to our values, for webhooks and the API.

Optional fields may be missing; a missing required field raises KeyError or ValidationError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import getitem
from typing import Any, TypeVar

from pydantic import ValidationError

from bot.core.errors import TransientError
from bot.core.frozen import Frozen
from bot.core.subjects import Actor, Comment, Issue, PullRequest, Repository, ReviewComment
from bot.github.protocol import ListPage

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
    return build(
        Issue,
        value,
        title=value.get("title") or "",
        author=actor(value.get("user")),
        state="closed" if value.get("state") == "closed" else "open",
        labels=_labels(value),
        type=str((value.get("type") or {}).get("name") or ""),
        is_pull_request=bool(value.get("pull_request")),
        claimed=bool(value.get("assignees") or value.get("milestone")),
        assignees=tuple(str(user.get("login") or "") for user in value.get("assignees") or ()),
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
        state="closed" if value.get("state") == "closed" else "open",
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


def _labels(value: Json) -> tuple[str, ...]:
    labels = value.get("labels") or ()
    return tuple(label if isinstance(label, str) else str(label.get("name") or "") for label in labels if label)


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
