"""Verify the signature of a GitHub delivery over its raw bytes, then parse it into an event. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qs

from pydantic import ValidationError

from bot.core import events
from bot.core.config import PATH
from bot.core.errors import InvalidSignature, MalformedDelivery
from bot.core.frozen import Frozen, first_fault
from bot.github.payloads import actor, comment, issue, load_json, pull_request, repository, review_comment

E = TypeVar("E", bound=Frozen)

#: GitHub's own limit on a payload.
MAX_BYTES = 25 * 1024 * 1024

#: Commits that GitHub lists in one push at most.
MAX_COMMITS = 2048

_FORM = re.compile(r"sha256=[0-9a-f]{64}")


def sign(body: bytes, secret: str) -> str:
    """Return the value of ``X-Hub-Signature-256`` for these bytes."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def check_form(signature: str) -> None:
    """Raise InvalidSignature if this cannot be the signature of any body."""
    if not signature.strip():
        raise InvalidSignature("the signature is missing")
    if not _FORM.fullmatch(signature.strip()):
        raise InvalidSignature("the signature does not match")


def verify(body: bytes, signature: str | None, secrets: Iterable[str]) -> None:
    """Raise InvalidSignature unless a secret produces this signature, in constant time per secret.

    Several secrets are accepted, so that one can be replaced without losing a delivery.
    """
    claimed = (signature or "").strip()
    check_form(claimed)
    # No early exit: which of the secrets matched must not show in the time taken.
    matches = [hmac.compare_digest(sign(body, secret), claimed) for secret in secrets if secret]
    if not any(matches):
        raise InvalidSignature("the signature does not match")


Payload = Mapping[str, Any]


