"""From raw webhook bytes to something that happened: ``verify`` first, then ``load`` and ``parse``. No I/O."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

from pydantic import Field, TypeAdapter, ValidationError

from bot.domain import Actor, Comment, Issue, PullRequest, Repository, ReviewComment, Subject
from bot.errors import InvalidSignature, MalformedDelivery
from bot.frozen import Frozen
from bot.payloads import actor, comment, issue, pull_request, readable, repository, review_comment

Payload = Mapping[str, Any]


class _Happened(Frozen):
    """What every event carries."""

    installation: int | None = Field(
        None, description="id of the app's installation; None in a bare test delivery"
    )
    sender: Actor


class _InRepository(_Happened):
    repository: Repository

    @property
    def number(self) -> int:
        """The issue's or pull request's number; 0 where the event is about none."""
        return 0

    @property
    def subject(self) -> Subject:
        """What a decision about this event is about."""
        return Subject(repository=self.repository.full_name, number=self.number, revision="")


class _OnIssue(_InRepository):
    issue: Issue

    @property
    def number(self) -> int:
        return self.issue.number

    @property
    def subject(self) -> Subject:
        return Subject(
            repository=self.repository.full_name, number=self.issue.number, revision=self.issue.revision
        )


class _OnPullRequest(_InRepository):
    pull_request: PullRequest

    @property
    def number(self) -> int:
        return self.pull_request.number

    @property
    def subject(self) -> Subject:
        return Subject(
            repository=self.repository.full_name, number=self.number, revision=self.pull_request.revision
        )


class IssueOpened(_OnIssue):
    kind: Literal["issue_opened"] = "issue_opened"


class IssueEdited(_OnIssue):
    """Title or body changed; other edits are no event."""

    kind: Literal["issue_edited"] = "issue_edited"


class IssueReopened(_OnIssue):
    kind: Literal["issue_reopened"] = "issue_reopened"


class IssueLabeled(_OnIssue):
    kind: Literal["issue_labeled"] = "issue_labeled"
    label: str


class IssueClosed(_OnIssue):
    kind: Literal["issue_closed"] = "issue_closed"


class CommentCreated(_OnIssue):
    """A comment in the conversation of an issue or (``issue.is_pull_request``) a pull request."""

    kind: Literal["comment_created"] = "comment_created"
    comment: Comment


class CommentEdited(_OnIssue):
    kind: Literal["comment_edited"] = "comment_edited"
    comment: Comment


class CommentDeleted(_OnIssue):
    kind: Literal["comment_deleted"] = "comment_deleted"
    comment: Comment


class PullRequestOpened(_OnPullRequest):
    kind: Literal["pull_request_opened"] = "pull_request_opened"


class PullRequestSynchronized(_OnPullRequest):
    """New commits were pushed to the head."""

    kind: Literal["pull_request_synchronized"] = "pull_request_synchronized"


class PullRequestReopened(_OnPullRequest):
    kind: Literal["pull_request_reopened"] = "pull_request_reopened"


class PullRequestReadied(_OnPullRequest):
    """A draft was marked as ready for review."""

    kind: Literal["pull_request_readied"] = "pull_request_readied"


class PullRequestEdited(_OnPullRequest):
    """Title, body or base branch changed; other edits are no event."""

    kind: Literal["pull_request_edited"] = "pull_request_edited"


class PullRequestClosed(_OnPullRequest):
    kind: Literal["pull_request_closed"] = "pull_request_closed"


class ReviewCommentCreated(_OnPullRequest):
    """A comment on a line of the diff, or a reply in its thread."""

    kind: Literal["review_comment_created"] = "review_comment_created"
    comment: ReviewComment


class ReviewCommentEdited(_OnPullRequest):
    kind: Literal["review_comment_edited"] = "review_comment_edited"
    comment: ReviewComment


class ReviewCommentDeleted(_OnPullRequest):
    kind: Literal["review_comment_deleted"] = "review_comment_deleted"
    comment: ReviewComment


class ReviewThreadResolved(_OnPullRequest):
    kind: Literal["review_thread_resolved"] = "review_thread_resolved"
    comment_ids: tuple[int, ...]


class CheckRerequested(_InRepository):
    """Somebody pressed "Re-run" on a check run of ours, or on the whole suite (``name`` is then empty).

    ``numbers`` is empty for pull requests from forks: the commit has to be mapped.
    """

    kind: Literal["check_rerequested"] = "check_rerequested"
    name: str = ""
    head_sha: str
    numbers: tuple[int, ...] = ()

    @property
    def number(self) -> int:
        return self.numbers[0] if self.numbers else 0

    @property
    def subject(self) -> Subject:
        return Subject(repository=self.repository.full_name, number=self.number, revision=f"sha:{self.head_sha}")


class InstallationChanged(_Happened):
    """The app was installed, removed, suspended, or its permissions were accepted."""

    kind: Literal["installation_changed"] = "installation_changed"
    action: str
    account: str
    repositories: tuple[str, ...] = ()


class InstallationRepositoriesChanged(_Happened):
    kind: Literal["installation_repositories_changed"] = "installation_repositories_changed"
    account: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Pinged(_Happened):
    """GitHub tries the webhook out."""

    kind: Literal["pinged"] = "pinged"


IssueEvent = IssueOpened | IssueEdited | IssueReopened | IssueLabeled | IssueClosed
CommentEvent = CommentCreated | CommentEdited | CommentDeleted
PullRequestEvent = (
    PullRequestOpened
    | PullRequestSynchronized
    | PullRequestReopened
    | PullRequestReadied
    | PullRequestEdited
    | PullRequestClosed
)
ReviewEvent = ReviewCommentCreated | ReviewCommentEdited | ReviewCommentDeleted | ReviewThreadResolved
RepositoryEvent = IssueEvent | CommentEvent | PullRequestEvent | ReviewEvent | CheckRerequested
Event = RepositoryEvent | InstallationChanged | InstallationRepositoriesChanged | Pinged

_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def to_json(event: Event) -> str:
    """The form in which an event is stored."""
    return event.model_dump_json()


def from_json(text: str | bytes) -> Event:
    """The event that ``to_json`` stored."""
    return _EVENT.validate_json(text)


def sign(body: bytes, secret: str) -> str:
    """The value of ``X-Hub-Signature-256`` for these bytes."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


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
    if action == "labeled":
        return IssueLabeled(**fields, label=(payload.get("label") or {}).get("name") or "")
    if action == "edited" and not _changed(payload, "title", "body"):
        return None
    kinds: dict[str, Callable[..., Event]] = {
        "opened": IssueOpened,
        "edited": IssueEdited,
        "reopened": IssueReopened,
        "closed": IssueClosed,
    }
    kind = kinds.get(str(action))
    return kind(**fields) if kind else None


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
    "installation": _installation,
    "installation_repositories": _installation_repositories,
    "ping": lambda payload: Pinged(**_common(payload)),
}

#: GitHub's names of the events that are read.
NAMES: tuple[str, ...] = tuple(_READERS)
