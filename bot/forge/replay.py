"""A forge that answers from a snapshot: evaluation and the command line give it to the live handlers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pydantic import Field

from bot.domain import Actor, CheckRun, Comment, Issue, Permission, PullRequest, Repository, ReviewComment
from bot.errors import NotFound, NotRecorded
from bot.forge.protocol import IssueLink, PostedReview, PullDiff, Reactions, TreeEntry
from bot.frozen import Frozen

V = TypeVar("V")


class Files(Frozen):
    """The files of one commit; every path that is not listed does not exist there."""

    text: Mapping[str, str] = Field(default_factory=dict, description="path -> content")


class Snapshot(Frozen):
    """What a replay may read. What is not in here was not recorded, which is not the same as empty.

    A value of None says that the forge was asked and had nothing: reading it raises NotFound.
    """

    repository: Repository
    identity: Actor = Actor(id=1, login="bouncer[bot]", is_bot=True)
    issues: Mapping[int, Issue | None] = Field(default_factory=dict)
    comments: Mapping[int, tuple[Comment, ...]] = Field(default_factory=dict)
    pull_requests: Mapping[int, PullRequest | None] = Field(default_factory=dict)
    diffs: Mapping[int, PullDiff] = Field(default_factory=dict)
    linked_issues: Mapping[int, tuple[IssueLink, ...]] = Field(default_factory=dict)
    review_comments: Mapping[int, tuple[ReviewComment, ...]] = Field(default_factory=dict)
    reviews: Mapping[int, tuple[PostedReview, ...]] = Field(default_factory=dict)
    check_runs: Mapping[str, tuple[CheckRun, ...]] = Field(
        default_factory=dict, description="``<sha> <name>`` -> our check runs"
    )
    pulls_for_commit: Mapping[str, tuple[PullRequest, ...]] = Field(default_factory=dict)
    permissions: Mapping[str, Permission] = Field(default_factory=dict, description="login -> permission")
    reactions: Mapping[int, Reactions] = Field(default_factory=dict, description="comment id -> thumbs")
    resolved_threads: Mapping[int, tuple[int, ...]] = Field(default_factory=dict)
    heads: Mapping[str, str] = Field(default_factory=dict, description="branch -> commit SHA")
    files: Mapping[str, Files] = Field(default_factory=dict, description="commit or branch -> its files")


class ReplayForge:
    """The read-only forge of a snapshot; anything that was not recorded raises NotRecorded."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def repository(self) -> str:
        return self._snapshot.repository.full_name

    def about(self) -> Repository:
        return self._snapshot.repository

    def identity(self) -> Actor:
        return self._snapshot.identity

    def issue(self, number: int) -> Issue:
        return _there(_recorded(self._snapshot.issues, number, "issue"), f"issue {number}")

    def comments(self, number: int) -> tuple[Comment, ...]:
        return _recorded(self._snapshot.comments, number, "comments of")

    def pull_request(self, number: int) -> PullRequest:
        pull = _recorded(self._snapshot.pull_requests, number, "pull request")
        return _there(pull, f"pull request {number}")

    def diff(self, number: int) -> PullDiff:
        return _recorded(self._snapshot.diffs, number, "diff of")

    def linked_issues(self, number: int) -> tuple[IssueLink, ...]:
        return _recorded(self._snapshot.linked_issues, number, "linked issues of")

    def review_comments(self, number: int) -> tuple[ReviewComment, ...]:
        return _recorded(self._snapshot.review_comments, number, "review comments of")

    def reviews(self, number: int) -> tuple[PostedReview, ...]:
        return _recorded(self._snapshot.reviews, number, "reviews of")

    def check_runs(self, sha: str, name: str) -> tuple[CheckRun, ...]:
        return _recorded(self._snapshot.check_runs, f"{sha} {name}", "check runs")

    def pulls_for_commit(self, sha: str) -> tuple[PullRequest, ...]:
        return _recorded(self._snapshot.pulls_for_commit, sha, "pull requests of commit")

    def permission(self, login: str) -> Permission:
        return _recorded(self._snapshot.permissions, login, "permission of")

    def reactions(self, comment_id: int, *, review: bool = False) -> Reactions:
        return _recorded(self._snapshot.reactions, comment_id, "reactions to comment")

    def resolved_threads(self, number: int) -> tuple[int, ...]:
        return _recorded(self._snapshot.resolved_threads, number, "resolved threads of")

    def head(self, ref: str) -> str:
        return _recorded(self._snapshot.heads, ref, "head of")

    def file(self, path: str, ref: str) -> bytes:
        files = _recorded(self._snapshot.files, ref, "files at")
        if path not in files.text:
            raise NotFound(f"{path} at {ref}", status=404)
        return files.text[path].encode("utf-8", "surrogateescape")

    def tree(self, ref: str) -> tuple[TreeEntry, ...]:
        files = _recorded(self._snapshot.files, ref, "files at")
        return tuple(
            TreeEntry(path=path, size=len(text.encode("utf-8", "surrogateescape")))
            for path, text in sorted(files.text.items())
        )

    def checkout(self, ref: str, folder: Path) -> None:
        for path, text in _recorded(self._snapshot.files, ref, "files at").text.items():
            relative = PurePosixPath(path)
            if relative.is_absolute() or ".." in relative.parts:
                continue
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("utf-8", "surrogateescape"))


K = TypeVar("K", int, str)


def _recorded(values: Mapping[K, V], key: K, what: str) -> V:
    if key not in values:
        raise NotRecorded(f"not recorded: {what} {key}")
    return values[key]


def _there(value: V | None, what: str) -> V:
    if value is None:
        raise NotFound(what, status=404)
    return value
