"""Protocols and values for reading one repository, present and past.

Handlers get a read-only ``Forge``; only the publisher gets the writer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import Field

from bot.core.errors import ForgeError, NotRecorded
from bot.core.frozen import Frozen
from bot.core.subjects import Actor, CheckRun, Comment, Issue, Permission, PullRequest, Repository, ReviewComment

T = TypeVar("T")


class PullDiff(Frozen):
    """The unified diff of a pull request against its merge base."""

    text: str
    omitted: tuple[str, ...] = Field((), description="paths whose change the forge did not include (too large)")
    unlisted: int = Field(0, ge=0, description="changed files that the forge did not list (too many)")


class IssueLink(Frozen):
    """An issue that a pull request says it closes."""

    repository: str = Field(description="owner/name; not always the pull request's own")
    number: int


class ClaimedIssue(Frozen):
    """An issue of the same repository that a pull request closes, and all open pull requests that close it."""

    issue: Issue
    pulls: tuple[int, ...] = ()


class PullFacts(Frozen):
    """A pull request with its size, its author's standing and the issues that it closes: one request."""

    pull: PullRequest
    node_id: str
    association: str = Field("", description="the author's, as in ``Issue.author_association``")
    lines: int = Field(0, ge=0, description="added and deleted lines")
    changed_files: int = Field(0, ge=0)
    paths: tuple[str, ...] = Field((), description="changed files, the first 100")
    renames: bool = Field(False, description="one of these files had another path before")
    claims: tuple[ClaimedIssue, ...] = ()


class OpenPull(Frozen):
    """An open pull request in a list, and when its author and members of the project last did something."""

    number: int
    title: str
    author: str = Field("", description="login; empty if the account was deleted")
    draft: bool = False
    head_sha: str
    created_at: datetime
    author_at: datetime = Field(description="last commit, comment or review of the author")
    member_at: datetime | None = Field(None, description="last comment or review of a member of the project")


class Reactions(Frozen):
    """Accounts with a thumbs-up or thumbs-down on a comment."""

    up: tuple[Actor, ...] = ()
    down: tuple[Actor, ...] = ()


class PostedReview(Frozen):
    """A review that stands on a pull request."""

    id: int
    author: Actor
    body: str = ""
    commit_id: str = ""


class SourceTree(Protocol):
    """The files of a repository at one commit. No path leads out of it; links are not files."""

    def paths(self) -> Sequence[str]:
        """All files, sorted."""
        ...

    def read(self, path: str) -> str | None:
        """A file as text with ``\n`` as line end; None if it is missing, not text, or above ``MAX_SOURCE``."""
        ...


#: Tags that are read.
MAX_TAGS = 300
#: Largest source file, bytes: larger ones are data, or generated.
MAX_SOURCE = 1_000_000


def as_source(content: bytes) -> str | None:
    """Decode a file for a ``SourceTree``; None if it is not text."""
    if len(content) > MAX_SOURCE or b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


class FolderTree:
    """A ``SourceTree`` of the files below a folder. Links are not followed.

    ``working``: it is a developer's checkout, so hidden folders and build output are left out.
    """

    def __init__(self, folder: Path, *, working: bool = False) -> None:
        self._folder = folder
        self._working = working

    def paths(self) -> Sequence[str]:
        return tuple(self._paths)

    def read(self, path: str) -> str | None:
        if path not in self._paths:
            return None
        try:
            with (self._folder / path).open("rb") as file:
                return as_source(file.read(MAX_SOURCE + 1))
        except OSError:
            return None

    @cached_property
    def _paths(self) -> dict[str, None]:
        return dict.fromkeys(sorted(_files_below(self._folder, self._working)))


#: Build output in a checkout.
_BUILD_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "build", "dist", "target"})


def _files_below(folder: Path, working: bool) -> Iterator[str]:
    for parent, folders, names in os.walk(folder, followlinks=False):
        if working:
            hidden = {name for name in folders if name.startswith(".")} - {".github"}
            folders[:] = [name for name in folders if name not in hidden | _BUILD_FOLDERS]
        inside = Path(parent).relative_to(folder).as_posix()
        for name in names:
            if not Path(parent, name).is_symlink():
                yield name if inside == "." else f"{inside}/{name}"


