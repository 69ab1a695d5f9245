"""The operator's pages: what was decided, why, what it cost, where it failed, and whether people agreed."""

from __future__ import annotations

from pydantic import Field

from bot.core.frozen import Frozen
from bot.github.oauth import GitHubLogin, Visitor


class Admins(Frozen):
    """Who may come in with a GitHub account."""

    logins: frozenset[str] = Field(description="lower case")
    organizations: tuple[str, ...] = ()

    def admit(self, visitor: Visitor) -> bool:
        """Whether this one may."""
        return visitor.login.lower() in self.logins or bool(visitor.organizations)


class DashboardSettings(Frozen):
    """What the dashboard needs of the operator's settings."""

    password: str = Field("", description="empty: nobody comes in with a password")
    github: GitHubLogin | None = Field(None, description="None: nobody comes in with a GitHub account")
    admins: Admins = Admins(logins=frozenset())
    session_key: str = Field(description="ends all sessions when it changes; see ``Sessions``")
    public_url: str | None = None
    host: str = "127.0.0.1"
    web_url: str = "https://github.com"
    model: str = ""
    paused: bool = False
    daily_usd: float | None = None
    repository_usd: float | None = None
    repository_calls: int | None = None
