"""A repository as the reviewers of one pull request could see it: its base, its own commits, and what came
before.

Text and diff come from the snapshot of the opening. Files come from a clone, where there is one; a commit
that the pull request's head does not build on (its merge, the fix, today's default branch) raises
NotRecorded, so that no reviewer can be helped by what was only known later.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from bot.errors import NotFound, NotRecorded
from bot.forge.protocol import TreeEntry
from bot.forge.replay import ReplayForge, Snapshot
from evaluation.crbench.context import PullContext
from evaluation.crbench.git import GitError, GitRepository


class PastForge(ReplayForge):
    """A snapshot, and the files of the commits that existed when the pull request was opened."""

    def __init__(self, snapshot: Snapshot, repository: GitRepository, pull: PullContext) -> None:
        super().__init__(snapshot)
        self._clone = repository
        self._pull = pull
        self._allowed = {pull.base_sha, pull.head_sha}

    def file(self, path: str, ref: str) -> bytes:
        commit = self._seen(ref)
        content = self._clone.blob(commit, path)
        if content is None:
            raise NotFound(f"{path} at {ref}", status=404)
        return content

    def tree(self, ref: str) -> tuple[TreeEntry, ...]:
        listing = self._clone.run("ls-tree", "-r", "-l", "-z", "--full-tree", self._seen(ref))
        entries = (line.decode("utf-8", "surrogateescape") for line in listing.split(b"\0") if line)
        files = (entry.split("\t", 1) for entry in entries)
        return tuple(
            TreeEntry(path=path, size=int(facts.split()[3]))
            for facts, path in files
            if facts.split()[1] == "blob" and facts.split()[0] != "120000"
        )

    def checkout(self, ref: str, folder: Path) -> None:
        for entry in self.tree(ref):
            relative = PurePosixPath(entry.path)
            if relative.is_absolute() or ".." in relative.parts:
                continue
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.file(entry.path, ref))

    def _seen(self, ref: str) -> str:
        """The commit of a branch or SHA. Raises NotRecorded where it was not there to be seen."""
        commit = self.head(ref) if ref in self._snapshot.heads else ref
        if commit not in self._allowed:
            if not self._is_before(commit):
                raise NotRecorded(f"{ref} came after pull request #{self._pull.number}, or beside it")
            self._allowed.add(commit)
        return commit

    def _is_before(self, commit: str) -> bool:
        try:
            self._clone.run("merge-base", "--is-ancestor", f"{commit}^{{commit}}", self._pull.head_sha)
        except GitError:
            return False
        return True
