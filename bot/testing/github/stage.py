"""Where people act on the simulated GitHub."""

from __future__ import annotations

from collections.abc import Mapping

from bot.testing.github.acts import Acts
from bot.testing.github.state import Issue, Repository

Text = Mapping[str, str | bytes | None]


class Stage:
    """Repositories are named ``owner/name`` and people by login."""

    def __init__(self, acts: Acts) -> None:
        self.world = acts.world
        self._acts = acts

    def settle(self) -> None:
        """Wait until every webhook was answered or given up."""
        self.world.outbox.join()

    def find(self, repository: str, number: int) -> tuple[Repository, Issue]:
        """The records of an issue or pull request."""
        where = self.world.repositories[repository]
        return where, where.issues[number]


def as_bytes(files: Text) -> dict[str, bytes | None]:
    """File contents as they are stored; None removes a file."""
    return {path: each.encode() if isinstance(each, str) else each for path, each in files.items()}
