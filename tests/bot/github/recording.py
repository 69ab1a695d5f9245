"""A forge that records a snapshot."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bot.github.offline import RecordedTree, Snapshot
from bot.github.protocol import SourceTree
from bot.pipeline.readings import ReadOnce


class RecordingForge(ReadOnce):
    """Passes every call on to another forge once; ``snapshot`` returns all answers."""

    def snapshot(self) -> Snapshot:
        """Return all calls so far with their answers."""
        return Snapshot(repository=self.repository, **self._answers, missing=tuple(self._missing))

    def checkout(self, ref: str, folder: Path) -> None:
        super().checkout(ref, folder)
        self._answers.setdefault("checkouts", {})[ref] = _read_all(folder)

    def sources(self, ref: str) -> SourceTree:
        """Record the files as a checkout."""
        if ref not in self._answers.get("checkouts", {}):
            with tempfile.TemporaryDirectory(prefix="bouncer-record-") as name:
                self.checkout(ref, Path(name))
        return RecordedTree(self._answers["checkouts"][ref])


def _read_all(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
