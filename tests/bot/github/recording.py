"""A forge that records a snapshot."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from bot.core.errors import NotFound
from bot.core.subjects import Actor, CheckRun, Comment, Issue, Permission, PullRequest, Repository, ReviewComment
from bot.github.offline import RecordedTree, Snapshot, comment_key
from bot.github.protocol import Forge, IssueLink, PostedReview, PullDiff, Reactions, SourceTree

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class RecordingForge:
    """Passes every call on to another forge once; ``snapshot`` returns all answers."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge
        self._answers: dict[str, Any] = {}
        self._missing: dict[str, NotFound] = {}

    @property
    def repository(self) -> str:
        return self._forge.repository

    def about(self) -> Repository:
        return self._single("about", self._forge.about)

    def identity(self) -> Actor:
        return self._single("identity", self._forge.identity)

    def issue(self, number: int) -> Issue:
        return self._keep("issues", number, lambda: self._forge.issue(number))

    def comments(self, number: int) -> tuple[Comment, ...]:
        return self._keep("comments", number, lambda: self._forge.comments(number))

    def pull_request(self, number: int) -> PullRequest:
        return self._keep("pull_requests", number, lambda: self._forge.pull_request(number))

    def diff(self, number: int) -> PullDiff:
        return self._keep("diffs", number, lambda: self._forge.diff(number))

    def linked_issues(self, number: int) -> tuple[IssueLink, ...]:
        return self._keep("linked_issues", number, lambda: self._forge.linked_issues(number))

    def review_comments(self, number: int) -> tuple[ReviewComment, ...]:
        return self._keep("review_comments", number, lambda: self._forge.review_comments(number))

    def reviews(self, number: int) -> tuple[PostedReview, ...]:
        return self._keep("reviews", number, lambda: self._forge.reviews(number))

    def resolved_threads(self, number: int) -> tuple[int, ...]:
        return self._keep("resolved_threads", number, lambda: self._forge.resolved_threads(number))

    def check_runs(self, sha: str, name: str) -> tuple[CheckRun, ...]:
        return self._keep("check_runs", f"{sha}:{name}", lambda: self._forge.check_runs(sha, name))

    def pulls_for_commit(self, sha: str) -> tuple[PullRequest, ...]:
        return self._keep("pulls_for_commit", sha, lambda: self._forge.pulls_for_commit(sha))

    def permission(self, login: str) -> Permission:
        return self._keep("permissions", login, lambda: self._forge.permission(login))

    def reactions(self, comment_id: int, *, review: bool = False) -> Reactions:
        key = comment_key(comment_id, review)
        return self._keep("reactions", key, lambda: self._forge.reactions(comment_id, review=review))

    def head(self, ref: str) -> str:
        return self._keep("heads", ref, lambda: self._forge.head(ref))

    def commits(self, sha: str, limit: int) -> tuple[str, ...]:
        return self._keep("commits", sha, lambda: self._forge.commits(sha, limit))

    def tags(self) -> Mapping[str, str]:
        return self._single("tags", self._forge.tags)

    def file(self, path: str, ref: str) -> bytes:
        return self._keep("files", f"{ref}:{path}", lambda: self._forge.file(path, ref))

    def snapshot(self) -> Snapshot:
        """Return all calls so far with their answers."""
        return Snapshot(repository=self.repository, **self._answers, missing=tuple(self._missing))

    def checkout(self, ref: str, folder: Path) -> None:
        self._forge.checkout(ref, folder)
        self._answers.setdefault("checkouts", {})[ref] = _read_all(folder)

    def sources(self, ref: str) -> SourceTree:
        """Record the files as a checkout."""
        if ref not in self._answers.get("checkouts", {}):
            with tempfile.TemporaryDirectory(prefix="bouncer-record-") as name:
                self.checkout(ref, Path(name))
        return RecordedTree(self._answers["checkouts"][ref])

    def _single(self, name: str, ask: Callable[[], T]) -> T:
        if name not in self._answers:
            self._answers[name] = ask()
        answer: T = self._answers[name]
        return answer

    def _keep(self, name: str, key: K, ask: Callable[[], T]) -> T:
        if missing := self._missing.get(f"{name} {key}"):
            raise NotFound(str(missing), missing.status)
        answers: dict[K, T] = self._answers.setdefault(name, {})
        if key not in answers:
            try:
                answers[key] = ask()
            except NotFound as error:
                self._missing[f"{name} {key}"] = error
                raise
        return answers[key]


def _read_all(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
