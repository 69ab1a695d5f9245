"""The accounts that send requests to GitHub: the App, one of its installations, or the owner of a token."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

import jwt
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bot.core.errors import SettingsError

#: A token is replaced when less than this is left of its hour, seconds.
RENEW_BEFORE = 300.0

#: From this difference to GitHub's clock on, a signature that was refused is made anew by that clock, seconds.
WRONG_CLOCK_SECONDS = 30.0
#: How long a signature of the app is valid, and for how long it is used again, seconds.
VALID_SECONDS, SIGNED_SECONDS = 300, 60.0

#: Mints a token: its value, and the moment it expires.
Mint = Callable[[], tuple[str, datetime]]

_log = structlog.get_logger(__name__)


class Identity:
    """An account that sends requests: one with a token that never changes, anonymous if it is empty.

    ``cache_key`` is equal for the same account with the same permissions, which may share answers.
    """

    def __init__(self, token: str = "", cache_key: Hashable = None, installation: int | None = None) -> None:
        self.cache_key = token if cache_key is None else cache_key
        self.installation = installation
        self._fixed_token = token

    @property
    def token(self) -> str:
        return self._fixed_token

    def refuse(self, secret: str, older_than: float = 0.0, date: str = "") -> bool:
        """Note that the API refused ``secret``. Return True if the next request uses another one.

        A secret that is younger than ``older_than`` seconds is kept. ``date`` is the answer's header of that name.
        """
        return False


class AppIdentity(Identity):
    """The app itself, with a JSON Web Token that is valid for 5 minutes and used for one."""

    def __init__(self, app_id: str, key: RSAPrivateKey, clock: Callable[[], float] = time.time) -> None:
        super().__init__(cache_key="app")
        self._app_id, self._key = app_id, key
        self._clock = clock
        #: Seconds that GitHub's clock is ahead of ours.
        self._ahead = 0.0
        self._signed = ("", float("-inf"))

    @property
    def token(self) -> str:
        token, since = self._signed
        if not 0 <= self._clock() - since < SIGNED_SECONDS:
            # Issued a minute ago and short-lived: a clock that is a little off does no harm. PyGithub would sign
            # with the same library, and take 20 MB of an idle worker for it.
            now = int(self._clock() + self._ahead)
            claims = {"iss": self._app_id, "iat": now - 60, "exp": now + VALID_SECONDS}
            token = jwt.encode(claims, self._key, "RS256")
            self._signed = (token, self._clock())
        return token

    def refuse(self, secret: str, older_than: float = 0.0, date: str = "") -> bool:
        """Sign by GitHub's clock from now on, if ours is wrong by half a minute or more."""
        try:
            ahead = parsedate_to_datetime(date).timestamp() - self._clock()
        except (ValueError, OverflowError):
            return False
        if abs(ahead - self._ahead) < WRONG_CLOCK_SECONDS:
            return False
        self._ahead, self._signed = ahead, ("", float("-inf"))
        _log.warning("clock_wrong", github_is_ahead_by=round(ahead))
        return True


class InstallationIdentity(Identity):
    """An installation. Its token is minted at first use, before it expires, and once after a refusal.

    Its permissions are those of that moment: ones that are granted later need a new token.
    """

    def __init__(
        self, installation: int, cache_key: Hashable, mint: Mint, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(cache_key=cache_key, installation=installation)
        self._mint = mint
        self._clock = clock
        self._lock = threading.Lock()
        self._token: str | None = None
        self._minted_at = self._renew_at = 0.0

    @property
    def token(self) -> str:
        with self._lock:
            now = self._clock()
            if self._token is None or now >= self._renew_at:
                self._token, expires = self._mint()
                self._minted_at = now
                # If our clock is far ahead, every token looks expired; it is then used for a minute.
                self._renew_at = max(expires.timestamp() - RENEW_BEFORE, now + 60.0)
            return self._token

    def refuse(self, secret: str, older_than: float = 0.0, date: str = "") -> bool:
        with self._lock:
            if self._token == secret:
                if 0 <= self._clock() - self._minted_at < older_than:
                    return False
                self._token = None
        return True


def load_key(text: str, source: str = "GITHUB_APP_PRIVATE_KEY") -> RSAPrivateKey:
    """Read an RSA key in PEM; ``\\n`` may be written as two characters, as in one-line variables.

    Raises SettingsError that names ``source`` and never shows any of the text.
    """
    pem = text.strip().strip("\"'").replace("\\n", "\n").replace("\r\n", "\n").strip()
    if not pem:
        raise SettingsError(f"{source}: the private key is empty")
    if "PUBLIC KEY" in pem:
        raise SettingsError(f"{source}: this is a public key; GitHub's .pem file holds the private one")
    if "-----BEGIN" not in pem:
        raise SettingsError(f"{source}: not a PEM private key (one starts with '-----BEGIN RSA PRIVATE KEY-----')")
    try:
        key = _checked_key(pem)
    except TypeError:
        raise SettingsError(f"{source}: the private key is protected by a password; it must not be") from None
    except (ValueError, UnsupportedAlgorithm):
        raise SettingsError(f"{source}: the private key is damaged or cut off") from None
    if not isinstance(key, RSAPrivateKey):
        raise SettingsError(f"{source}: GitHub Apps use RSA keys; this one is another kind")
    return key


@lru_cache(maxsize=1)
def _checked_key(pem: str) -> PrivateKeyTypes:
    """Return a private key; the check takes 40 ms of CPU time, and a start reads the same key several times."""
    return load_pem_private_key(pem.encode(), password=None)
