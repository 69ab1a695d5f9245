"""Forges that answer from what is known: what they asked before, or a snapshot of that.

What a snapshot does not hold raises NotRecorded; it is never answered with "nothing".
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, Field

from bot.core.frozen import Frozen
from bot.core.model import Actor, CheckRun, Comment, Issue, Permission, PullRequest, Repository, ReviewComment
from bot.errors import NotFound, NotRecorded
from bot.forge.protocol import (
    Forge,
    IssueLink,
    PostedReview,
    PullDiff,
    Reactions,
    SourceTree,
    TreeEntry,
    as_source,
)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Snapshot(Frozen):
    """Answers of a forge about one repository, by what was asked.

    A forge's "it is not there" is an answer too: it stands in ``missing`` as the call that was made.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    repository: str = Field(description="owner/name")
    about: Repository | None = None
    identity: Actor | None = None
    issues: Mapping[int, Issue] = Field(default_factory=dict, description="by number, as all below")
    comments: Mapping[int, tuple[Comment, ...]] = Field(default_factory=dict)
    pull_requests: Mapping[int, PullRequest] = Field(default_factory=dict)
    diffs: Mapping[int, PullDiff] = Field(default_factory=dict)
    linked_issues: Mapping[int, tuple[IssueLink, ...]] = Field(default_factory=dict)
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
    files: Mapping[str, bytes] = Field(default_factory=dict, description="by ``ref:path``; base64 in JSON")
    trees: Mapping[str, tuple[TreeEntry, ...]] = Field(default_factory=dict, description="by ref")
    checkouts: Mapping[str, Mapping[str, bytes]] = Field(
        default_factory=dict, description="files by path, by ref; base64 in JSON"
    )
    missing: tuple[str, ...] = Field((), description="calls that raised NotFound, as ``field key``")

    def to_json(self) -> str:
        """The form in which a snapshot is stored; ``model_validate_json`` reads it."""
        return self.model_dump_json(exclude_defaults=True)


class ReplayForge:
    """Read-only view of a repository as it was when the snapshot was made."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def repository(self) -> str:
        return self._snapshot.repository

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
        return self._find("reactions", self._snapshot.reactions, _comment_key(comment_id, review))

    def head(self, ref: str) -> str:
        return self._find("heads", self._snapshot.heads, ref)

    def file(self, path: str, ref: str) -> bytes:
        return self._find("files", self._snapshot.files, f"{ref}:{path}")

    def tree(self, ref: str) -> tuple[TreeEntry, ...]:
        return self._find("trees", self._snapshot.trees, ref)

    def checkout(self, ref: str, folder: Path) -> None:
        write_files(folder, self._find("checkouts", self._snapshot.checkouts, ref))

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


class ReadOnce:
    """Asks another forge each question once: a job thinks about one state of the world, and reads it once."""

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
        key = _comment_key(comment_id, review)
        return self._keep("reactions", key, lambda: self._forge.reactions(comment_id, review=review))

    def head(self, ref: str) -> str:
        return self._keep("heads", ref, lambda: self._forge.head(ref))

    def file(self, path: str, ref: str) -> bytes:
        return self._keep("files", f"{ref}:{path}", lambda: self._forge.file(path, ref))

    def tree(self, ref: str) -> tuple[TreeEntry, ...]:
        return self._keep("trees", ref, lambda: self._forge.tree(ref))

    def checkout(self, ref: str, folder: Path) -> None:
        self._forge.checkout(ref, folder)

    def sources(self, ref: str) -> SourceTree:
        return self._forge.sources(ref)

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

    def forget(self, number: int) -> None:
        """Something was written there: what stood before is not the answer any more."""
        for name in ("issues", "comments", "reviews", "review_comments"):
            self._answers.get(name, {}).pop(number, None)
            self._missing.pop(f"{name} {number}", None)
        self._answers.pop("check_runs", None)


class AskAnew(ReadOnce):
    """Asks again, and whoever shares the answers knows the new ones.

    A diff alone is taken as it is known: it belongs to a head, and the head is what is looked at again.
    """

    def __init__(self, known: ReadOnce) -> None:
        self._forge, self._answers, self._missing = known._forge, known._answers, known._missing

    def _keep(self, name: str, key: K, ask: Callable[[], T]) -> T:
        if name != "diffs":
            self._answers.get(name, {}).pop(key, None)
            self._missing.pop(f"{name} {key}", None)
        return super()._keep(name, key, ask)


class RecordingForge(ReadOnce):
    """Asks another forge each question once; ``snapshot`` returns all answers."""

    def snapshot(self) -> Snapshot:
        """Everything that was asked so far, with its answers."""
        return Snapshot(repository=self.repository, **self._answers, missing=tuple(self._missing))

    def checkout(self, ref: str, folder: Path) -> None:
        super().checkout(ref, folder)
        self._answers.setdefault("checkouts", {})[ref] = _read_all(folder)

    def sources(self, ref: str) -> SourceTree:
        """Kept whole, as a checkout is."""
        if ref not in self._answers.get("checkouts", {}):
            with tempfile.TemporaryDirectory(prefix="bouncer-record-") as name:
                self.checkout(ref, Path(name))
        return RecordedTree(self._answers["checkouts"][ref])


class RecordedTree:
    """A ``SourceTree`` of files that are at hand."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def paths(self) -> Sequence[str]:
        return sorted(self._files)

    def read(self, path: str) -> str | None:
        return as_source(self._files[path]) if path in self._files else None


def _read_all(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below an empty folder."""
    for path, content in files.items():
        target = folder / path
        if not target.resolve().is_relative_to(folder.resolve()):
            raise NotRecorded(f"the snapshot names a file outside of its folder: {path!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _comment_key(comment_id: int, review: bool) -> str:
    return f"{'review' if review else 'issue'}:{comment_id}"
