"""The files of a local clone beside a snapshot, at the commits that a replay may see and at no other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from bot.errors import NotFound, NotRecorded
from bot.forge.protocol import TreeEntry
from bot.forge.replay import ReplayForge, Snapshot
from evaluation.git.repository import GitRepository

#: The share of a commit's files that a clone may lack: partial clones leave out a few large ones.
MISSING = 0.01
#: What stands for such a file: nobody takes it for text, or for an empty file.
UNREADABLE = b"\0"


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
