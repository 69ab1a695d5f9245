"""Local clones under one folder, each opened once, and their files as a forge that shows no other commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Self

from bot.core.errors import NotFound, NotRecorded, OperatorError
from bot.github.offline import ReplayForge, Snapshot
from bot.github.protocol import SourceTree, as_source
from evaluation.git.repository import GitRepository, find_clone
from evaluation.run.staging import Staged

#: What names a commit and nothing else: a data set must not hand options or expressions to git.
_SHA = re.compile(r"[0-9a-f]{7,64}")
#: The share of a commit's files that a clone may lack: partial clones leave out a few large ones.
MISSING = 0.01
#: What stands for such a file: it is not taken for text, or for an empty file.
UNREADABLE = b"\0"


class Clones:
    """Clones, opened when they are first asked for; use as a context manager. Safe to share between threads."""

    def __init__(self, repos: Path | Callable[[str], Path | None]) -> None:
        """``repos`` holds clones named ``owner+name`` or ``owner/name``, or says where that of a name is."""
        self._repos = repos
        self._open: dict[str, GitRepository | None] = {}
        self._mutex = Lock()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, full_name: str) -> GitRepository | None:
        """The clone of ``owner/name``; None if there is none. Raises OperatorError for a shallow one."""
        with self._mutex:
            if full_name not in self._open:
                repos = self._repos
                folder = find_clone(repos, full_name) if isinstance(repos, Path) else repos(full_name)
                self._open[full_name] = (
                    None if folder is None else self._stack.enter_context(GitRepository(folder))
                )
            return self._open[full_name]

    def at(self, full_name: str, commit: str) -> GitRepository:
        """The clone of ``owner/name``, which holds the commit. Raises OperatorError that names what is missing."""
        if not commit:
            raise OperatorError("no base_commit is given: which state of the code is meant is not known")
        if not _SHA.fullmatch(commit):
            raise OperatorError(f"base_commit {commit[:80]!r} is not a commit's SHA")
        clone = self.of(full_name)
        if clone is None:
            raise OperatorError(f"{self._repos} holds no clone of {full_name}")
        if not clone.has_commit(commit):
            raise OperatorError(f"{clone.folder} does not hold the base commit {commit}")
        return clone

    def beside(self, staged: Staged, commit: str) -> Staged:
        """The task with a forge that also answers for files, of that commit alone.

        The default branch stands there, as on the day before the fix. Raises OperatorError.
        """
        about = staged.event.repository
        try:
            clone = self.at(about.full_name, commit)
        except OperatorError as error:
            raise OperatorError(f"{staged.id}: {error}") from None
        snapshot = staged.snapshot.model_copy(update={"heads": {about.default_branch: commit}})
        return replace(staged, snapshot=snapshot, forge=lambda content: ClonedForge(content, clone, (commit,)))


class ClonedForge(ReplayForge):
    """Everything but files comes from the snapshot; ``visible`` are the commits whose files can be read.

    A branch is one that the snapshot names. Any other commit raises NotRecorded; GitError where the clone is
    damaged.
    """

    def __init__(self, snapshot: Snapshot, repository: GitRepository, visible: Iterable[str]) -> None:
        super().__init__(snapshot)
        self._clone = repository
        self._visible = set(visible)

    def file(self, path: str, ref: str) -> bytes:
        commit = self._visible_commit(ref)
        content = self._clone.blob(commit, path)
        if content is None:
            raise NotFound(f"{path} at {ref}", status=404)
        return content

    def checkout(self, ref: str, folder: Path) -> None:
        checkout(self._clone, self._visible_commit(ref), folder)

    def sources(self, ref: str) -> SourceTree:
        commit = self._visible_commit(ref)
        return CommitTree(self._clone, commit, [file.path for file in listing(self._clone, commit)])

    def _visible_commit(self, ref: str) -> str:
        """The commit of a branch or SHA. Raises NotRecorded if it must not be seen."""
        commit = self._snapshot.heads.get(ref, ref)
        if commit not in self._visible:
            raise NotRecorded(f"{ref} of {self.repository} is not what this task is about: its files stay unseen")
        return commit


class CommitTree:
    """A ``SourceTree`` of a commit in a clone."""

    def __init__(self, clone: GitRepository, commit: str, paths: Sequence[str]) -> None:
        self._clone, self._commit = clone, commit
        self._paths = dict.fromkeys(sorted(paths))

    def paths(self) -> Sequence[str]:
        return tuple(self._paths)

    def read(self, path: str) -> str | None:
        content = self._clone.blob(self._commit, path) if path in self._paths else None
        return None if content is None else as_source(content)


@dataclass(frozen=True)
class Listed:
    """A file of a commit; ``size`` in bytes, None if the clone does not hold it."""

    path: str
    size: int | None
    program: bool


def listing(clone: GitRepository, commit: str) -> list[Listed]:
    """Every file of a commit; no links and no submodules."""
    answer = clone.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    entries = (line.decode("utf-8", "surrogateescape").split("\t", 1) for line in answer.split(b"\0") if line)
    files: list[Listed] = []
    for facts, path in entries:
        mode, kind, _, size = facts.split()
        if kind == "blob" and mode != "120000":
            # git writes BAD for the size of a missing one
            files.append(Listed(path, int(size) if size.isdecimal() else None, mode == "100755"))
    return files


def checkout(clone: GitRepository, commit: str, folder: Path) -> None:
    """Unpack a commit's files. One that a partial clone left out is there, but is no text that could be read.

    Raises NotRecorded if that is more than MISSING of them.
    """
    files = listing(clone, commit)
    absent = [file.path for file in files if file.size is None]
    if len(absent) > MISSING * len(files):
        raise NotRecorded(
            f"{clone.folder} lacks {len(absent)} of {len(files)} files at {commit}, "
            f"{absent[0]} for one: fetch it whole"
        )
    for file in files:
        relative = PurePosixPath(file.path)
        if relative.is_absolute() or ".." in relative.parts:
            continue
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        content = UNREADABLE if file.size is None else clone.blob(commit, file.path)
        if content is None:
            raise NotFound(f"{file.path} at {commit}", status=404)
        target.write_bytes(content)
        if file.program:
            target.chmod(0o755)
