"""Access to GitHub: as the App with its installations and deliveries, or with one token."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import Field

from bot.core.errors import ForgeError, NotInstalled, SettingsError
from bot.core.frozen import Frozen
from bot.core.subjects import Actor
from bot.github.archive import Archives
from bot.github.http import Client, Observe, Query, Transport, no_metrics
from bot.github.identity import AppIdentity, Identity, InstallationIdentity, load_key
from bot.github.payloads import actor, build, read
from bot.github.reader import GitHubForge
from bot.github.writer import GitHubWriter

PUBLIC_API = "https://api.github.com"
#: Repositories whose tokens are remembered, a few KB for each; the least recently used one is dropped.
REPOSITORIES = 250

#: Permissions of each half of the forge. Their tokens are separate, so that the reader cannot write.
READ: Mapping[str, str] = {"contents": "read", "issues": "read", "pull_requests": "read", "checks": "read"}
WRITE: Mapping[str, str] = {"contents": "read", "issues": "write", "pull_requests": "write", "checks": "write"}
#: Only for test pull requests.
CONTENTS: Mapping[str, str] = {"contents": "write", "pull_requests": "write"}

_VIEWER = "query { viewer { login databaseId } }"

_SCHEMA = """
query {
  PullRequest: __type(name: "PullRequest") { fields { name } }
  Issue: __type(name: "Issue") { fields { name } }
  Mutation: __type(name: "Mutation") { fields { name } }
}
"""

#: Our account without a token: it cannot write, so no comment is ours.
STRANGER = Actor(id=-1, login="bouncer[bot]", is_bot=True)


class AppInfo(Frozen):
    """The app as GitHub knows it."""

    id: int
    slug: str
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


class HookDelivery(Frozen):
    """One attempt to deliver a webhook."""

    id: int
    guid: str = Field(description="X-GitHub-Delivery; the same in every redelivery")
    event: str
    delivered_at: datetime
    status_code: int = 0
    attempts: int = Field(1, ge=1, description="how often it was tried, this time included")

    @property
    def failed(self) -> bool:
        return not 200 <= self.status_code < 300

    @property
    def ignored(self) -> bool:
        """True if it was received and is of no interest: such a delivery is never stored."""
        return self.status_code == 204


class GitHubApp:
    """The App on GitHub, built once per process from the operator's settings; ``close`` it, or use ``with``.

    Raises SettingsError for an id, key or address that cannot be right. Nothing is sent before it is needed.
    """

    def __init__(
        self,
        app_id: int | str,
        private_key: str,
        api_url: str = PUBLIC_API,
        *,
        observe: Observe = no_metrics,
        archives: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``archives``: a folder for files of commits, shared by all processes; None: one for this process."""
        if not str(app_id).strip():
            raise SettingsError("GITHUB_APP_ID: the app's id is empty")
        self._api_url = checked_url(api_url)
        self._clock = clock
        identity = AppIdentity(str(app_id).strip(), load_key(private_key), clock)
        self._transport = Transport(observe)
        self._archives = Archives(archives)
        self._client = Client(identity, self._api_url, self._transport)
        self._lock = threading.Lock()
        self._forge = lru_cache(REPOSITORIES)(self._make)
        self._bot: Actor | None = None

    def __enter__(self) -> GitHubApp:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._archives.close()
        self._transport.close()

    def app(self) -> AppInfo:
        """Read the app's own description, with the permissions and events it asks for."""
        return read(partial(build, AppInfo), self._client.get("/app"))

    def installations(self) -> tuple[Installation, ...]:
        return tuple(read(_installation, value) for value in self._client.pages("/app/installations"))

    def installation_for(self, owner: str, name: str) -> Installation:
        """Find the installation of a repository. Raises NotFound if the app is not installed there."""
        return read(_installation, self._client.get(f"/repos/{quote(owner)}/{quote(name)}/installation"))

    def graphql_fields(self, installation: int) -> frozenset[str]:
        """Return ``TYPE.field`` for the fields of pull requests, issues and mutations of this server's GraphQL.

        Raises NotFound if it has no GraphQL.
        """
        identity = InstallationIdentity(installation, (installation,), lambda: self._mint(installation, "", READ))
        data = Client(identity, self._api_url, self._transport).graphql(_SCHEMA, {})
        return read(_fields, data)

    def webhook_url(self) -> str:
        """Return the address that GitHub delivers to; empty if none is set."""
        return str(self._client.get("/app/hook/config").get("url") or "")

    def failed_deliveries(self, since: datetime) -> tuple[HookDelivery, ...]:
        """Return the last attempt of every delivery after ``since`` that never succeeded, oldest first.

        GitHub keeps attempts for about three days.
        """
        failures = [delivery for delivery in self._deliveries(since, {"status": "failure"}) if delivery.failed]
        if not failures:
            return ()
        # The long list is read only now: another attempt may have succeeded since the first failure.
        all_attempts = list(self._deliveries(min(failure.delivered_at for failure in failures), {}))
        succeeded = {attempt.guid for attempt in all_attempts if not attempt.failed}
        attempts = Counter(failure.guid for failure in failures)
        latest = {failure.guid: failure for failure in reversed(failures) if failure.guid not in succeeded}
        return tuple(delivery.model_copy(update={"attempts": attempts[guid]}) for guid, delivery in latest.items())

    def deliveries(self, since: datetime) -> tuple[HookDelivery, ...]:
        """Return the last attempt of every delivery after ``since``, oldest first."""
        latest: dict[str, HookDelivery] = {}
        for attempt in self._deliveries(since, {}):
            latest.setdefault(attempt.guid, attempt)
        return tuple(reversed(latest.values()))

    def _deliveries(self, since: datetime, query: Query) -> Iterator[HookDelivery]:
        """Yield attempts after ``since``, newest first. An older server ignores ``status`` and lists all."""
        for attempt in self._client.pages("/app/hook/deliveries", query):
            delivery = read(partial(build, HookDelivery), attempt)
            if delivery.delivered_at < since:
                return
            yield delivery

    def redeliver(self, delivery_id: int) -> None:
        """Ask GitHub to try a delivery again; it keeps its guid."""
        self._client.send("POST", f"/app/hook/deliveries/{delivery_id}/attempts")

    def forge(self, installation: int, repository: str) -> tuple[GitHubForge, GitHubWriter]:
        """Return reader and writer for ``owner/name``; the reader's token cannot write."""
        with self._lock:  # two threads share one pair, and so one token
            return self._forge(installation, repository)

    def _make(self, installation: int, repository: str) -> tuple[GitHubForge, GitHubWriter]:
        def client(permissions: Mapping[str, str]) -> Client:
            identity = InstallationIdentity(
                installation,
                (installation, repository, *sorted(permissions.items())),
                lambda: self._mint(installation, repository, permissions),
                self._clock,
            )
            return Client(identity, self._api_url, self._transport)

        return (
            GitHubForge(client(READ), repository, self._identity, self._archives),
            GitHubWriter(client(WRITE), client(CONTENTS), repository),
        )

    def _mint(self, installation: int, repository: str, permissions: Mapping[str, str]) -> tuple[str, datetime]:
        try:
            value = self._token(installation, repository, permissions)
        except ForgeError as error:
            if error.status not in (404, 422):
                raise
            raise NotInstalled(str(error), error.status) from None
        return read(lambda token: (str(token["token"]), datetime.fromisoformat(token["expires_at"])), value)

    def _token(self, installation: int, repository: str, permissions: Mapping[str, str]) -> Any:
        path = f"/app/installations/{installation}/access_tokens"
        request: dict[str, Any] = {"permissions": dict(permissions)}
        if repository:
            request["repositories"] = [repository.partition("/")[2]]
        try:
            return self._client.send("POST", path, request)
        except ForgeError as error:
            if error.status != 422:
                raise
            # Some permissions were not granted. A token for the rest does most of the work; ``doctor`` names them.
            request["permissions"] = self._granted_permissions(installation, permissions)
            return self._client.send("POST", path, request)

    def _granted_permissions(self, installation: int, permissions: Mapping[str, str]) -> dict[str, str]:
        granted = read(_installation, self._client.get(f"/app/installations/{installation}")).permissions
        return {
            name: "read" if granted[name] == "read" else level
            for name, level in permissions.items()
            if name in granted
        }

    def _identity(self, ask: Callable[[str], Any]) -> Actor:
        """Return our bot account, read once per process with an installation's own token."""
        if self._bot is None:
            login = f"{self.app().slug}[bot]"
            self._bot = actor(ask(f"/users/{quote(login)}"))
        return self._bot


