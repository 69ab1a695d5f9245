"""The GitHub App's registration: its manifest (``app.yml``), its credentials, and their file."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from bot.core.errors import ForgeError, NotFound, OperatorError, SettingsError
from bot.core.frozen import Frozen
from bot.github.payloads import build, read

Level = Literal["read", "write"]

#: In a checkout the file is beside the package, in an installation inside it.
_PLACES = tuple(folder / "app.yml" for folder in Path(__file__).parents[1:3])

#: Purpose of each permission, for the set-up page.
PURPOSES: Mapping[str, str] = {
    "checks": "the check that says whether a patch solves its issue",
    "contents": "files: the configuration, and the code around a change",
    "issues": "comments, labels and reactions on issues",
    "members": "seeing who belongs to the organization: its members may open the dashboard",
    "merge_queues": "receiving merge queue events, so that a required check does not hold them up",
    "metadata": "the repository's name and who may do what; every app has it",
    "pull_requests": "reviews with inline comments",
}


class Manifest(Frozen):
    """``app.yml``."""

    name: str = Field(min_length=1, max_length=34)
    description: str = ""
    public: bool = False
    default_events: tuple[str, ...]
    default_permissions: Mapping[str, Level]

    def extended(self, *, test_pulls: bool, members: bool) -> Manifest:
        """Add the permissions for test pull requests, and for an organisation's members to open the dashboard."""
        permissions = dict(self.default_permissions)
        if test_pulls:
            permissions["contents"] = "write"  # a branch with one new file
        if members:
            permissions["members"] = "read"
        return self.model_copy(update={"default_permissions": permissions})

    def gaps(self, permissions: Mapping[str, str], events: Iterable[str]) -> tuple[str, ...]:
        """List missing permissions and events, one readable item each."""
        lacking = [
            f"permission {name}: {level} (granted: {permissions.get(name, 'none')})"
            for name, level in self.default_permissions.items()
            if permissions.get(name) not in ("write", "admin", level)
        ]
        return (*lacking, *(f"event {event}" for event in self.default_events if event not in set(events)))

    def posted(self, public_url: str, name: str = "") -> dict[str, Any]:
        """Return the JSON object of GitHub's manifest flow, for a server at ``public_url``."""
        base = public_url.rstrip("/")
        return {
            "name": name or self.name,
            "url": base,
            "description": self.description,
            "public": self.public,
            "hook_attributes": {"url": f"{base}/webhook", "active": True},
            "redirect_url": f"{base}/setup/callback",
            "setup_url": f"{base}/setup/installed",
            "callback_urls": [f"{base}/login/github/callback"],
            "default_events": list(self.default_events),
            "default_permissions": dict(self.default_permissions),
        }


@cache
def manifest() -> Manifest:
    """Read the manifest of this version. Raises OperatorError if it is missing or wrong."""
    place = next((place for place in _PLACES if place.is_file()), None)
    if place is None:
        raise OperatorError(f"app.yml is missing from the installation: looked at {_PLACES[0]}")
    try:
        return Manifest(**yaml.safe_load(place.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, TypeError, ValidationError) as error:
        raise OperatorError(f"{place}: cannot be used: {str(error).splitlines()[0]}") from None


#: The file in the data folder; only its owner can read it.
FILE = "credentials.json"


class Credentials(Frozen):
    """Credentials of the GitHub App; the secrets never show in ``repr``."""

    app_id: int
    slug: str
    html_url: str = Field("", description="the app's page; ``/installations/new`` below it installs it")
    private_key: str = Field(repr=False)
    webhook_secret: str = Field(repr=False)
    api_url: str
    web_url: str
    client_id: str = Field("", description="for people who log in to the dashboard with GitHub")
    client_secret: str = Field("", repr=False)
    mode: Literal["live", "shadow"] = Field("live", description="chosen at set-up; BOUNCER_MODE overrides it")

    def variables(self) -> dict[str, str]:
        """Return the environment variables that these credentials stand for."""
        return {
            "GITHUB_APP_ID": str(self.app_id),
            "GITHUB_WEBHOOK_SECRET": self.webhook_secret,
            "GITHUB_API_URL": self.api_url,
            "GITHUB_WEB_URL": self.web_url,
            "GITHUB_APP_PRIVATE_KEY": self.private_key,
            "GITHUB_APP_CLIENT_ID": self.client_id,
            "GITHUB_APP_CLIENT_SECRET": self.client_secret,
            "BOUNCER_MODE": self.mode,
        }

    def environment(self) -> str:
        """Return the credentials as lines of a ``.env`` file."""
        key = self.private_key.replace("\r\n", "\n").replace("\n", "\\n")
        values = {**self.variables(), "GITHUB_APP_PRIVATE_KEY": f'"{key}"'}
        return "\n".join(f"{name}={value}" for name, value in values.items())


def store(folder: Path, credentials: Credentials) -> Path:
    """Write the file, complete or not at all, with mode 0600. Raises SettingsError if that cannot be done."""
    place = folder / FILE
    draft = folder / f".{FILE}.{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(credentials.model_dump_json(indent=2))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise SettingsError(f"BOUNCER_DATA_DIR: cannot write {place}: {error.strerror}") from None
    return place


def stored(folder: Path) -> Credentials | None:
    """Read the stored credentials; None before set-up. Raises SettingsError if they cannot be read."""
    place = folder / FILE
    try:
        return Credentials.model_validate_json(place.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"BOUNCER_DATA_DIR: cannot read {place}: {error.strerror}") from None
    except ValidationError:
        raise SettingsError(f"BOUNCER_DATA_DIR: {place} is damaged; delete it and set up again") from None


_CODE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def convert(code: str, api_url: str, web_url: str) -> Credentials:
    """Exchange a code for the new app's credentials; works once, within an hour.

    Raises NotFound if the code is unknown, used or expired; TransientError, ForgeError.
    """
    if not _CODE.fullmatch(code):
        raise NotFound("that is no code of GitHub's")
    from bot.github.app import checked_url
    from bot.github.http import Client, Transport
    from bot.github.identity import Identity

    address = checked_url(api_url)
    with closing(Transport()) as transport:
        try:
            # The address holds the code, so errors name the operation instead.
            value = Client(Identity(), address, transport).send(
                "POST", f"/app-manifests/{code}/conversions", operation="the conversion of the manifest"
            )
        except ForgeError as error:
            if error.status == 422:
                raise NotFound("GitHub does not accept the code") from None
            raise
    urls = {"api_url": api_url, "web_url": web_url}
    return read(lambda app: build(Credentials, app, app_id=app["id"], private_key=app["pem"], **urls), value)
