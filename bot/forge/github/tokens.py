"""Who we are to GitHub: the app by its key, an installation by a short-lived token narrowed to what is needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from github.Auth import AppAuth

from bot.forge.github.client import Identity

#: What each half of the forge is allowed; minted apart, so that what reads cannot write.
READ: Mapping[str, str] = {"contents": "read", "issues": "read", "pull_requests": "read", "checks": "read"}
WRITE: Mapping[str, str] = {"contents": "read", "issues": "write", "pull_requests": "write", "checks": "write"}
#: Only for test pull requests.
CONTENTS: Mapping[str, str] = {"contents": "write", "pull_requests": "write"}

#: A token is replaced when less than this is left of its hour, seconds.
RENEW_BEFORE = 300.0

#: How long one signature of the app's serves, seconds.
SIGNED_SECONDS = 60.0

#: Mints a token: its value, and the moment it expires.
Mint = Callable[[], tuple[str, datetime]]


class AppIdentity(Identity):
    """The app itself, by a JSON Web Token signed with its key: good for 5 minutes, used for one."""

    def __init__(self, app_id: str, key: RSAPrivateKey, clock: Callable[[], float] = time.time) -> None:
        # Issued a minute ago and short-lived (PyGithub's defaults): a clock that is a little off does no harm.
        self._auth = AppAuth(app_id, sign_func=lambda claims: jwt.encode(claims, key, algorithm="RS256"))
        self._clock = clock
        self._signed = ("", float("-inf"))

    @property
    def token_type(self) -> str:
        return "Bearer"

    @property
    def token(self) -> str:
        token, since = self._signed
        if not 0 <= self._clock() - since < SIGNED_SECONDS:
            token = self._auth.token
            self._signed = (token, self._clock())
        return token


class InstallationIdentity(Identity):
    """An installation, by a token that is minted when first needed, before it expires, and once when refused."""

    def __init__(self, installation: int, mint: Mint, clock: Callable[[], float] = time.time) -> None:
        self.installation = installation
        self._mint = mint
        self._clock = clock
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at = 0.0

    @property
    def token_type(self) -> str:
        return "Bearer"

    @property
    def token(self) -> str:
        with self._lock:
            now = self._clock()
            if self._token is None or now >= self._renew_at:
                self._token, expires = self._mint()
                # Where our clock is far ahead every token looks expired; each is then used for a minute.
                self._renew_at = max(expires.timestamp() - RENEW_BEFORE, now + 60.0)
            return self._token

    def refuse(self, secret: str) -> bool:
        with self._lock:
            if self._token == secret:
                self._token = None
        return True