def load(body: bytes, content_type: str) -> Payload:
    """Parse the JSON object of a verified delivery, sent as JSON or as a form's ``payload`` field.

    Raises MalformedDelivery.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        if media_type == "application/x-www-form-urlencoded":
            fields = parse_qs(body.decode("utf-8"), max_num_fields=16)
            body = fields["payload"][0].encode()
        elif media_type != "application/json":
            raise MalformedDelivery(f"content type {media_type[:80]!r} is neither JSON nor a form")
        payload = load_json(body)
    except KeyError:
        raise MalformedDelivery("the form has no field 'payload'") from None
    except (ValueError, RecursionError) as error:
        raise MalformedDelivery(f"the body is not JSON: {str(error)[:120]}") from None
    if not isinstance(payload, dict):
        raise MalformedDelivery("the body is not a JSON object")
    return payload


def parse(name: str, payload: Payload) -> events.Event | None:
    """Parse a payload of GitHub's event ``name``; return None for an event that Bouncer does not act on.

    Raises MalformedDelivery if a required field is missing.
    """
    reader = _READERS.get(name)
    if reader is None:
        return None
    try:
        return reader(payload)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise MalformedDelivery(f"a payload of {name!r} lacks what it is about: {str(error)[:80]}") from None
    except ValidationError as error:
        place, message = first_fault(error)
        raise MalformedDelivery(f"a payload of {name!r} is wrong at {place}: {message}") from None


#: Our event for GitHub's event and action; other actions are ignored.
_EVENTS: Mapping[str, Mapping[str, type[events.RepositoryEvent]]] = {
    "issues": {
        "opened": events.IssueOpened,
        "edited": events.IssueEdited,
        "reopened": events.IssueReopened,
        "closed": events.IssueClosed,
        "labeled": events.IssueLabeled,
        "unlabeled": events.IssueUnlabeled,
        **dict.fromkeys(("deleted", "transferred"), events.IssueRemoved),
        **dict.fromkeys(("assigned", "unassigned", "milestoned", "demilestoned"), events.IssuePlanned),
    },
    "issue_comment": {
        "created": events.CommentCreated,
        "edited": events.CommentEdited,
        "deleted": events.CommentDeleted,
    },
    "pull_request": {
        "opened": events.PullRequestOpened,
        "synchronize": events.PullRequestSynchronized,
        "reopened": events.PullRequestReopened,
        "ready_for_review": events.PullRequestReadied,
        "edited": events.PullRequestEdited,
        "closed": events.PullRequestClosed,
    },
    "pull_request_review_comment": {
        "created": events.ReviewCommentCreated,
        "edited": events.ReviewCommentEdited,
        "deleted": events.ReviewCommentDeleted,
    },
    "pull_request_review_thread": {"resolved": events.ReviewThreadResolved},
    "check_run": {"rerequested": events.CheckRerequested},
    "check_suite": {"rerequested": events.CheckRerequested},
    "merge_group": {"checks_requested": events.MergeGroupRequested},
}

#: Edits of other fields are ignored.
_TEXTS: Mapping[str, frozenset[str]] = {
    "issues": frozenset({"title", "body"}),
    "pull_request": frozenset({"title", "body", "base"}),
}


def _account(payload: Payload) -> str:
    account = payload["installation"].get("account") or {}
    return str(account.get("login") or account.get("slug") or "")


def _names(repositories: Iterable[Payload] | None) -> tuple[str, ...]:
    return tuple(entry["full_name"] for entry in repositories or ())


#: How to read each field of an event from a payload of GitHub's event of that name.
_FIELDS: Mapping[str, Callable[[str, Payload], object]] = {
    "installation": lambda _, payload: (payload.get("installation") or {}).get("id"),
    "sender": lambda _, payload: actor(payload.get("sender")),
    "repository": lambda _, payload: repository(payload["repository"]),
    "issue": lambda _, payload: issue(payload["issue"]),
    "pull_request": lambda _, payload: pull_request(payload["pull_request"]),
    "comment": lambda name, payload: (comment if name == "issue_comment" else review_comment)(payload["comment"]),
    "label": lambda _, payload: (payload.get("label") or {}).get("name") or "",
    "comment_ids": lambda _, payload: tuple(entry["id"] for entry in payload["thread"].get("comments") or ()),
    "name": lambda name, payload: payload[name].get("name") or "",
    "head_sha": lambda name, payload: payload[name]["head_sha"],
    "numbers": lambda name, payload: tuple(entry["number"] for entry in payload[name].get("pull_requests") or ()),
    "action": lambda _, payload: str(payload.get("action")),
    "account": lambda _, payload: _account(payload),
    "repositories": lambda _, payload: _names(payload.get("repositories")),
    "added": lambda _, payload: _names(payload.get("repositories_added")),
    "added_ids": lambda _, payload: tuple(item.get("id", 0) for item in payload.get("repositories_added") or ()),
    "removed": lambda _, payload: _names(payload.get("repositories_removed")),
}


def _event(event_type: type[E], name: str, payload: Payload, **more: object) -> E:
    """Build an event from its fields in the payload, and from ``more``."""
    fields = [field for field in event_type.model_fields if field in _FIELDS and field not in more]
    return event_type(**{field: _FIELDS[field](name, payload) for field in fields}, **more)


def _place(payload: Payload) -> dict[str, Any]:
    """Read the place and the sender of an event. A payload without them is malformed, whatever its action."""
    return {field: _FIELDS[field]("", payload) for field in ("installation", "sender", "repository")}


def _action_event(name: str, payload: Payload) -> events.Event | None:
    place, action = _place(payload), str(payload.get("action"))
    event_type = _EVENTS[name].get(action)
    texts = _TEXTS.get(name) if action == "edited" else None
    if event_type is None or (texts is not None and texts.isdisjoint(payload.get("changes") or {})):
        return None
    return _event(event_type, name, payload, **place)


def _push(payload: Payload) -> events.Event | None:
    place = _place(payload)
    if payload["ref"] != f"refs/heads/{place['repository'].default_branch}":
        return None
    commits = payload.get("commits") or ()
    paths = {
        path for commit in commits for key in ("added", "modified", "removed") for path in commit.get(key) or ()
    }
    # A forced or very large push does not list everything that it changes.
    lists_all = 0 < len(commits) < MAX_COMMITS and not payload.get("forced")
    more = {"head_sha": payload.get("after") or "", "may_change_config": not lists_all or PATH in paths}
    return _event(events.BranchPushed, "push", payload, **place, **more)


def _repository(payload: Payload) -> events.Event | None:
    place, action, changes = _place(payload), payload.get("action"), payload.get("changes") or {}
    repository = place.pop("repository")
    owner, name = repository.owner, repository.name
    if action == "deleted":
        removed = (repository.full_name,)
        return events.InstallationRepositoriesChanged(**place, account=owner, removed=removed)
    if action == "renamed":
        name = changes["repository"]["name"]["from"]
    elif action == "transferred":
        former = changes["owner"]["from"]
        owner = (former.get("organization") or former["user"])["login"]
    else:
        return None
    return events.Renamed(**place, old=f"{owner}/{name}", new=repository.full_name, repository_id=repository.id)


def _account_renamed(payload: Payload) -> events.Event | None:
    login = (payload.get("changes") or {}).get("login")
    # An enterprise has a slug instead, and no repositories.
    if payload.get("action") != "renamed" or login is None:
        return None
    names = {"old": login["from"], "new": payload["account"]["login"]}
    return _event(events.Renamed, "installation_target", payload, **names)


_READERS: dict[str, Callable[[Payload], events.Event | None]] = {
    **{name: partial(_action_event, name) for name in _EVENTS},
    "push": _push,
    "installation": partial(_event, events.InstallationChanged, "installation"),
    "installation_repositories": partial(
        _event, events.InstallationRepositoriesChanged, "installation_repositories"
    ),
    "installation_target": _account_renamed,
    "repository": _repository,
    "ping": partial(_event, events.Pinged, "ping"),
}

#: GitHub's names of the events that are parsed.
NAMES: tuple[str, ...] = tuple(_READERS)
