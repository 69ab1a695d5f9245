"""The operator's pages: what was decided, why, what it cost, where it failed, and whether people agreed."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from bot.core.frozen import Frozen
from bot.github.oauth import GitHubLogin, Visitor
from bot.github.protocol import OpenPull
from bot.pipeline.store.logins import Logins


class Admins(Frozen):
    """Accounts and organizations that may log in with GitHub."""

    ids: frozenset[int] = frozenset()
    logins: frozenset[str] = Field(frozenset(), description="lower case")
    organizations: tuple[str, ...] = ()

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
    """The operator's settings that the dashboard needs."""

    password: str = Field("", description="empty: no log-in with a password")
    github: GitHubLogin | None = Field(None, description="None: no log-in with a GitHub account")
    admins: Admins = Admins()
    session_key: str = Field(description="ends all sessions when it changes; see ``Sessions``")
    public_url: str | None = None
    host: str = "127.0.0.1"
    web_url: str = "https://github.com"
    about_url: str = ""
    model: str = ""
    may_open_pulls: Callable[[str], bool] = Field(
        lambda repository: False, description="True if the App may open pull requests in a repository"
    )
    open_pulls: Callable[[str], tuple[OpenPull, ...]] = Field(
        lambda repository: (), description="reads a repository's open pull requests; raises OperatorError"
    )
    paused: bool = False
    in_shadow: Callable[[], bool] = Field(bool, description="True if the whole server posts nothing")
    daily_usd: float | None = None
    repository_usd: float | None = None
    repository_calls: int | None = None