@contextmanager
def forge_as(
    token: str, repository: str, api_url: str, observe: Observe = no_metrics
) -> Iterator[tuple[GitHubForge, GitHubWriter]]:
    """Open ``owner/name`` with a token instead of an App; an empty token reads anonymously."""
    with closing(Transport(observe)) as transport, closing(Archives()) as archives:
        client = Client(Identity(token), api_url, transport)

        @cache
        def viewer(_: object) -> Actor:
            # This query works for tokens of people, installations and workflows alike.
            try:
                return read(_viewer, client.graphql(_VIEWER, {})) if token else STRANGER
            except ForgeError:
                # Without GraphQL, commands that only read work as without a token.
                return STRANGER

        yield GitHubForge(client, repository, viewer, archives), GitHubWriter(client, client, repository)


def _fields(types: Any) -> frozenset[str]:
    return frozenset(f"{name}.{field['name']}" for name, type in types.items() if type for field in type["fields"])


def _viewer(value: Any) -> Actor:
    login = str(value["viewer"]["login"])
    return Actor(id=value["viewer"]["databaseId"], login=login, is_bot=login.endswith("[bot]"))


def checked_url(url: str) -> str:
    """Return the API's address without a trailing slash. Raises SettingsError if it is no web address."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise SettingsError(
            f"GITHUB_API_URL: {url.strip()[:80]!r} is not an address like https://github.example.com/api/v3"
        )
    return url.strip().rstrip("/")


def _installation(value: Any) -> Installation:
    account = actor(value.get("account")).login
    return build(Installation, value, account=account, suspended=value.get("suspended_at") is not None)
