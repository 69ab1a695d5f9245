"""The base of the classes with people's actions on the simulated GitHub."""

from __future__ import annotations

from collections.abc import Mapping

from bot.simgithub.operations import Operations
from bot.simgithub.state import IssueState, RepositoryState

Text = Mapping[str, str | bytes | None]


class Base:
    """Repositories are named ``owner/name`` and people by login."""

    def __init__(self, operations: Operations) -> None:
        self.world = operations.world
        self._operations = operations

    def settle(self) -> None:
        """Wait until every webhook was answered or given up."""
        self.world.outbox.join()

    def find(self, repository: str, number: int) -> tuple[RepositoryState, IssueState]:
        """The records of an issue or pull request."""
        where = self.world.repositories[repository]
        return where, where.issues[number]


def as_bytes(files: Text) -> dict[str, bytes | None]:
    """File contents as they are stored; None removes a file."""
    return {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
