"""A repository without a forge: answers from a snapshot.

A call that the snapshot does not hold raises NotRecorded, never an empty answer. An issue or a patch from a file
becomes the event and the snapshot that a live repository would give: the command line and the evaluation pass them
to ``router.decide``, so that they run the live handlers.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pydantic import Field

from bot.core.errors import NotFound, NotRecorded
from bot.core.events import IssueOpened, PullRequestOpened
from bot.core.frozen import Frozen
from bot.core.subjects import Actor, CheckRun, Comment, Issue, Permission, PullRequest, Repository, ReviewComment
from bot.github.protocol import (
    FolderTree,
    IssueLink,
    PostedReview,
    PullDiff,
    PullFacts,
    Reactions,
    SourceTree,
    as_source,
)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
E = TypeVar("E", IssueOpened, PullRequestOpened)

AUTHOR = Actor(id=2, login="author")
BOUNCER = Actor(id=1, login="bouncer[bot]", is_bot=True)
#: The base commit of a patch from a file.
BASE_SHA = "0" * 40
REPOSITORY = Repository(id=1, owner="offline", name="files", html_url="https://offline.invalid/offline/files")


class Snapshot(Frozen):
    """Answers of a forge about one repository, by call.

    Calls that raised NotFound are recorded in ``missing``.
    """

    repository: str = Field(description="owner/name")
    about: Repository | None = None
    identity: Actor | None = None
    issues: Mapping[int, Issue] = Field(default_factory=dict, description="by number, as all below")
    comments: Mapping[int, tuple[Comment, ...]] = Field(default_factory=dict)
    pull_requests: Mapping[int, PullRequest] = Field(default_factory=dict)
    diffs: Mapping[int, PullDiff] = Field(default_factory=dict)
    linked_issues: Mapping[int, tuple[IssueLink, ...]] = Field(default_factory=dict)
    pull_facts: Mapping[int, PullFacts] = Field(default_factory=dict)
    pulls_for_issue: Mapping[int, tuple[int, ...]] = Field(default_factory=dict)
    review_comments: Mapping[int, tuple[ReviewComment, ...]] = Field(default_factory=dict)
    reviews: Mapping[int, tuple[PostedReview, ...]] = Field(default_factory=dict)
    resolved_threads: Mapping[int, tuple[int, ...]] = Field(default_factory=dict)
    check_runs: Mapping[str, tuple[CheckRun, ...]] = Field(default_factory=dict, description="by ``sha:name``")
    pulls_for_commit: Mapping[str, tuple[PullRequest, ...]] = Field(default_factory=dict, description="by SHA")
    permissions: Mapping[str, Permission] = Field(default_factory=dict, description="by login")
    reactions: Mapping[str, Reactions] = Field(
        default_factory=dict, description="by ``issue:<comment id>`` or ``review:<comment id>``"
    )
    heads: Mapping[str, str] = Field(default_factory=dict, description="SHA by branch")
    commits: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, description="first parents by SHA")
    tags: Mapping[str, str] | None = None
    files: Mapping[str, bytes] = Field(default_factory=dict, description="by ``ref:path``")
    checkouts: Mapping[str, Mapping[str, bytes]] = Field(default_factory=dict, description="files by path, by ref")
    missing: tuple[str, ...] = Field((), description="calls that raised NotFound, as ``field key``")


class ReplayForge:
    """A ``Forge`` that answers from a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.repository = snapshot.repository

    def about(self) -> Repository:
        return self._single("about", self._snapshot.about)

    def identity(self) -> Actor:
        return self._single("identity", self._snapshot.identity)

    def issue(self, number: int) -> Issue:
        return self._find("issues", self._snapshot.issues, number)

    def comments(self, number: int) -> tuple[Comment, ...]:
        return self._find("comments", self._snapshot.comments, number)

    def pull_request(self, number: int) -> PullRequest:
        return self._find("pull_requests", self._snapshot.pull_requests, number)

    def diff(self, number: int) -> PullDiff:
        return self._find("diffs", self._snapshot.diffs, number)

    def linked_issues(self, number: int) -> tuple[IssueLink, ...]:
        return self._find("linked_issues", self._snapshot.linked_issues, number)

    def pull_facts(self, number: int) -> PullFacts:
        return self._find("pull_facts", self._snapshot.pull_facts, number)

    def pulls_for_issue(self, number: int) -> tuple[int, ...]:
        return self._find("pulls_for_issue", self._snapshot.pulls_for_issue, number)

    def review_comments(self, number: int) -> tuple[ReviewComment, ...]:
        return self._find("review_comments", self._snapshot.review_comments, number)

    def reviews(self, number: int) -> tuple[PostedReview, ...]:
        return self._find("reviews", self._snapshot.reviews, number)

    def resolved_threads(self, number: int) -> tuple[int, ...]:
        return self._find("resolved_threads", self._snapshot.resolved_threads, number)

    def check_runs(self, sha: str, name: str) -> tuple[CheckRun, ...]:
        return self._find("check_runs", self._snapshot.check_runs, f"{sha}:{name}")

    def pulls_for_commit(self, sha: str) -> tuple[PullRequest, ...]:
        return self._find("pulls_for_commit", self._snapshot.pulls_for_commit, sha)

    def permission(self, login: str) -> Permission:
        return self._find("permissions", self._snapshot.permissions, login)

    def reactions(self, comment_id: int, *, review: bool = False) -> Reactions:
        # Comments on lines have ids of their own.
        key = f"{'review' if review else 'issue'}:{comment_id}"
        return self._find("reactions", self._snapshot.reactions, key)

    def head(self, ref: str) -> str:
        return self._find("heads", self._snapshot.heads, ref)

    def commits(self, sha: str, limit: int) -> tuple[str, ...]:
        return self._find("commits", self._snapshot.commits, sha)[:limit]

    def tags(self) -> Mapping[str, str]:
        return self._single("tags", self._snapshot.tags)

    def file(self, path: str, ref: str) -> bytes:
        return self._find("files", self._snapshot.files, f"{ref}:{path}")

    def checkout(self, ref: str, folder: Path) -> None:
        for path, content in self._find("checkouts", self._snapshot.checkouts, ref).items():
            target = folder / path
            if not target.resolve().is_relative_to(folder.resolve()):
                raise NotRecorded(f"the snapshot names a file outside of its folder: {path!r}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def sources(self, ref: str) -> SourceTree:
        return RecordedTree(self._find("checkouts", self._snapshot.checkouts, ref))

    def _single(self, name: str, value: T | None) -> T:
        if value is None:
            raise NotRecorded(f"the snapshot of {self.repository} does not hold {name}")
        return value

    def _find(self, name: str, answers: Mapping[K, T], key: K) -> T:
        if key in answers:
            return answers[key]
        if f"{name} {key}" in self._snapshot.missing:
            raise NotFound(f"{name} {key}: not there when the snapshot was made", 404)
        raise NotRecorded(f"the snapshot of {self.repository} does not hold {name} {key}")


class RecordedTree:
    """A ``SourceTree`` of files in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def paths(self) -> Sequence[str]:
        return sorted(self._files)

    def read(self, path: str) -> str | None:
        return as_source(self._files[path]) if path in self._files else None


#: Folders of a developer's checkout that no test needs.
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "venv", ".tox", "node_modules", "__pycache__")


class CheckedOut(ReplayForge):
    """A snapshot with a local checkout as the files of one commit."""

    def __init__(self, snapshot: Snapshot, folder: Path, commit: str) -> None:
        super().__init__(snapshot)
        self._folder, self._commit = folder, commit

    def sources(self, ref: str) -> SourceTree:
        if ref != self._commit:
            raise NotRecorded(f"{self._folder} does not hold {ref}")
        return FolderTree(self._folder, working=True)

    def checkout(self, ref: str, folder: Path) -> None:
        if ref != self._commit:
            raise NotRecorded(f"{self._folder} does not hold {ref}")
        shutil.copytree(self._folder, folder, symlinks=True, ignore=_NOT_COPIED, dirs_exist_ok=True)


class Opened(NamedTuple, Generic[E]):
    """The event of an opened issue or pull request, and the snapshot to read from."""

    event: E
    snapshot: Snapshot


def issue_opened(
    title: str, body: str, repository: Repository = REPOSITORY, number: int = 1
) -> Opened[IssueOpened]:
    """Return the opening of an issue without comments."""
    return just_opened(Issue(number=number, title=title, body=body, author=AUTHOR), repository)


def just_opened(issue: Issue, repository: Repository) -> Opened[IssueOpened]:
    """Return the opening of an existing issue value."""
    snapshot = Snapshot(
        repository=repository.full_name,
        about=repository,
        identity=BOUNCER,
        issues={issue.number: issue},
        comments={issue.number: ()},
    )
    return Opened(IssueOpened(sender=issue.author, repository=repository, issue=issue), snapshot)


def pull_request_opened(
    patch: str,
    *,
    title: str = "",
    body: str = "",
    issues: Sequence[Issue] = (),
    repository: Repository = REPOSITORY,
    number: int = 1,
    base_sha: str = BASE_SHA,
) -> Opened[PullRequestOpened]:
    """Return the opening of a pull request with this patch on ``base_sha``, linked to ``issues``."""
    pull = PullRequest(
        number=number,
        title=title,
        body=body,
        author=AUTHOR,
        head_sha=hashlib.sha1(patch.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest(),
        head_ref="patch",
        head_repository=repository.full_name,
        base_sha=base_sha,
        base_ref=repository.default_branch,
        base_repository=repository.full_name,
    )
    return pull_just_opened(pull, PullDiff(text=patch), issues, repository)


def pull_just_opened(
    pull: PullRequest, diff: PullDiff, issues: Sequence[Issue], repository: Repository
) -> Opened[PullRequestOpened]:
    """Return the opening of an existing pull request value."""
    number = pull.number
    snapshot = Snapshot(
        repository=repository.full_name,
        about=repository,
        identity=BOUNCER,
        issues={issue.number: issue for issue in issues},
        comments={number: ()},
        pull_requests={number: pull},
        diffs={number: diff},
        linked_issues={
            number: tuple(IssueLink(repository=repository.full_name, number=issue.number) for issue in issues)
        },
        review_comments={number: ()},
        reviews={number: ()},
        resolved_threads={number: ()},
    )
    return Opened(PullRequestOpened(sender=pull.author, repository=repository, pull_request=pull), snapshot)


def split_title(text: str) -> tuple[str, str]:
    """Return title (the first line, without Markdown's heading marks) and body of an issue's Markdown file."""
    first, _, rest = text.lstrip("\ufeff\r\n").partition("\n")
    return first.strip().lstrip("#").strip(), rest.strip("\r\n")
