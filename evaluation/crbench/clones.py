"""The local clones that a build reads, each opened once, with the history that its instances ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bot.errors import OperatorError
from bot.forge.protocol import Forge
from evaluation.crbench.context import ClonedContext, ContextFinder, ForgeContext
from evaluation.crbench.mapping import ClonedPulls, ForgePulls, Instance, PullFinder
from evaluation.git.history import CommitGraph, History, Pulls
from evaluation.git.inference import PullCommits
from evaluation.git.repository import GitError, GitRepository

#: How a clone's pull refs are used: not at all, to refute numbers in subjects, or also to infer missing ones.
PullRefs = Literal["ignore", "verify", "infer"]


@dataclass(frozen=True)
class Clone:
    """One repository, ready to be asked."""

    repository: GitRepository
    finder: PullFinder
    contexts: ContextFinder


class Clones:
    """Every clone that the instances need; those that are missing are known to be. Use as a context manager."""

    def __init__(
        self,
        find: Callable[[str], Path | None],
        instances: Iterable[Instance],
        pull_refs: PullRefs = "verify",
        forge_of: Callable[[str], Forge] | None = None,
    ) -> None:
        """``find`` gives the folder of the clone of ``owner/name``.

        ``forge_of`` gives its forge, where pull requests are to be asked of GitHub.
        """
        self._find = find
        self._pull_refs = pull_refs
        self._forge_of = forge_of
        self._bases: dict[str, set[str]] = {}
        for instance in instances:
            self._bases.setdefault(instance.repo, set()).add(instance.base_commit)
        self._open: dict[str, Clone] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Clones:
        """Raises OperatorError where a clone is shallow, or where there is none at all."""
        try:
            for full_name, bases in self._bases.items():
                path = self._find(full_name)
                if path is not None:
                    self._open[full_name] = self._opened(path, full_name, bases)
        except BaseException:
            self._stack.close()
            raise
        if self._bases and not self._open:
            wanted = ", ".join(sorted(self._bases)[:3])
            raise OperatorError(f"no clone of {wanted}: clones are folders named owner+name or owner/name")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, full_name: str) -> Clone | None:
        """The clone of ``owner/name``; None where there is none."""
        return self._open.get(full_name)

    def _opened(self, path: Path, full_name: str, bases: set[str]) -> Clone:
        repository = self._stack.enter_context(GitRepository(path))
        if self._forge_of is not None:
            forge = self._forge_of(full_name)
            return Clone(repository, ForgePulls(forge), ForgeContext(forge))
        present = sorted(base for base in bases if repository.has_commit(base))
        pulls = Pulls.read(repository) if self._pull_refs != "ignore" else Pulls()
        try:
            history = History(CommitGraph.read(repository, present, full_name), pulls)
            inferred = PullCommits(repository, pulls, present) if self._pull_refs == "infer" else None
        except GitError as error:
            raise OperatorError(f"{path}: its history cannot be read: {error}") from error
        return Clone(repository, ClonedPulls(history, inferred), ClonedContext(repository, history, pulls))
