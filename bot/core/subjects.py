"""Values of events and of the forge: people, issues, pull requests, comments."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field

from bot.core.frozen import Frozen

#: Permissions of a collaborator, weakest first (GitHub's role names).
Permission = Literal["none", "read", "triage", "write", "maintain", "admin"]
PERMISSIONS: tuple[Permission, ...] = ("none", "read", "triage", "write", "maintain", "admin")

Side = Literal["LEFT", "RIGHT"]


def may_triage(permission: Permission) -> bool:
    """Return True if a permission is triage or higher."""
    return PERMISSIONS.index(permission) >= PERMISSIONS.index("triage")


class Actor(Frozen):
    """A user, an organisation or an app's bot account."""

    id: int = Field(description="GitHub's id; 0 for an account that was deleted")
    login: str
    is_bot: bool = False


class Repository(Frozen):
    """The repository that an event is about."""

    id: int
    owner: str
    name: str
    default_branch: str = "main"
    private: bool = False
    html_url: str = Field("", description="its page; the host is the operator's, not always github.com")

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def host(self) -> str:
        """Host (and port) that links may lead to, lower case."""
        return urlsplit(self.html_url).netloc.lower()


class Issue(Frozen):
    """An issue as it stood when it was read."""

    number: int
    title: str
    body: str = ""
    author: Actor
    state: Literal["open", "closed"] = "open"
    state_reason: str | None = Field(None, description="completed, not_planned, reopened, duplicate or None")
    labels: tuple[str, ...] = ()
    type: str = Field("", description="the issue type's name, if the organisation uses types")
    author_association: str = Field("", description="OWNER, MEMBER, COLLABORATOR, NONE...; empty if unknown")
    html_url: str = ""
    created_at: datetime | None = None
    closed_at: datetime | None = None
    is_pull_request: bool = False
    locked: bool = Field(False, description="GitHub refuses our comments on it")
    comments: int | None = Field(None, description="how many there are; None if unknown")
    claimed: bool = Field(False, description="it is assigned, or planned for a milestone")
    assignees: tuple[str, ...] = Field((), description="logins")
    milestone: str = Field("", description="the milestone's title")
    closed_by: int | None = Field(None, description="id of the user who closed it; only if read from the forge")

    @property
    def revision(self) -> str:
        """Identifies title and body: a decision on one revision is not published on another."""
        return text_revision(self.title, self.body)


class PullRequest(Frozen):
    """A pull request as it stood when it was read."""

    number: int
    title: str
    body: str = ""
    author: Actor
    state: Literal["open", "closed"] = "open"
    merged: bool = False
    draft: bool = False
    locked: bool = Field(False, description="as ``Issue.locked``")
    head_sha: str
    head_ref: str = ""
    head_repository: str | None = Field(None, description="owner/name; None when the fork was deleted")
    base_sha: str = ""
    base_ref: str = "main"
    base_repository: str = ""
    labels: tuple[str, ...] = ()
    html_url: str = ""
    review_comments: int | None = Field(None, description="on lines; None if unknown")

    @property
    def revision(self) -> str:
        """Identifies the code that a decision is about."""
        return f"sha:{self.head_sha}"

    @property
    def from_fork(self) -> bool:
        """Return True if the head is in another repository: its code is not executed unless a maintainer asks."""
        return self.head_repository != self.base_repository


#: GitHub's author associations of people who work on the repository.
INSIDERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


class Comment(Frozen):
    """A comment in the conversation of an issue or pull request."""

    id: int
    body: str = ""
    author: Actor
    html_url: str = ""
    created_at: datetime | None = None
    by_app: int | None = Field(None, description="id of the GitHub App that wrote it")
    author_association: str = Field("", description="as ``Issue.author_association``")


class ReviewComment(Frozen):
    """A comment on a line of a pull request's diff."""

    id: int
    body: str = ""
    author: Actor
    path: str
    node_id: str = Field("", description="GitHub's global id")
    line: int | None = Field(None, description="None when the line is outdated")
    original_line: int | None = Field(None, description="the line when it was posted")
    side: Side = "RIGHT"
    diff_hunk: str = Field("", description="the hunk of the diff up to that line")
    commit_id: str = ""
    in_reply_to: int | None = None
    html_url: str = ""
    created_at: datetime | None = None


class CheckRun(Frozen):
    """A check run of ours."""

    id: int
    name: str
    head_sha: str
    external_id: str = ""
    status: str = "completed"
    conclusion: str | None = None


class Subject(Frozen):
    """The subject of a decision, and its revision."""

    repository: str = Field(description="owner/name")
    number: int
    revision: str = Field(description="``sha:<head>`` or ``text:<hash of title and body>``")

    @property
    def key(self) -> str:
        """``owner/name#number``: the same across revisions."""
        return f"{self.repository}#{self.number}"


class Fate(Frozen):
    """The outcome of a subject."""

    good: bool
    why: str


class KnownFate(Fate):
    """The outcome of a subject that was judged live, with the verdict."""

    subject: str = Field(description="owner/name#number")
    bouncer: Literal["triage", "verify"]
    p_bounce: int | None = Field(None, ge=0, le=100, description="percent; None if the reply had none")
    bounced: bool = Field(description="or would have been, in shadow mode")
    harm: int | None = Field(None, description="percent that was promised when it was judged")


def text_revision(title: str, body: str) -> str:
    """Return the revision of a text subject; line endings do not count, everything else does."""
    text = f"{title}\0{body}".replace("\r\n", "\n").strip()
    return "text:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