class Forge(Protocol):
    """Read-only view of one repository.

    Every method raises TransientError (with the wait that the forge asked for) if a later try may
    succeed, NotFound if the object does not exist, ForgeError if the request is refused for good.
    """

    @property
    def repository(self) -> str:
        """``owner/name``."""
        ...

    def about(self) -> Repository:
        """The repository itself."""
        ...

    def identity(self) -> Actor:
        """Our own bot account. Comments of other accounts are never ours, even with our marker."""
        ...

    def issue(self, number: int) -> Issue: ...

    def comments(self, number: int) -> tuple[Comment, ...]:
        """All comments of an issue or pull request's conversation, oldest first, every page."""
        ...

    def pull_request(self, number: int) -> PullRequest: ...

    def diff(self, number: int) -> PullDiff:
        """The change against the merge base (not against the base branch's present state)."""
        ...

    def linked_issues(self, number: int) -> tuple[IssueLink, ...]:
        """Issues the forge itself links as closed by this pull request; NotFound if it cannot say."""
        ...

    def pull_facts(self, number: int) -> PullFacts:
        """A pull request, its size and the issues that it closes; NotFound if the forge cannot say."""
        ...

    def pulls_for_issue(self, number: int) -> tuple[int, ...]:
        """Open pull requests of this repository that say they close an issue of it."""
        ...

    def review_comments(self, number: int) -> tuple[ReviewComment, ...]:
        """All inline comments of a pull request, oldest first."""
        ...

    def reviews(self, number: int) -> tuple[PostedReview, ...]: ...

    def check_runs(self, sha: str, name: str) -> tuple[CheckRun, ...]:
        """Our own check runs of that name on that commit, newest first."""
        ...

    def pulls_for_commit(self, sha: str) -> tuple[PullRequest, ...]:
        """Pull requests that a commit belongs to; needed for forks, whose check events name none."""
        ...

    def permission(self, login: str) -> Permission:
        """Return the permission of a user here; ``none`` for strangers on a private repository."""
        ...

    def reactions(self, comment_id: int, *, review: bool = False) -> Reactions: ...

    def resolved_threads(self, number: int) -> tuple[int, ...]:
        """Ids of the first comments of the resolved review threads of a pull request."""
        ...

    def head(self, ref: str) -> str:
        """The commit SHA of a branch."""
        ...

    def commits(self, sha: str, limit: int) -> tuple[str, ...]:
        """A commit and its first parents, newest first, as far as its ``limit`` newest ancestors go."""
        ...

    def tags(self) -> Mapping[str, str]:
        """The commit SHA of each tag, by the tag's name; of ``MAX_TAGS`` tags at most."""
        ...

    def file(self, path: str, ref: str) -> bytes:
        """A file's bytes at a commit or branch."""
        ...

    def checkout(self, ref: str, folder: Path) -> None:
        """Unpack the files at a commit into an empty folder; links that lead outside are left out."""
        ...

    def sources(self, ref: str) -> SourceTree:
        """The files at a commit, to read some of them; may be cached."""
        ...


class Labelled(Frozen):
    """The event of setting a label."""

    name: str
    at: datetime


class PastIssue(Frozen):
    """A closed issue. Of its later comments only the time of the author's last one is recorded."""

    issue: Issue = Field(description="title and text as opened, without labels, open")
    whole: bool = Field(True, description="False: the first text was deleted from the edit history")
    closed_at: datetime
    state_reason: str | None = Field(None, description="completed, not_planned, duplicate or None")
    closed_by: tuple[int, ...] = Field((), description="merged pull requests that closed it")
    labelled: tuple[Labelled, ...] = Field((), description="the last 30 at most, oldest first")
    author_spoke_at: datetime | None = Field(None, description="the author's last comment among the last 30")


class PastPull(Frozen):
    """A merged pull request."""

    pull: PullRequest = Field(description="title and text as opened, open")
    whole: bool = Field(True, description="as ``PastIssue.whole``, of it and of its issues")
    merged_at: datetime
    merge_sha: str = ""
    issues: tuple[Issue, ...] = Field((), description="issues of the same repository that it closed, as opened")
    reopened: tuple[datetime, ...] = Field((), description="when one of these issues was reopened")
    diff: PullDiff | None = Field(None, description="as merged; None if it was not asked for")


class Message(Frozen):
    """The message of a commit on the default branch."""

    sha: str
    text: str
    at: datetime


class Past(Frozen):
    """An export: the data of calibration in one file."""

    repository: Repository
    exported_at: datetime
    limit: int = Field(ge=1, description="wanted number of issues and pull requests with a known outcome")
    requests: int = Field(ge=0, description="to GitHub, all of them")
    issues: tuple[PastIssue, ...] = Field((), description="newest first")
    pulls: tuple[PastPull, ...] = Field((), description="newest first; those to be judged have a diff")
    messages: tuple[Message, ...] = Field((), description="commits that undo others")


class ListPage(Frozen, Generic[T]):
    """A part of a list; ``after`` is the cursor of the next one, None at the end."""

    items: tuple[T, ...]
    after: str | None


def text_at(forge: Forge, path: str, ref: str) -> str | None:
    """Return a file as text, or None if it cannot be read: deleted, or missing in a replay."""
    try:
        return forge.file(path, ref).decode("utf-8", "replace")
    except (ForgeError, NotRecorded):
        return None
