"""Log visitors in with GitHub, by the App's own OAuth: exchange a code from the browser for a login.

The token of the exchange is used to read the account and its organizations, and is not stored.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from pydantic import Field

from bot.core.errors import ForgeError, NotFound
from bot.core.frozen import Frozen
from bot.github.http import Client, Transport
from bot.github.identity import Identity
from bot.github.payloads import read


class Visitor(Frozen):
    """A user who logged in on GitHub."""

    id: int
    login: str
    organizations: dict[str, int] = Field(description="their organizations among those asked about, with ids")


@dataclass(frozen=True)
class GitHubLogin:
    """The OAuth client of the App."""

    client_id: str
    client_secret: str = field(repr=False)
    web_url: str
    api_url: str

    def address(self, back: str, state: str, verifier: str) -> str:
        """Return the address for the browser; GitHub sends it back to ``back`` with a code and this ``state``."""
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "client_id": self.client_id,
            "redirect_uri": back,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "allow_signup": "false",
        }
        return f"{self.web_url}/login/oauth/authorize?{urlencode(query)}"

    def visitor(self, code: str, back: str, verifier: str, organizations: Collection[str]) -> Visitor:
        """Return the visitor that a code belongs to. Raises ForgeError if GitHub refuses it; TransientError."""
        with closing(Transport()) as transport:
            client = Client(Identity(self._token(code, back, verifier, transport)), self.api_url, transport)
            github_id, login = read(lambda user: (int(user["id"]), str(user["login"])), client.get("/user"))
            memberships = {name: _member(client, name) for name in organizations}
        return Visitor(
            id=github_id,
            login=login,
            organizations={name: number for name, number in memberships.items() if number is not None},
        )

    def _token(self, code: str, back: str, verifier: str, transport: Transport) -> str:
        body = {
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "code": code,
            "redirect_uri": back,
            "code_verifier": verifier,
        }
        answer = Client(Identity(), self.web_url, transport).send(
            "POST", "/login/oauth/access_token", body, operation="the log-in", accept="application/json"
        )
        if not isinstance(answer, dict) or not isinstance(answer.get("access_token"), str):
            # GitHub says what is wrong with status 200.
            why = str(answer.get("error") if isinstance(answer, dict) else "no answer")[:100]
            raise ForgeError(f"the log-in: GitHub does not take the code ({why})")
        return str(answer["access_token"])


def _member(client: Client, organization: str) -> int | None:
    """Return the id of the organization if the visitor is a member of it."""
    try:
        membership = client.get(f"/user/memberships/orgs/{quote(organization, safe='')}")
    except NotFound:
        return None
    except ForgeError as error:
        if error.status == 403:
            raise ForgeError(
                f"the App may not see who belongs to {organization}: give it the organization permission "
                "Members (read), and accept it where the App is installed",
                403,
            ) from None
        raise
    if membership.get("state") != "active":
        return None
    return read(lambda answer: int(answer["organization"]["id"]), membership)
