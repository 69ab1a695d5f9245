"""Local clones under one folder, each opened once, and their files as a forge that shows no other commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath
from threading import Lock

from bot.errors import NotFound, NotRecorded, OperatorError
from bot.forge.protocol import SourceTree, TreeEntry, as_source
from bot.forge.replay import ReplayForge, Snapshot
from evaluation.git.repository import GitRepository, find_clone
from evaluation.run.staging import Staged

#: What names a commit and nothing else: a data set must not hand options or expressions to git.
_SHA = re.compile(r"[0-9a-f]{7,64}")
#: The share of a commit's files that a clone may lack: partial clones leave out a few large ones.
MISSING = 0.01
#: What stands for such a file: nobody takes it for text, or for an empty file.
UNREADABLE = b"\0"


class Clones:
    """Clones, opened when they are first asked for; use as a context manager. Safe to share between threads."""

    def __init__(self, repos: Path | Callable[[str], Path | None]) -> None:
        """``repos`` holds clones named ``owner+name`` or ``owner/name``, or says where that of a name is."""
        self._repos = repos
        self._open: dict[str, GitRepository | None] = {}
        self._mutex = Lock()
        self._stack = ExitStack()

    def __enter__(self) -> Clones:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, full_name: str) -> GitRepository | None:
        """The clone of ``owner/name``; None where there is none. Raises OperatorError for a shallow one."""
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
        found = self.of(full_name)
        if found is None:
            raise OperatorError(f"{self._repos} holds no clone of {full_name}")
        if not found.has_commit(commit):
            raise OperatorError(f"{found.folder} does not hold the base commit {commit}")
        return found

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
        return replace(staged, snapshot=snapshot, forge=lambda recorded: ClonedForge(recorded, clone, (commit,)))


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
        commit = self._seen(ref)
        content = self._clone.blob(commit, path)
        if content is None:
            raise NotFound(f"{path} at {ref}", status=404)
        return content

    def tree(self, ref: str) -> tuple[TreeEntry, ...]:
        """All files. Raises NotRecorded where the clone lacks one of them: its size is not known."""
        entries = []
        for path, size in self._listing(ref):
            if size is None:
                raise NotRecorded(f"the clone of {self.repository} does not hold {path} at {ref}")
            entries.append(TreeEntry(path=path, size=size))
        return tuple(entries)

    def checkout(self, ref: str, folder: Path) -> None:
        """Unpack the files. One that a partial clone left out is there, but is no text that could be read.

        Raises NotRecorded where that is more than MISSING of them.
        """
        listing = self._listing(ref)
        absent = [path for path, size in listing if size is None]
        if len(absent) > MISSING * len(listing):
            raise NotRecorded(
                f"the clone of {self.repository} lacks {len(absent)} of {len(listing)} files at {ref}, "
                f"{absent[0]} for one: fetch it whole"
            )
        for path, size in listing:
            relative = PurePosixPath(path)
            if relative.is_absolute() or ".." in relative.parts:
                continue
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(UNREADABLE if size is None else self.file(path, ref))

    def sources(self, ref: str) -> SourceTree:
        commit = self._seen(ref)
        return CommitTree(self._clone, commit, [path for path, _ in self._listing(commit)])

    def _listing(self, ref: str) -> list[tuple[str, int | None]]:
        """Path and bytes of every file, no links and no submodules; None where the clone does not hold it."""
        listing = self._clone.run("ls-tree", "-r", "-l", "-z", "--full-tree", self._seen(ref))
        entries = (line.decode("utf-8", "surrogateescape").split("\t", 1) for line in listing.split(b"\0") if line)
        found: list[tuple[str, int | None]] = []
        for facts, path in entries:
            mode, kind, _, size = facts.split()
            if kind == "blob" and mode != "120000":
                found.append((path, int(size) if size.isdecimal() else None))  # git writes BAD for a missing one
        return found

    def _seen(self, ref: str) -> str:
        """The commit of a branch or SHA. Raises NotRecorded where it must not be seen."""
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
