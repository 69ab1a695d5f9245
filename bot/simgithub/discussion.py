"""Actions of people on issues and in conversations."""

from __future__ import annotations

from collections.abc import Sequence

from bot.simgithub.base import Base


class Discussion(Base):
    """Each action is announced to the apps and returns once they have answered."""

    def open_issue(
        self, repository: str, title: str, body: str = "", author: str = "alice", labels: Sequence[str] = ()
    ) -> int:
        """Open an issue and return its number."""
        with self.world.lock:
            where = self.world.repositories[repository]
            number = self._operations.open_issue(where, title, body, self.world.user(author), labels).number
        self.settle()
        return number

    def edit(self, repository: str, number: int, *, by: str = "", **new: str) -> None:
        """Change ``title`` or ``body`` of an issue or pull request; by its author if ``by`` is empty."""
        with self.world.lock:
            where, issue = self.find(repository, number)
            self._operations.edit(where, issue, self.world.user(by) if by else issue.author, **new)
        self.settle()

    def close(self, repository: str, number: int, *, by: str = "", reason: str | None = "completed") -> None:
        with self.world.lock:
            where, issue = self.find(repository, number)
            user = self.world.user(by) if by else issue.author
            self._operations.set_state(where, issue, "closed", user, None if issue.pull else reason)
        self.settle()

    def reopen(self, repository: str, number: int, *, by: str = "") -> None:
        with self.world.lock:
            where, issue = self.find(repository, number)
            user = self.world.user(by) if by else issue.author
            self._operations.set_state(where, issue, "open", user, "reopened")
        self.settle()

    def unlabel(self, repository: str, number: int, name: str, *, by: str) -> None:
        with self.world.lock:
            self._operations.remove_label(*self.find(repository, number), name, self.world.user(by))
        self.settle()

    def label(self, repository: str, number: int, name: str, *, by: str) -> None:
        with self.world.lock:
            self._operations.add_label(*self.find(repository, number), name, self.world.user(by))
        self.settle()

    def comment(self, repository: str, number: int, body: str, author: str = "alice") -> int:
        """Post a comment and return its id."""
        with self.world.lock:
            where, issue = self.find(repository, number)
            comment_id = self._operations.add_comment(where, issue, body, self.world.user(author)).id
        self.settle()
        return comment_id

    def edit_comment(self, repository: str, comment_id: int, body: str, *, by: str) -> None:
        with self.world.lock:
            self._operations.edit_comment(
                self.world.repositories[repository], comment_id, body, self.world.user(by)
            )
        self.settle()

    def delete_comment(self, repository: str, comment_id: int, *, by: str) -> None:
        with self.world.lock:
            self._operations.delete_comment(self.world.repositories[repository], comment_id, self.world.user(by))
        self.settle()
