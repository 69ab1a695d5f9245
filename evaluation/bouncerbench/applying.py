"""Whether git would take a patch at its instance's base commit (BouncerBench, II.A): no work tree, no write."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType

from bot.errors import OperatorError
from evaluation.bouncerbench.code import Code
from evaluation.git.repository import GitError, GitRepository


class Applying:
    """Tries patches in an index of its own, read from a clone; use as a context manager.

    Patches of one instance should come one after the other: the index is made anew for each base commit.
    """

    def __init__(self, repos: Path) -> None:
        """``repos``: as for ``Code``."""
        self.unchecked = ""
        self._code = Code(repos)
        self._folder = tempfile.TemporaryDirectory(prefix="bouncer-index-")
        self._read: tuple[str, str] | None = None

    def __enter__(self) -> Applying:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._code.__exit__(kind, error, trace)
        self._folder.cleanup()

    def fits(self, patch: str, full_name: str, base_commit: str) -> bool | None:
        """Whether it applies exactly; None where no clone holds the commit: ``unchecked`` is the last reason.

        Raises GitError where the clone is damaged.
        """
        try:
            clone = self._code.clone(full_name, base_commit)
        except OperatorError as error:
            self.unchecked = str(error)
            return None
        index = self._index(clone, full_name, base_commit)
        # Files that end without a newline are whole to the benchmark's harness and corrupt to git.
        given = (patch if patch.endswith("\n") else f"{patch}\n").encode("utf-8", "surrogatepass")
        try:
            clone.run("apply", "--check", "--cached", "--whitespace=nowarn", "-", stdin=given, index=index)
        except GitError:
            return False
        return True

    def _index(self, clone: GitRepository, full_name: str, base_commit: str) -> Path:
        index = Path(self._folder.name) / "index"
        if self._read != (full_name, base_commit):
            self._read = None
            clone.run("read-tree", base_commit, index=index)
            self._read = (full_name, base_commit)
        return index
