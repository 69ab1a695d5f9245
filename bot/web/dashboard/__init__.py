"""The operator's pages: what was decided, why, what it cost, where it failed, and whether people agreed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pydantic import Field

from bot.core.frozen import Frozen
from bot.github.oauth import GitHubLogin, Visitor
from bot.github.protocol import OpenPull
from bot.pipeline.store.logins import Logins
from bot.settings import Settings


class Admins(NamedTuple):
    """Accounts and organizations that may log in with GitHub; logins are in lower case."""

    ids: frozenset[int]
    logins: frozenset[str]
    organizations: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Admins:
        """Read a valid BOUNCER_ADMINS: ids, logins and ``org:NAME``, separated by commas."""
        names = [name.strip() for name in text.split(",") if name.strip()]
        ids = frozenset(int(name) for name in names if name.isascii() and name.isdigit())
        organizations = tuple(name.removeprefix("org:") for name in names if name.startswith("org:"))
        logins = frozenset(name.lower() for name in names if not name.isdigit() and not name.startswith("org:"))
        return cls(ids, logins, organizations)

    def admit(self, visitor: Visitor, logins: Logins) -> bool:
        """Return True for a named account or a member of a named organization.

        A name counts for the account or organization that first used it, whatever either is called now.
        """
        if visitor.id in self.ids or visitor.id in logins.ids(self.logins):
            return True
        name = visitor.login.lower()
        names = [(name, visitor.id)] if name in self.logins else []
        names += [(f"org:{name.lower()}", github_id) for name, github_id in visitor.organizations.items()]
        return any(logins.first_id(name, github_id) == github_id for name, github_id in names)


class DashboardSettings(Frozen):
    """The operator's settings, and what follows from them."""

    server: Settings
    github: GitHubLogin | None = Field(None, description="None: no log-in with a GitHub account")
    may_open_pulls: Callable[[str], bool] = Field(
        lambda repository: False, description="True if the App may open pull requests in a repository"
    )
    open_pulls: Callable[[str], tuple[OpenPull, ...]] = Field(
        lambda repository: (), description="reads a repository's open pull requests; raises OperatorError"
    )

    @property
    def in_shadow(self) -> bool:
        """True if the whole server posts nothing; set-up in the browser may choose it while the server runs."""
        return self.server.completed().in_shadow
