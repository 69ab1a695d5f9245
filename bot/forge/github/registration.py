"""The second half of GitHub's manifest flow: a code from the browser becomes an app with its key and secret."""

from __future__ import annotations

import re
from typing import Any

from github.Requester import Requester
from requests import RequestException

from bot import __version__
from bot.errors import ForgeError, NotFound, TransientError
from bot.forge.github import failures
from bot.forge.github.app import checked_url
from bot.forge.github.client import TIMEOUT
from bot.forge.github.connection import CappedRequester
from bot.forge.github.credentials import Credentials
from bot.forge.github.reading import read

_CODE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def convert(code: str, api_url: str, web_url: str) -> Credentials:
    """The app that somebody registered a moment ago; works once, within an hour, without credentials.

    Raises NotFound where the code is unknown, used or expired; TransientError, ForgeError.
    """
    if not _CODE.fullmatch(code):
        raise NotFound("that is no code of GitHub's")
    requester = _anonymous(checked_url(api_url))
    try:
        status, headers, text = requester.requestJson("POST", f"/app-manifests/{code}/conversions")
    except RequestException as error:
        # The type alone: the address holds the code.
        raise TransientError(f"no answer from GitHub ({type(error).__name__})") from None
    finally:
        requester.close()
    if 300 <= status < 400:
        raise ForgeError("GitHub redirects; is the address right?", status)
    if status == 422:
        raise NotFound("GitHub does not accept the code")
    failures.check(status, headers, text, "the conversion of the manifest")
    value = failures.parsed(text, "the conversion of the manifest")
    return read(lambda: _credentials(value, api_url, web_url))


def _anonymous(api_url: str) -> Requester:
    return CappedRequester(
        auth=None,
        base_url=api_url,
        timeout=TIMEOUT,
        user_agent=f"bouncer/{__version__}",
        per_page=100,
        verify=True,
        retry=0,
        pool_size=None,
        seconds_between_requests=0,
        seconds_between_writes=0,
    )


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
