"""The GitHub App as a whole: its description, its installations, its webhook's deliveries, and forges for them."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import Field

from bot.core.frozen import Frozen
from bot.core.model import Actor
from bot.errors import ForgeError, SettingsError
from bot.forge.github.client import Client, Observe, Query, unobserved
from bot.forge.github.forge import GitHubForge
from bot.forge.github.key import load_key
from bot.forge.github.reading import read
from bot.forge.github.tokens import CONTENTS, READ, WRITE, AppIdentity, InstallationIdentity
from bot.forge.github.writer import GitHubWriter, Pace
from bot.payloads import actor

PUBLIC_API = "https://api.github.com"
#: Forges kept with their connections and tokens; the least recently used one goes.
KEPT = 200


class AppInfo(Frozen):
    """The app as GitHub knows it."""

    id: int
    slug: str
    name: str
    owner: str = ""
    html_url: str = ""
    permissions: Mapping[str, str] = Field(default_factory=dict, description="permission -> read or write")
    events: tuple[str, ...] = ()


class Installation(Frozen):
    """One account that installed the app, and what it granted."""

    id: int
    account: str
    permissions: Mapping[str, str] = Field(default_factory=dict)
    events: tuple[str, ...] = ()
    suspended: bool = False
    html_url: str = ""


class HookDelivery(Frozen):
    """One attempt to deliver a webhook."""

    id: int
    guid: str = Field(description="X-GitHub-Delivery; the same in every redelivery")
    event: str
    action: str | None = None
    delivered_at: datetime
    status_code: int = 0
    attempts: int = Field(1, ge=1, description="how often it was tried, this time included")

    @property
    def failed(self) -> bool:
        return not 200 <= self.status_code < 300


class GitHubApp:
    """Built once per process from the operator's settings; ``close`` it, or use it with ``with``.

    Raises SettingsError for an id, key or address that cannot be right. Nothing is sent before it is needed.
    """

    def __init__(
        self,
        app_id: int | str,
        private_key: str,
        api_url: str = PUBLIC_API,
        *,
        observe: Observe = unobserved,
        seconds_between_writes: float = 1.0,
    ) -> None:
        if not str(app_id).strip():
            raise SettingsError("GITHUB_APP_ID: the app's id is empty")
        self._api_url = checked_url(api_url)
        self._observe = observe
        self._pause = seconds_between_writes
        self._client = Client(AppIdentity(str(app_id).strip(), load_key(private_key)), self._api_url, observe)
        self._lock = threading.Lock()
        self._forges: OrderedDict[tuple[int, str], tuple[GitHubForge, GitHubWriter]] = OrderedDict()
        self._paces: dict[int, Pace] = {}
        self._bot: Actor | None = None

    def __enter__(self) -> GitHubApp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for forge, writer in self._forges.values():
                forge.close()
                writer.close()
            self._forges.clear()
        self._client.close()

    def app(self) -> AppInfo:
        """The app's own description, with the permissions and events it asks for."""
        value = self._client.get("/app")
        return read(lambda: AppInfo(**_only(AppInfo, value), owner=actor(value.get("owner")).login))

    def installations(self) -> tuple[Installation, ...]:
        """Every account that installed the app."""
        return tuple(_installation(each) for each in self._client.pages("/app/installations"))

    def installation_for(self, owner: str, name: str) -> Installation:
        """The installation that reaches a repository. NotFound where the app is not installed there."""
        return _installation(self._client.get(f"/repos/{quote(owner)}/{quote(name)}/installation"))

    def webhook_url(self) -> str:
        """Where GitHub delivers to; empty where no address is set."""
        return str(self._client.get("/app/hook/config").get("url") or "")

    def failed_deliveries(self, since: datetime) -> tuple[HookDelivery, ...]:
        """The last attempt of every delivery after ``since`` of which no attempt succeeded, oldest first.

        GitHub keeps them for about three days.
        """
        failures = [each for each in self._deliveries(since, {"status": "failure"}) if each.failed]
        if not failures:
            return ()
        # Only now the long list: whether another attempt went well since the first one failed.
        tried = list(self._deliveries(min(each.delivered_at for each in failures), {}))
        succeeded = {each.guid for each in tried if not each.failed}
        attempts = Counter(each.guid for each in failures)
        latest = {each.guid: each for each in reversed(failures) if each.guid not in succeeded}
        return tuple(each.model_copy(update={"attempts": attempts[guid]}) for guid, each in latest.items())

    def _deliveries(self, since: datetime, query: Query) -> Iterator[HookDelivery]:
        """Attempts after ``since``, newest first. An older server does not know ``status`` and lists all."""
        for each in self._client.pages("/app/hook/deliveries", query):
            delivery = _delivery(each)
            if delivery.delivered_at < since:
                return
            yield delivery

    def redeliver(self, delivery_id: int) -> None:
        """Ask GitHub to try a delivery again; it keeps its guid."""
        self._client.send("POST", f"/app/hook/deliveries/{delivery_id}/attempts")

    def forge(self, installation: int, repository: str) -> tuple[GitHubForge, GitHubWriter]:
        """The two halves of the forge for ``owner/name``; what reads holds a token that cannot write."""
        key = (installation, repository)
        with self._lock:
            if key not in self._forges:
                self._forges[key] = self._make(installation, repository)
            self._forges.move_to_end(key)
            while len(self._forges) > KEPT:
                # Not closed: a job may hold it still. Its sockets close with the last reference.
                self._forges.popitem(last=False)
            return self._forges[key]

    def _make(self, installation: int, repository: str) -> tuple[GitHubForge, GitHubWriter]:
        def client(permissions: Mapping[str, str]) -> Client:
            identity = InstallationIdentity(
                installation, lambda: self._mint(installation, repository, permissions)
            )
            return Client(identity, self._api_url, self._observe)

        pace = self._paces.setdefault(installation, Pace(self._pause))
        return (
            GitHubForge(client(READ), repository, self._identity),
            GitHubWriter(client(WRITE), client(CONTENTS), repository, pace),
        )

    def _mint(self, installation: int, repository: str, permissions: Mapping[str, str]) -> tuple[str, datetime]:
        path = f"/app/installations/{installation}/access_tokens"
        wanted = {"repositories": [repository.partition("/")[2]], "permissions": dict(permissions)}
        try:
            value = self._client.send("POST", path, wanted)
        except ForgeError as error:
            if error.status != 422:
                raise
            # Not all of it was granted. A token for the rest does most of the work; ``doctor`` names the gap.
            wanted["permissions"] = self._granted(installation, permissions)
            value = self._client.send("POST", path, wanted)
        return read(lambda: (str(value["token"]), datetime.fromisoformat(value["expires_at"])))

    def _granted(self, installation: int, permissions: Mapping[str, str]) -> dict[str, str]:
        granted = _installation(self._client.get(f"/app/installations/{installation}")).permissions
        return {
            name: "read" if granted[name] == "read" else level
            for name, level in permissions.items()
            if name in granted
        }

    def _identity(self, ask: Callable[[str], Any]) -> Actor:
        """Our bot account, asked for once per process with an installation's own token."""
        if self._bot is None:
            login = f"{self.app().slug}[bot]"
            self._bot = actor(ask(f"/users/{quote(login)}"))
        return self._bot


def checked_url(url: str, name: str = "GITHUB_API_URL") -> str:
    """The address without a trailing slash. Raises SettingsError, naming ``name``, where it is no web address."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise SettingsError(
            f"{name}: {url.strip()[:80]!r} is not an address like https://github.example.com/api/v3"
        )
    return url.strip().rstrip("/")


def _installation(value: Any) -> Installation:
    return read(
        lambda: Installation(
            **_only(Installation, value),
            account=actor(value.get("account")).login,
            suspended=value.get("suspended_at") is not None,
        )
    )


def _delivery(value: Any) -> HookDelivery:
    return read(lambda: HookDelivery(**_only(HookDelivery, value)))


def _only(model: type[Frozen], value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a GitHub object that a model has under the same name, nulls left out."""
    special = {"account", "suspended", "owner"}
    names = model.model_fields.keys() - special
    return {name: value[name] for name in names if value.get(name) is not None}
