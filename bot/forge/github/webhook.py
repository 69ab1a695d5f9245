"""A delivery of GitHub's: the signature over its raw bytes first, then what happened. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from pydantic import ValidationError

from bot.core.events import (
    BranchPushed,
    CheckRerequested,
    CommentCreated,
    CommentDeleted,
    CommentEdited,
    Event,
    InstallationChanged,
    InstallationRepositoriesChanged,
    IssueClosed,
    IssueEdited,
    IssueLabeled,
    IssueOpened,
    IssueReopened,
    IssueUnlabeled,
    MergeGroupRequested,
    Pinged,
    PullRequestClosed,
    PullRequestEdited,
    PullRequestOpened,
    PullRequestReadied,
    PullRequestReopened,
    PullRequestSynchronized,
    ReviewCommentCreated,
    ReviewCommentDeleted,
    ReviewCommentEdited,
    ReviewThreadResolved,
)
from bot.errors import InvalidSignature, MalformedDelivery
from bot.forge.github.payloads import actor, comment, issue, pull_request, readable, repository, review_comment

_FORM = re.compile(r"sha256=[0-9a-f]{64}")


def sign(body: bytes, secret: str) -> str:
    """The value of ``X-Hub-Signature-256`` for these bytes."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def check_form(signature: str) -> None:
    """Refuse what cannot be a signature, whatever the body; raises InvalidSignature."""
    if not signature.strip():
        raise InvalidSignature("the signature is missing")
    if not _FORM.fullmatch(signature.strip()):
        raise InvalidSignature("the signature does not match")


def verify(body: bytes, signature: str | None, secrets: Iterable[str]) -> None:
    """Hold the raw bytes against the signature that came with them, in constant time per secret.

    Several secrets are accepted, so that one can be replaced without losing a delivery.
    Raises InvalidSignature.
    """
    given = (signature or "").strip().encode("utf-8", "replace")
    # No early exit: which of the secrets matched must not show in the time taken.
    matches = [hmac.compare_digest(sign(body, secret).encode(), given) for secret in secrets if secret]
    if not any(matches):
        raise InvalidSignature("the signature is missing" if not given else "the signature does not match")


Payload = Mapping[str, Any]


def load(body: bytes, content_type: str) -> Payload:
    """The JSON object of a verified delivery, sent as JSON or as a form's ``payload`` field.

    Raises MalformedDelivery.
    """
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            fields = parse_qs(body.decode("utf-8"), max_num_fields=16)
            body = fields["payload"][0].encode()
        elif kind != "application/json":
            raise MalformedDelivery(f"content type {kind[:80]!r} is neither JSON nor a form")
        payload = readable(body)
    except KeyError:
        raise MalformedDelivery("the form has no field 'payload'") from None
    except (ValueError, RecursionError) as error:
        raise MalformedDelivery(f"the body is not JSON: {str(error)[:120]}") from None
    if not isinstance(payload, dict):
        raise MalformedDelivery("the body is not a JSON object")
    return payload


