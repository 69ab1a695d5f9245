"""A repository as the reviewers of one pull request could see it: its base, its own commits, and what came
before.

Text and diff come from the snapshot of the opening. Files come from a clone, where there is one; a commit
that the pull request's head does not build on (its merge, the fix, today's default branch) raises
NotRecorded, so that no reviewer can be helped by what was only known later.
"""

from __future__ import annotations

from bot.errors import NotRecorded
from bot.forge.replay import Snapshot
from evaluation.crbench.context import PullContext
from evaluation.git.forge import ClonedForge
from evaluation.git.repository import GitError, GitRepository


class PastForge(ClonedForge):
    """A snapshot, and the files of the commits that existed when the pull request was opened."""

    def __init__(self, snapshot: Snapshot, repository: GitRepository, pull: PullContext) -> None:
        super().__init__(snapshot, repository, (pull.base_sha, pull.head_sha))
        self._pull = pull

    def _seen(self, ref: str) -> str:
        commit = self._snapshot.heads.get(ref, ref)
        if commit not in self._visible:
            if not self._is_before(commit):
                raise NotRecorded(f"{ref} came after pull request #{self._pull.number}, or beside it")
            self._visible.add(commit)
        return commit

    def _is_before(self, commit: str) -> bool:
        try:
            self._clone.run("merge-base", "--is-ancestor", f"{commit}^{{commit}}", self._pull.head_sha)
        except GitError:
            return False
        return True
