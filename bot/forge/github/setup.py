"""The second half of GitHub's manifest flow: a code from the browser becomes an app with its key and secret."""

from __future__ import annotations

import re
from typing import Any

from bot.errors import ForgeError, NotFound
from bot.forge.github.app import checked_url
from bot.forge.github.credentials import Credentials
from bot.forge.github.http import Client, Nobody, read

_CODE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def convert(code: str, api_url: str, web_url: str) -> Credentials:
    """The app that somebody registered a moment ago; works once, within an hour, without credentials.

    Raises NotFound where the code is unknown, used or expired; TransientError, ForgeError.
    """
    if not _CODE.fullmatch(code):
        raise NotFound("that is no code of GitHub's")
    client = Client(Nobody(), checked_url(api_url))
    try:
        # Named, because the address holds the code.
        value = client.send("POST", f"/app-manifests/{code}/conversions", what="the conversion of the manifest")
    except ForgeError as error:
        if error.status == 422:
            raise NotFound("GitHub does not accept the code") from None
        raise
    finally:
        client.close()
    return read(lambda: _credentials(value, api_url, web_url))


def _credentials(value: Any, api_url: str, web_url: str) -> Credentials:
    return Credentials(
        app_id=value["id"],
        slug=value["slug"],
        html_url=value.get("html_url") or "",
        private_key=value["pem"],
        webhook_secret=value["webhook_secret"],
        api_url=api_url,
        web_url=web_url,
    )
