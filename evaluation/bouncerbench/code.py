"""The code behind the tasks: each task's repository at its base commit, from local clones (BouncerBench, IV.E)."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Lock

from bot.errors import OperatorError
from bot.forge.replay import Snapshot
from evaluation.git.forge import ClonedForge
from evaluation.git.repository import GitRepository, find_clone
from evaluation.run.staging import Staged

#: What names a commit and nothing else: a data set must not hand options or expressions to git.
_SHA = re.compile(r"[0-9a-f]{7,64}")


class Code:
    """Clones under one folder, opened when a task first asks; use as a context manager. Safe to share."""

    def __init__(self, repos: Path) -> None:
        """``repos`` holds bare or normal clones named ``owner+name`` or ``owner/name``."""
        self._repos = repos
        self._open: dict[str, GitRepository] = {}
        self._mutex = Lock()
        self._stack = ExitStack()

    def __enter__(self) -> Code:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def clone(self, full_name: str, base_commit: str) -> GitRepository:
        """The clone of ``owner/name``, which holds the commit. Raises OperatorError that names what is missing."""
        if not base_commit:
            raise OperatorError("no base_commit is given: which state of the code is meant is not known")
        if not _SHA.fullmatch(base_commit):
            raise OperatorError(f"base_commit {base_commit[:80]!r} is not a commit's SHA")
        found = self._opened(full_name)
        if not found.has_commit(base_commit):
            raise OperatorError(f"{found.folder} does not hold the base commit {base_commit}")
        return found

    def beside(self, staged: Staged, base_commit: str) -> Staged:
        """The task with a forge that also answers for files, of the base commit alone.

        The default branch stands there, as on the day before the fix. Raises OperatorError.
        """
        about = staged.event.repository
        try:
            clone = self.clone(about.full_name, base_commit)
        except OperatorError as error:
            raise OperatorError(f"{staged.id}: {error}") from None
        snapshot = staged.snapshot.model_copy(update={"heads": {about.default_branch: base_commit}})

        def forge(recorded: Snapshot) -> ClonedForge:
            return ClonedForge(recorded, clone, (base_commit,))

        return replace(staged, snapshot=snapshot, forge=forge)

    def _opened(self, full_name: str) -> GitRepository:
        with self._mutex:
            if full_name not in self._open:
                folder = find_clone(self._repos, full_name)
                if folder is None:
                    raise OperatorError(f"{self._repos} holds no clone of {full_name}")
                self._open[full_name] = self._stack.enter_context(GitRepository(folder))
            return self._open[full_name]
