"""Set-up without HTTP: the operator's choices and the state of the flow, in the memory of one process."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import Literal
from urllib.parse import quote, urlsplit

from pydantic import Field

from bot.core.frozen import Frozen
from bot.github.registration import Manifest
from bot.settings import readable_on_the_way

#: GitHub's code is good for an hour; so is the state that it has to come back with, seconds.
STATE_SECONDS = 3600.0

_HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")
_PATH = re.compile(r"[A-Za-z0-9._~/-]*")
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38}")


class Choice(Frozen):
    """The operator's valid choices."""

    organization: str = Field("", description="owner of the app; empty = the signed-in user")
    name: str
    web_url: str
    api_url: str
    public_url: str = Field(description="how people, and GitHub's redirects, reach this server")
    webhook_url: str = Field(description="how GitHub's deliveries reach it; a webhook proxy in development")
    test_pulls: bool = False
    members: bool = False
    keep: Literal["file", "terminal"] = "file"
    mode: Literal["live", "shadow"] = "shadow"

    @property
    def register_url(self) -> str:
        """Return the GitHub page that receives the manifest."""
        if self.organization:
            return f"{self.web_url}/organizations/{quote(self.organization)}/settings/apps/new"
        return f"{self.web_url}/settings/apps/new"

    def extended(self, base: Manifest) -> Manifest:
        """Return the manifest with the permissions of the chosen features."""
        manifest = base.with_test_pulls() if self.test_pulls else base
        return manifest.with_members() if self.members else manifest

    def manifest(self, base: Manifest) -> dict[str, object]:
        """Return the manifest that GitHub registers."""
        posted = self.extended(base).posted(self.public_url, self.name)
        return {**posted, "hook_attributes": {"url": self.webhook_url, "active": True}}


class Addresses(Frozen):
    """The operator's own GitHub, as the settings name it."""

    api_url: str
    web_url: str


def choose(form: Mapping[str, str], default: Addresses) -> tuple[Choice | None, dict[str, str]]:
    """Return the choice in a form's fields, or the mistakes by field."""
    web_url, public_url = _url(form.get("web_url")), _url(form.get("public_url"))
    webhook_url = _url(form.get("webhook_url")) if form.get("webhook_url", "").strip() else f"{public_url}/webhook"
    owner = form.get("organization", "").strip()
    organization = owner if form.get("owner") == "organization" else ""
    name = form.get("name", "").strip() or (f"bouncer-{owner}"[:34].rstrip("-") if owner else "")
    wrong = {}
    if web_url is None:
        wrong["web_url"] = "This is not a web address like https://github.example.com."
    elif web_url != default.web_url and readable_on_the_way(web_url):
        # The App's key comes from there. GITHUB_WEB_URL was checked with the settings.
        wrong["web_url"] = "Use https://: the App's key comes from there."
    if public_url is None:
        wrong["public_url"] = "This is not a web address like https://bouncer.example.com."
    if webhook_url is None:
        wrong["webhook_url"] = "This is not a web address."
    if form.get("owner") == "organization" and not _LOGIN.fullmatch(organization):
        wrong["organization"] = "Enter the organization's name as in its address on GitHub."
    if not 1 <= len(name) <= 34:
        wrong["name"] = "Enter a name of 1 to 34 characters, or the owner above for bouncer-OWNER."
    if wrong or web_url is None or public_url is None or webhook_url is None:
        return None, wrong
    return Choice(
        organization=organization,
        name=name,
        web_url=web_url,
        api_url=api_of(web_url, default),
        public_url=public_url,
        webhook_url=webhook_url,
        test_pulls=form.get("test_pulls") == "yes",
        members=bool(organization) and form.get("members") == "yes",
        keep="terminal" if form.get("keep") == "terminal" else "file",
        mode="live" if form.get("mode") == "live" else "shadow",
    ), {}


def api_of(web_url: str, default: Addresses) -> str:
    """Return the API's address: the configured one, a tenant's subdomain, or a server's /api/v3."""
    if web_url == default.web_url:
        return default.api_url
    parts = urlsplit(web_url)
    if (parts.hostname or "").endswith(".ghe.com"):
        return f"{parts.scheme}://api.{parts.netloc}"
    return f"{web_url}/api/v3"


def unreachable(url: str) -> bool:
    """Return True for a local or private address, to which GitHub cannot deliver."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host


def _url(text: str | None) -> str | None:
    """Return a web address without a trailing slash; None if it is invalid or has a query or a password."""
    url = (text or "").strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    plain = not (parts.username or parts.password or parts.query or parts.fragment) and port != 0
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.hostname or "") or len(url) > 200:
        return None
    return url if plain and _PATH.fullmatch(parts.path) else None


Refusal = Literal["unknown", "used", "expired"]


class Guard:
    """The one-time link, the browser that opened it, and the pending states of its choices."""

    def __init__(self, link: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._link = link
        self._clock = clock
        self._lock = threading.Lock()
        self._cookie: str | None = None
        self._pending: dict[str, tuple[Choice, float]] = {}
        self._used: set[str] = set()
        self.finished = False

    def enter(self, link: str) -> str | None:
        """Return a cookie for the first use of the link; None for a wrong link or a later use."""
        with self._lock:
            if self._cookie is not None or not _same(link, self._link):
                return None
            self._cookie = secrets.token_urlsafe(32)
            return self._cookie

    def offers(self, link: str) -> bool:
        """Return True if the link can still be used, without using it."""
        return self._cookie is None and _same(link, self._link)

    def knows(self, cookie: str) -> bool:
        """Return True for the browser that used the link."""
        return self._cookie is not None and _same(cookie, self._cookie)

    def begin(self, choice: Choice) -> str:
        """Return a new state for a choice that goes to GitHub."""
        state = secrets.token_urlsafe(32)
        with self._lock:
            self._pending[state] = (choice, self._clock())
        return state

    def take(self, state: str) -> Choice | Refusal:
        """Return the choice of a state, which is valid once and for an hour."""
        with self._lock:
            if state in self._used:
                return "used"
            if state not in self._pending:
                return "unknown"
            choice, since = self._pending.pop(state)
            self._used.add(state)
            return choice if self._clock() - since <= STATE_SECONDS else "expired"

    def give_back(self, state: str, choice: Choice) -> None:
        """Make a state valid again, because GitHub did not answer."""
        with self._lock:
            self._used.discard(state)
            self._pending[state] = (choice, self._clock())


def _same(attempt: str, secret: str) -> bool:
    return hmac.compare_digest(attempt.encode("utf-8", "replace"), secret.encode())
