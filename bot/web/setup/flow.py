"""Set-up without HTTP: what was chosen, and who is in the middle of it. One process holds it in memory."""

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
    """What the operator wants, complete and valid."""

    organization: str = Field("", description="owner of the app; empty = the signed-in user")
    name: str
    web_url: str
    api_url: str
    public_url: str = Field(description="how people, and GitHub's redirects, reach this server")
    webhook_url: str = Field(description="how GitHub's deliveries reach it; a webhook proxy in development")
    test_pulls: bool = False
    members: bool = False
    keep: Literal["file", "terminal"] = "file"

    @property
    def register_url(self) -> str:
        """Where the manifest is posted to."""
        if self.organization:
            return f"{self.web_url}/organizations/{quote(self.organization)}/settings/apps/new"
        return f"{self.web_url}/settings/apps/new"

    def asked(self, base: Manifest) -> Manifest:
        """The permissions that the chosen features need."""
        chosen = base.with_test_pulls() if self.test_pulls else base
        return chosen.with_members() if self.members else chosen

    def manifest(self, base: Manifest) -> dict[str, object]:
        """What GitHub is asked to register."""
        posted = self.asked(base).posted(self.public_url, self.name)
        return {**posted, "hook_attributes": {"url": self.webhook_url, "active": True}}


class Addresses(Frozen):
    """The operator's own GitHub, as the settings name it."""

    api_url: str
    web_url: str


def choose(form: Mapping[str, str], known: Addresses) -> tuple[Choice | None, dict[str, str]]:
    """The choice in a form's fields, or what is wrong with it by field."""
    web_url, public_url = _url(form.get("web_url")), _url(form.get("public_url"))
    webhook_url = _url(form.get("webhook_url")) if form.get("webhook_url", "").strip() else f"{public_url}/webhook"
    organization = form.get("organization", "").strip() if form.get("owner") == "organization" else ""
    name = form.get("name", "").strip()
    wrong = {}
    if web_url is None:
        wrong["web_url"] = "This is not a web address like https://github.example.com."
    elif web_url != known.web_url and readable_on_the_way(web_url):
        # What GitHub gives at the end of set-up is the App's key. GITHUB_WEB_URL was checked with the settings.
        wrong["web_url"] = "Use https://: the App's key comes from there."
    if public_url is None:
        wrong["public_url"] = "This is not a web address like https://bouncer.example.com."
    if webhook_url is None:
        wrong["webhook_url"] = "This is not a web address."
    if form.get("owner") == "organization" and not _LOGIN.fullmatch(organization):
        wrong["organization"] = "Name the organization as it stands in its address."
    if not 1 <= len(name) <= 34:
        wrong["name"] = "A name of 1 to 34 characters; it must be unique on GitHub."
    if wrong or web_url is None or public_url is None or webhook_url is None:
        return None, wrong
    return Choice(
        organization=organization,
        name=name,
        web_url=web_url,
        api_url=api_of(web_url, known),
        public_url=public_url,
        webhook_url=webhook_url,
        test_pulls=form.get("test_pulls") == "yes",
        members=bool(organization) and form.get("members") == "yes",
        keep="terminal" if form.get("keep") == "terminal" else "file",
    ), {}


def api_of(web_url: str, known: Addresses) -> str:
    """The API of the GitHub at an address: the configured one, a tenant's own subdomain, or a server's /api/v3."""
    if web_url == known.web_url:
        return known.api_url
    parts = urlsplit(web_url)
    if (parts.hostname or "").endswith(".ghe.com"):
        return f"{parts.scheme}://api.{parts.netloc}"
    return f"{web_url}/api/v3"


def unreachable(url: str) -> bool:
    """Whether an address is this machine's own or a private one: GitHub could hardly deliver there."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host


def _url(text: str | None) -> str | None:
    """A web address without a trailing slash; None where it is none, or carries more than a place."""
    given = (text or "").strip().rstrip("/")
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        return None
    plain = not (parts.username or parts.password or parts.query or parts.fragment) and port != 0
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.hostname or "") or len(given) > 200:
        return None
    return given if plain and _PATH.fullmatch(parts.path) else None


Refusal = Literal["unknown", "used", "expired"]


class Guard:
    """The one-time link, the one browser that opened it, and the states that its choices went out with."""

    def __init__(self, link: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._link = link
        self._clock = clock
        self._lock = threading.Lock()
        self._cookie: str | None = None
        self._pending: dict[str, tuple[Choice, float]] = {}
        self._used: set[str] = set()
        self.finished = False

    def enter(self, link: str) -> str | None:
        """The cookie for whoever uses the link first; None for a wrong link and for everybody after."""
        with self._lock:
            if self._cookie is not None or not _same(link, self._link):
                return None
            self._cookie = secrets.token_urlsafe(32)
            return self._cookie

    def offers(self, link: str) -> bool:
        """Whether the link could still be used; looking at it does not use it."""
        return self._cookie is None and _same(link, self._link)

    def knows(self, cookie: str) -> bool:
        """Whether this is the browser that used the link."""
        return self._cookie is not None and _same(cookie, self._cookie)

    def begin(self, choice: Choice) -> str:
        """The state under which a choice goes out to GitHub."""
        state = secrets.token_urlsafe(32)
        with self._lock:
            self._pending[state] = (choice, self._clock())
        return state

    def take(self, state: str) -> Choice | Refusal:
        """The choice that went out under a state; it counts once and for an hour."""
        with self._lock:
            if state in self._used:
                return "used"
            if state not in self._pending:
                return "unknown"
            choice, since = self._pending.pop(state)
            self._used.add(state)
            return choice if self._clock() - since <= STATE_SECONDS else "expired"

    def give_back(self, state: str, choice: Choice) -> None:
        """GitHub did not answer: the same address may be loaded again."""
        with self._lock:
            self._used.discard(state)
            self._pending[state] = (choice, self._clock())


def _same(given: str, kept: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), kept.encode())
