"""The files of a local clone beside a snapshot, at the commits that a replay may see and at no other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from bot.errors import NotFound, NotRecorded
from bot.forge.protocol import TreeEntry
from bot.forge.replay import ReplayForge, Snapshot
from evaluation.crbench.git import GitRepository


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
        """The commit of a branch or SHA. Raises NotRecorded where it must not be seen."""
        commit = self._snapshot.heads.get(ref, ref)
        if commit not in self._visible:
            raise NotRecorded(f"{ref} of {self.repository} is not what this task is about: its files stay unseen")
        return commit