def parse(name: str, payload: Payload) -> Event | None:
    """The event in a payload of GitHub's event ``name``; None for what Bouncer does not act on.

    Raises MalformedDelivery where a field is missing without which the event means nothing.
    """
    read = _READERS.get(name)
    if read is None:
        return None
    try:
        return read(payload)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise MalformedDelivery(f"a payload of {name!r} lacks what it is about: {str(error)[:80]}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise MalformedDelivery(f"a payload of {name!r} is wrong at {where}: {first['msg']}") from None


def _common(payload: Payload) -> dict[str, Any]:
    installation = payload.get("installation") or {}
    return {"installation": installation.get("id"), "sender": actor(payload.get("sender"))}


def _in_repository(payload: Payload) -> dict[str, Any]:
    return {**_common(payload), "repository": repository(payload["repository"])}


def _changed(payload: Payload, *fields: str) -> bool:
    changes = payload.get("changes") or {}
    return any(field in changes for field in fields)


def _issues(payload: Payload) -> Event | None:
    action = payload.get("action")
    fields = {**_in_repository(payload), "issue": issue(payload["issue"])}
    if action in ("labeled", "unlabeled"):
        kind = IssueLabeled if action == "labeled" else IssueUnlabeled
        return kind(**fields, label=(payload.get("label") or {}).get("name") or "")
    if action == "edited" and not _changed(payload, "title", "body"):
        return None
    plain: dict[str, Callable[..., Event]] = {
        "opened": IssueOpened,
        "edited": IssueEdited,
        "reopened": IssueReopened,
        "closed": IssueClosed,
    }
    make = plain.get(str(action))
    return make(**fields) if make else None


def _issue_comment(payload: Payload) -> Event | None:
    kinds: dict[str, Callable[..., Event]] = {
        "created": CommentCreated,
        "edited": CommentEdited,
        "deleted": CommentDeleted,
    }
    kind = kinds.get(str(payload.get("action")))
    if kind is None:
        return None
    return kind(**_in_repository(payload), issue=issue(payload["issue"]), comment=comment(payload["comment"]))


def _pull_request(payload: Payload) -> Event | None:
    action = str(payload.get("action"))
    if action == "edited" and not _changed(payload, "title", "body", "base"):
        return None
    kinds: dict[str, Callable[..., Event]] = {
        "opened": PullRequestOpened,
        "synchronize": PullRequestSynchronized,
        "reopened": PullRequestReopened,
        "ready_for_review": PullRequestReadied,
        "edited": PullRequestEdited,
        "closed": PullRequestClosed,
    }
    kind = kinds.get(action)
    if kind is None:
        return None
    return kind(**_in_repository(payload), pull_request=pull_request(payload["pull_request"]))


def _review_comment(payload: Payload) -> Event | None:
    kinds: dict[str, Callable[..., Event]] = {
        "created": ReviewCommentCreated,
        "edited": ReviewCommentEdited,
        "deleted": ReviewCommentDeleted,
    }
    kind = kinds.get(str(payload.get("action")))
    if kind is None:
        return None
    return kind(
        **_in_repository(payload),
        pull_request=pull_request(payload["pull_request"]),
        comment=review_comment(payload["comment"]),
    )


def _review_thread(payload: Payload) -> Event | None:
    if payload.get("action") != "resolved":
        return None
    return ReviewThreadResolved(
        **_in_repository(payload),
        pull_request=pull_request(payload["pull_request"]),
        comment_ids=tuple(each["id"] for each in payload["thread"].get("comments") or ()),
    )


def _check(payload: Payload, subject: str) -> Event | None:
    if payload.get("action") != "rerequested":
        return None
    check = payload[subject]
    return CheckRerequested(
        **_in_repository(payload),
        name=check.get("name") or "",
        head_sha=check["head_sha"],
        numbers=tuple(each["number"] for each in check.get("pull_requests") or ()),
    )


def _merge_group(payload: Payload) -> Event | None:
    if payload.get("action") != "checks_requested":
        return None
    return MergeGroupRequested(**_in_repository(payload), head_sha=payload["merge_group"]["head_sha"])


def _push(payload: Payload) -> Event | None:
    fields = _in_repository(payload)
    pushed = BranchPushed(**fields)
    return pushed if payload["ref"] == f"refs/heads/{pushed.repository.default_branch}" else None


def _account(payload: Payload) -> str:
    account = payload["installation"].get("account") or {}
    return str(account.get("login") or account.get("slug") or "")


def _names(repositories: Iterable[Payload] | None) -> tuple[str, ...]:
    return tuple(each["full_name"] for each in repositories or ())


def _installation(payload: Payload) -> Event:
    return InstallationChanged(
        **_common(payload),
        action=str(payload.get("action")),
        account=_account(payload),
        repositories=_names(payload.get("repositories")),
    )


def _installation_repositories(payload: Payload) -> Event:
    return InstallationRepositoriesChanged(
        **_common(payload),
        account=_account(payload),
        added=_names(payload.get("repositories_added")),
        removed=_names(payload.get("repositories_removed")),
    )


_READERS: dict[str, Callable[[Payload], Event | None]] = {
    "issues": _issues,
    "issue_comment": _issue_comment,
    "pull_request": _pull_request,
    "pull_request_review_comment": _review_comment,
    "pull_request_review_thread": _review_thread,
    "check_run": lambda payload: _check(payload, "check_run"),
    "check_suite": lambda payload: _check(payload, "check_suite"),
    "merge_group": _merge_group,
    "push": _push,
    "installation": _installation,
    "installation_repositories": _installation_repositories,
    "ping": lambda payload: Pinged(**_common(payload)),
}

#: GitHub's names of the events that are read.
NAMES: tuple[str, ...] = tuple(_READERS)
