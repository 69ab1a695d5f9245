"""The local clones that a build reads, each opened once, with the history that its instances ask about."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bot.errors import OperatorError
from evaluation.crbench.git import GitError, GitRepository, find_clone
from evaluation.crbench.history import CommitGraph, History, Pulls
from evaluation.crbench.inference import PullCommits
from evaluation.crbench.mapping import ClonedPulls, Instance, PullFinder

#: How a clone's pull refs are used: not at all, to refute numbers in subjects, or also to infer missing ones.
PullRefs = Literal["ignore", "verify", "infer"]


@dataclass(frozen=True)
class Clone:
    """One repository, ready to be asked."""

    repository: GitRepository
    history: History
    finder: PullFinder


class Clones:
    """Every clone that the instances need; those that are missing are known to be. Use as a context manager."""

    def __init__(self, folder: Path, instances: Iterable[Instance], pull_refs: PullRefs = "verify") -> None:
        self._folder = folder
        self._pull_refs = pull_refs
        self._bases: dict[str, set[str]] = {}
        for instance in instances:
            self._bases.setdefault(instance.repo, set()).add(instance.base_commit)
        self._open: dict[str, Clone] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Clones:
        """Raises OperatorError where a clone is shallow, or where there is none at all."""
        if not self._folder.is_dir():
            raise OperatorError(f"{self._folder} is not a folder")
        try:
            for full_name, bases in self._bases.items():
                path = find_clone(self._folder, full_name)
                if path is not None:
                    self._open[full_name] = self._opened(path, full_name, bases)
        except BaseException:
            self._stack.close()
            raise
        if self._bases and not self._open:
            wanted = ", ".join(sorted(self._bases)[:3])
            raise OperatorError(
                f"{self._folder} holds no clone of {wanted}; clones are named owner+name or owner/name"
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, full_name: str) -> Clone | None:
        """The clone of ``owner/name``; None where there is none."""
        return self._open.get(full_name)

    def _opened(self, path: Path, full_name: str, bases: set[str]) -> Clone:
        repository = self._stack.enter_context(GitRepository(path))
        present = sorted(base for base in bases if repository.has_commit(base))
        pulls = Pulls() if self._pull_refs == "ignore" else Pulls.read(repository)
        try:
            history = History(CommitGraph.read(repository, present, full_name), pulls)
            inferred = PullCommits(repository, pulls, present) if self._pull_refs == "infer" else None
        except GitError as error:
            raise OperatorError(f"{path}: its history cannot be read: {error}") from error
        return Clone(repository, history, ClonedPulls(history, inferred))
