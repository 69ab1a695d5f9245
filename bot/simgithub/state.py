"""The state of the simulated GitHub: plain mutable records behind one lock."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

#: What a collaborator may do, weakest first (GitHub's role names).
Permission = Literal["none", "read", "triage", "write", "maintain", "admin"]
Side = Literal["LEFT", "RIGHT"]
Json = dict[str, Any]
Files = dict[str, bytes]


@dataclass
class User:
    id: int
    login: str
    type: Literal["User", "Bot", "Organization"] = "User"


@dataclass
class DeliveryState:
    """One attempt to deliver a webhook; a redelivery is a new attempt with the old ``guid``."""

    id: int
    guid: str
    event: str
    body: bytes
    delivered_at: datetime
    status_code: int = 0


@dataclass
class App:
    id: int
    slug: str
    name: str
    owner: User
    bot: User
    private_key: str
    public_key: str
    client_secret: str
    webhook_url: str
    webhook_secret: str
    events: tuple[str, ...]
    permissions: Mapping[str, str]
    setup_url: str = ""
    callback_urls: tuple[str, ...] = ()
    deliveries: list[DeliveryState] = field(default_factory=list)

    @property
    def client_id(self) -> str:
        """The id for people who log in with the App."""
        return f"Iv1.{self.id}"


@dataclass(frozen=True)
class Grant:
    """A person's consent to a log-in, for a code that works once."""

    app: App
    user: User
    redirect_uri: str
    challenge: str


@dataclass
class InstallationState:
    id: int
    app: App
    account: User
    repositories: list[str]
    permissions: Mapping[str, str]
    events: tuple[str, ...]
    suspended: bool = False


@dataclass
class Token:
    value: str
    installation: InstallationState
    repositories: tuple[str, ...]
    permissions: Mapping[str, str]
    expires_at: datetime
    revoked: bool = False


@dataclass
class Reaction:
    id: int
    user: User
    content: str


@dataclass(eq=False)
class CommentState:
    issue: IssueState = field(repr=False)
    id: int
    body: str
    author: User
    created_at: datetime
    app: App | None = None
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(eq=False)
class ReviewCommentState(CommentState):
    path: str = ""
    line: int | None = None
    original_line: int | None = None
    side: Side = "RIGHT"
    diff_hunk: str = ""
    commit_id: str = ""
    in_reply_to: int | None = None
    resolved: bool = False
    minimized: str = ""

    @property
    def node_id(self) -> str:
        """GitHub's global id."""
        return f"PRRC_{self.id}"


@dataclass
class Review:
    id: int
    author: User
    body: str
    commit_id: str
    state: str = "COMMENTED"


@dataclass
class CheckRunState:
    id: int
    name: str
    head_sha: str
    app: App
    external_id: str = ""
    status: str = "queued"
    conclusion: str | None = None
    output: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Commit:
    sha: str
    parents: tuple[str, ...]
    files: Mapping[str, bytes]
    message: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass
class Pull:
    """The half of an issue that only a pull request has."""

    head_ref: str
    head_repository: str | None
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool = False
    merged: bool = False
    closes: list[tuple[str, int]] = field(default_factory=list)
    merged_at: datetime | None = None
    merge_sha: str = ""
    reviews: list[Review] = field(default_factory=list)
    comments: list[ReviewCommentState] = field(default_factory=list)


@dataclass(eq=False)
class IssueState:
    repository: RepositoryState = field(repr=False)
    number: int
    title: str
    body: str
    author: User
    created_at: datetime
    state: Literal["open", "closed"] = "open"
    state_reason: str | None = None
    locked: bool = False
    labels: list[str] = field(default_factory=list)
    assignees: list[User] = field(default_factory=list)
    milestone: str = ""
    comments: list[CommentState] = field(default_factory=list)
    pull: Pull | None = None
    closed_at: datetime | None = None
    closer: User | None = None
    closed_by: list[int] = field(default_factory=list)
    reopened_at: list[datetime] = field(default_factory=list)
    labelled: list[tuple[str, datetime]] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)


