"""Webhook deliveries as GitHub sends them, without a server: for tests of what receives them.

Payloads are rendered by the simulated GitHub, so both speak the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.core.events import Event
from bot.github.webhook import parse, sign
from bot.simgithub.hooks import Hooks
from bot.simgithub.operations import Operations
from bot.simgithub.render import Renderer
from bot.simgithub.state import (
    App,
    CheckRunState,
    Commit,
    InstallationState,
    IssueState,
    Json,
    Pull,
    RepositoryState,
    ReviewCommentState,
    World,
)

API, WEB = "https://api.github.com", "https://github.com"
HEAD, BASE = "d" * 40, "b" * 40


@dataclass(frozen=True)
class Sent:
    """One delivery. ``replace`` its fields to bend it."""

    event: str
    payload: Json
    id: str = "72d3162e-cc78-11e3-81ab-4c9367dc0958"

    @property
    def body(self) -> bytes:
        return json.dumps(self.payload).encode()

    def headers(self, secret: str = "") -> dict[str, str]:
        """GitHub's headers; signed where a secret is given."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/0000000",
            "X-GitHub-Event": self.event,
            "X-GitHub-Delivery": self.id,
            "X-GitHub-Hook-ID": "1",
        }
        return headers | ({"X-Hub-Signature-256": sign(self.body, secret)} if secret else {})

    def parsed(self) -> Event:
        """The event that the receiver parses."""
        event = parse(self.event, self.payload)
        assert event is not None, f"{self.event} is no event that counts"
        return event

    def as_(self, delivery_id: str) -> Sent:
        """The same under another delivery id."""
        return replace(self, id=delivery_id)


@dataclass(frozen=True)
class Where:
    """The repository that a delivery is about."""

    repository: str = "octo/demo"
    private: bool = False
    installation: int = 7
    default_branch: str = "main"


_HERE = Where()


@dataclass
class _Scene:
    """A world with one repository, whose only app hears everything."""

    where: Where
    sender: str
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        render = Renderer(self.world, API, WEB)
        self.operations = Operations(self.world, render, Hooks(self.world, render))
        owner, _, name = self.where.repository.partition("/")
        user = self.world.user(owner, "Organization")
        self.repository = RepositoryState(186853002, user, name, self.where.private, self.where.default_branch)
        self.world.repositories[self.where.repository] = self.repository
        bot = self.world.user("bouncer[bot]")
        self.app = App(1, "bouncer", "bouncer", user, bot, "", "", "", "http://receiver", "", (), {})
        self.installation = InstallationState(
            self.where.installation, self.app, user, [self.where.repository], {}, _ALL
        )
        self.world.installations[self.where.installation] = self.installation
        self.by = self.world.user(self.sender)

    def sent(self) -> Sent:
        """The last delivery that was made."""
        delivery = self.app.deliveries[-1]
        return Sent(delivery.event, json.loads(delivery.body))


_ALL = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "check_run",
    "check_suite",
)

IssueAction = Literal[
    "opened", "edited", "reopened", "closed", "labeled", "unlabeled", "assigned", "deleted", "transferred"
]


def issue(
    action: IssueAction = "opened",
    *,
    title: str = "Table.read fails on an empty file",
    body: str = "",
    number: int = 12,
    author: str = "alice",
    sender: str = "",
    labels: Sequence[str] = (),
    label: str = "bug",
    changes: Json | None = None,
    where: Where = _HERE,
) -> Sent:
    """An ``issues`` delivery. ``changes`` is as GitHub names them; an edit of the body where it is None."""
    scene = _Scene(where, sender or author)
    opener, now = scene.world.user(author), scene.world.now()
    record = IssueState(scene.repository, number, title, body, opener, now, labels=list(labels))
    record.state = "closed" if action == "closed" else "open"
    scene.repository.issues[number] = record
    more: Json = {}
    if action == "edited":
        more["changes"] = {"body": {"from": "before"}} if changes is None else changes
    if action in ("labeled", "unlabeled"):
        more["label"] = {"name": label}
    scene.operations.announce(record, action, scene.by, **more)
    return scene.sent()


def comment(
    body: str,
    *,
    action: Literal["created", "edited", "deleted"] = "created",
    author: str = "alice",
    sender: str = "",
    on: Sent | None = None,
    comment_id: int = 99262140,
    where: Where = _HERE,
) -> Sent:
    """An ``issue_comment`` delivery on the issue (or pull request) of another delivery."""
    scene = _Scene(where, sender or author)
    payload = (on or issue(where=where)).payload
    is_pull = "pull_request" in payload
    subject = payload["pull_request" if is_pull else "issue"]
    record = IssueState(
        scene.repository,
        subject["number"],
        subject["title"],
        subject["body"] or "",
        scene.world.user(subject["user"]["login"]),
        scene.world.now(),
        labels=[label["name"] for label in subject["labels"]],
    )
    if is_pull:
        record.pull = Pull("patch", where.repository, HEAD, "main", BASE)
    scene.repository.issues[record.number] = record
    comment_state = scene.operations.add_comment(record, body, scene.world.user(author))
    comment_state.id = comment_id
    changes = {"changes": {"body": {"from": "before"}}} if action == "edited" else {}
    scene.operations.announce_comment(comment_state, action, scene.by, **changes)
    return scene.sent()


