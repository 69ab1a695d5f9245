"""What became of a repository's issues and pull requests, with every text as it stood when it was opened."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, Protocol, TypeVar

from pydantic import Field

from bot.core.frozen import Frozen
from bot.core.model import Issue, PullRequest, Repository
from bot.forge.protocol import PullDiff

T = TypeVar("T")


class Labelled(Frozen):
    """A label that somebody set."""

    name: str
    at: datetime


class PastIssue(Frozen):
    """A closed issue. Later comments are no part of it, but for when its author last spoke."""

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
    diff: PullDiff | None = Field(None, description="as merged; None where it was not asked for")


class Message(Frozen):
    """What a commit on the default branch says."""

    sha: str
    text: str
    at: datetime


class Past(Frozen):
    """An export: what calibration needs to know, in one file."""

    repository: Repository
    exported_at: datetime
    limit: int = Field(ge=1, description="so many issues and pull requests of known fate were wanted")
    requests: int = Field(ge=0, description="to GitHub, all of them")
    issues: tuple[PastIssue, ...] = Field((), description="newest first")
    pulls: tuple[PastPull, ...] = Field((), description="newest first; those that are judged have a diff")
    messages: tuple[Message, ...] = Field((), description="commits that undo others")


class ListPage(Frozen, Generic[T]):
    """A part of a list; ``after`` is where the next one starts, None at the end."""

    items: tuple[T, ...]
    after: str | None


class Chronicle(Protocol):
    """Reads the past of one repository, newest first; raises what a ``Forge`` raises."""

    def about(self) -> Repository: ...

    def diff(self, number: int) -> PullDiff: ...

    def closed_issues(self, after: str | None) -> ListPage[PastIssue]: ...

    def merged_pulls(self, after: str | None) -> ListPage[PastPull]: ...

    def messages(self, since: datetime, after: str | None) -> ListPage[Message]:
        """Commits on the default branch."""
        ...