@dataclass
class RepositoryState:
    id: int
    owner: User
    name: str
    private: bool = False
    default_branch: str = "main"
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    issues: dict[int, IssueState] = field(default_factory=dict)
    #: Number of a deleted or transferred issue -> repository and number that it has now; None: it was deleted.
    removed: dict[int, tuple[str, int] | None] = field(default_factory=dict)
    checks: list[CheckRunState] = field(default_factory=list)
    roles: dict[str, Permission] = field(default_factory=dict)
    #: Logins of the authors of merged pull requests.
    contributors: set[str] = field(default_factory=set)
    archived: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def comment(self, comment_id: int) -> CommentState | None:
        comments = (comment for issue in self.issues.values() for comment in issue.comments)
        return next((comment for comment in comments if comment.id == comment_id), None)

    def review_comment(self, comment_id: int) -> ReviewCommentState | None:
        comments = (comment for pull in self.pulls() for comment in pull.comments)
        return next((comment for comment in comments if comment.id == comment_id), None)

    def pulls(self) -> list[Pull]:
        return [issue.pull for issue in self.issues.values() if issue.pull is not None]


class World:
    """The whole state, and the clock. Callers hold ``lock`` while they read or change it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.users: dict[str, User] = {}
        self.apps: dict[int, App] = {}
        self.manifests: dict[str, tuple[Json, User, datetime]] = {}
        self.grants: dict[str, Grant] = {}
        self.user_tokens: dict[str, tuple[App, User]] = {}
        #: (organisation in lower case, login) -> active or pending.
        self.members: dict[tuple[str, str], str] = {}
        self.installations: dict[int, InstallationState] = {}
        self.tokens: dict[str, Token] = {}
        self.repositories: dict[str, RepositoryState] = {}
        #: Names that repositories had before -> their ids.
        self.former: dict[str, int] = {}
        self.commits: dict[str, Commit] = {}
        self.outbox: queue.Queue[tuple[App, DeliveryState] | None] = queue.Queue()
        self.ahead = timedelta()
        #: ``TYPE.field`` of GraphQL that this server does not have, as an older Enterprise Server.
        self.without_fields: frozenset[str] = frozenset()
        self._id = 1000

    def now(self) -> datetime:
        """Return the simulated time: the real time plus an offset."""
        return datetime.now(UTC) + self.ahead

    def next_id(self) -> int:
        self._id += 1
        return self._id

    def user(self, login: str, type: Literal["User", "Bot", "Organization"] = "User") -> User:
        """Return the account of that name; it is created when it is first mentioned."""
        if login not in self.users:
            kind = "Bot" if login.endswith("[bot]") else type
            self.users[login] = User(self.next_id(), login, kind)
        return self.users[login]

    def repository(self, name: str) -> RepositoryState | None:
        """Return the repository of that name, or the one that had it before."""
        former = (place for place in self.repositories.values() if place.id == self.former.get(name))
        return self.repositories.get(name) or next(former, None)

    def commit(self, files: Mapping[str, bytes], message: str, parents: tuple[str, ...]) -> Commit:
        """Store a commit; its SHA follows from content, message, parents and place in history."""
        digest = hashlib.sha1(repr((parents, message, self.next_id())).encode(), usedforsecurity=False)
        for path in sorted(files):
            digest.update(path.encode("utf-8", "surrogateescape") + b"\0" + files[path])
        commit = Commit(digest.hexdigest(), parents, dict(files), message, self.now())
        self.commits[commit.sha] = commit
        return commit

    def ancestors(self, sha: str) -> list[str]:
        """Return the commit itself and all commits before it, nearest first."""
        ancestors, waiting = [], [sha]
        while waiting:
            commit_sha = waiting.pop(0)
            if commit_sha in ancestors or commit_sha not in self.commits:
                continue
            ancestors.append(commit_sha)
            waiting.extend(self.commits[commit_sha].parents)
        return ancestors

    def merge_base(self, base: str, head: str) -> str:
        before = set(self.ancestors(base))
        return next((sha for sha in self.ancestors(head) if sha in before), base)

    def pull_files(self, pull: Pull) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
        """Return the files at a pull request's merge base and at its head."""
        base = self.merge_base(pull.base_sha, pull.head_sha)
        return self.commits[base].files, self.commits[pull.head_sha].files

    def installed(self, repository: RepositoryState) -> Iterable[InstallationState]:
        return [
            installation
            for installation in self.installations.values()
            if repository.full_name in installation.repositories and not installation.suspended
        ]