PullAction = Literal[
    "opened", "synchronize", "reopened", "ready_for_review", "edited", "closed", "converted_to_draft", "assigned"
]


def pull_request(
    action: PullAction = "opened",
    *,
    title: str = "Close the file",
    body: str = "",
    number: int = 13,
    author: str = "alice",
    sender: str = "",
    head_sha: str = HEAD,
    draft: bool = False,
    fork: bool = False,
    merged: bool = False,
    labels: Sequence[str] = (),
    changes: Json | None = None,
    where: Where = _HERE,
) -> Sent:
    """A ``pull_request`` delivery."""
    scene = _Scene(where, sender or author)
    record = _pull(scene, number, title, body, author, head_sha, fork)
    assert record.pull is not None
    record.labels = list(labels)
    record.pull.draft, record.pull.merged = draft, merged
    record.state = "closed" if action == "closed" else "open"
    more: Json = {}
    if action == "edited":
        more["changes"] = {"body": {"from": "before"}} if changes is None else changes
    if action == "synchronize":
        more |= {"before": "e" * 40, "after": head_sha}
    scene.operations.announce(record, action, scene.by, **more)
    return scene.sent()


def _pull(scene: _Scene, number: int, title: str, body: str, author: str, head_sha: str, fork: bool) -> IssueState:
    user = scene.world.user(author)
    home = scene.where.repository
    if fork:
        home = f"{author}/{scene.repository.name}"
        scene.world.repositories[home] = RepositoryState(186853999, user, scene.repository.name)
    scene.world.commits[BASE] = Commit(BASE, (), {"table.py": b"def read():\n    pass\n"}, "before")
    scene.world.commits[head_sha] = Commit(
        head_sha, (BASE,), {"table.py": b"def read():\n    return 1\n"}, "after"
    )
    record = IssueState(scene.repository, number, title, body, user, scene.world.now())
    record.pull = Pull("patch", home, head_sha, scene.where.default_branch, BASE)
    scene.repository.issues[number] = record
    return record


def review_comment(
    body: str,
    *,
    action: Literal["created", "edited", "deleted"] = "created",
    author: str = "alice",
    number: int = 13,
    path: str = "table.py",
    line: int = 2,
    in_reply_to: int | None = None,
    comment_id: int = 284312630,
    where: Where = _HERE,
) -> Sent:
    """A ``pull_request_review_comment`` delivery."""
    scene = _Scene(where, author)
    record = _pull(scene, number, "Close the file", "", "alice", HEAD, False)
    comment_state = ReviewCommentState(
        record,
        comment_id,
        body,
        scene.by,
        scene.world.now(),
        path=path,
        line=line,
        commit_id=HEAD,
        in_reply_to=in_reply_to,
    )
    scene.operations.announce_review_comment(comment_state, action)
    return scene.sent()


def check_rerequested(
    name: str = "bouncer / verify",
    *,
    sender: str = "alice",
    head_sha: str = HEAD,
    number: int = 13,
    fork: bool = False,
    where: Where = _HERE,
) -> Sent:
    """A ``check_run`` delivery: a person pressed "Re-run". A fork's names no pull request."""
    scene = _Scene(where, sender)
    _pull(scene, number, "Close the file", "", "alice", head_sha, fork)
    check = CheckRunState(128620228, name, head_sha, scene.app, status="completed", conclusion="neutral")
    scene.operations.rerequest_check(scene.repository, check, scene.by)
    return scene.sent()


def suite_rerequested(
    *, sender: str = "alice", head_sha: str = HEAD, number: int = 13, where: Where = _HERE
) -> Sent:
    """A ``check_suite`` delivery: a person pressed "Re-run all checks"."""
    rerequest = check_rerequested(sender=sender, head_sha=head_sha, number=number, where=where)
    suite = {**rerequest.payload["check_run"], "id": 118578147, "name": None}
    payload = {**rerequest.payload, "check_suite": suite}
    del payload["check_run"]
    return Sent("check_suite", payload)


def installation(*, sender: str = "octo", where: Where = _HERE) -> Sent:
    """An ``installation`` delivery: the app was installed."""
    scene = _Scene(where, sender)
    scene.operations.installed(scene.installation, scene.by)
    return scene.sent()


def ping() -> Sent:
    """GitHub tries the webhook out."""
    scene = _Scene(_HERE, "octo")
    scene.operations.hooks.deliver(
        scene.installation, "ping", scene.by, {"zen": "Keep it logically awesome.", "hook_id": 1}
    )
    return scene.sent()
