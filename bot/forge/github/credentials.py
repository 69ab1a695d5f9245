"""What set-up in the browser obtained: asked of GitHub with a code, kept in a file only its owner can read."""

from __future__ import annotations

import json
import os
import re
import secrets
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from bot.core.frozen import Frozen
from bot.errors import ForgeError, NotFound, SettingsError
from bot.forge.github.app import checked_url
from bot.forge.github.http import Client, Holder
from bot.forge.github.payloads import read

FILE = "credentials.json"


class Credentials(Frozen):
    """The GitHub App's own; the secrets never show in ``repr``."""

    app_id: int
    slug: str
    html_url: str = Field("", description="the app's page; ``/installations/new`` below it installs it")
    private_key: str = Field(repr=False)
    webhook_secret: str = Field(repr=False)
    api_url: str
    web_url: str
    client_id: str = Field("", description="for people who log in to the dashboard with GitHub")
    client_secret: str = Field("", repr=False)

    def environment(self) -> str:
        """The same as lines of a ``.env`` file."""
        key = self.private_key.replace("\r\n", "\n").replace("\n", "\\n")
        values = {
            "GITHUB_APP_ID": str(self.app_id),
            "GITHUB_WEBHOOK_SECRET": self.webhook_secret,
            "GITHUB_API_URL": self.api_url,
            "GITHUB_WEB_URL": self.web_url,
            "GITHUB_APP_PRIVATE_KEY": f'"{key}"',
            "GITHUB_APP_CLIENT_ID": self.client_id,
            "GITHUB_APP_CLIENT_SECRET": self.client_secret,
        }
        return "\n".join(f"{name}={value}" for name, value in values.items())


def store(folder: Path, credentials: Credentials) -> Path:
    """Write the file, complete or not at all, with mode 0600. Raises SettingsError where that cannot be done."""
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


def load(folder: Path) -> Credentials | None:
    """What ``store`` wrote; None where set-up was never done. Raises SettingsError where it cannot be read."""
    place = folder / FILE
    try:
        return Credentials(**json.loads(place.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"BOUNCER_DATA_DIR: cannot read {place}: {error.strerror}") from None
    except (ValueError, TypeError, ValidationError):
        raise SettingsError(f"BOUNCER_DATA_DIR: {place} is damaged; delete it and set up again") from None


_CODE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def convert(code: str, api_url: str, web_url: str) -> Credentials:
    """The app that somebody registered a moment ago; works once, within an hour, without credentials.

    Raises NotFound where the code is unknown, used or expired; TransientError, ForgeError.
    """
    if not _CODE.fullmatch(code):
        raise NotFound("that is no code of GitHub's")
    client = Client(Holder(), checked_url(api_url))
    try:
        # Named, because the address holds the code.
        value = client.send("POST", f"/app-manifests/{code}/conversions", what="the conversion of the manifest")
    except ForgeError as error:
        if error.status == 422:
            raise NotFound("GitHub does not accept the code") from None
        raise
    finally:
        client.close()
    return read(partial(_credentials, api_url, web_url), value)


def _credentials(api_url: str, web_url: str, value: Any) -> Credentials:
    return Credentials(
        app_id=value["id"],
        slug=value["slug"],
        html_url=value.get("html_url") or "",
        private_key=value["pem"],
        webhook_secret=value["webhook_secret"],
        api_url=api_url,
        web_url=web_url,
        client_id=value.get("client_id") or "",
        client_secret=value.get("client_secret") or "",
    )
