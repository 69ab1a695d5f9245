"""What an answer of GitHub's means to us: fine, worth another try, or refused for good."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from github.Requester import Requester

from bot.errors import ForgeError, NotFound, TransientError
from bot.payloads import readable

#: Where GitHub names no time, it asks for a minute at least, seconds.
UNSTATED_WAIT = 60.0
#: No wait that a server names is followed for longer, seconds.
LONGEST_WAIT = 3600.0

Headers = Mapping[str, str]


def check(status: int, headers: Headers, text: str, what: str) -> None:
    """Raise what a status of 400 or more stands for; ``what`` names the request in the message."""
    if status < 400:
        return
    message = _message(text)
    line = f"{what}: GitHub answered {status}{': ' if message else ''}{message}"
    if status == 429 or (status == 403 and _limited(headers, message)):
        raise TransientError(line, wait_asked(headers) or UNSTATED_WAIT)
    if status in (401, 408) or status >= 500:
        # A 401 outlives a fresh token only where the app's own credentials are wrong: the operator mends them
        # and the job is tried again; nothing is decided meanwhile.
        raise TransientError(line, wait_asked(headers))
    if status in (404, 410):
        raise NotFound(line, status)
    raise ForgeError(line, status)


def _limited(headers: Headers, message: str) -> bool:
    exhausted = headers.get("x-ratelimit-remaining") == "0"
    return exhausted or "retry-after" in headers or Requester.isRateLimitError(message)


def wait_asked(headers: Headers) -> float | None:
    """Seconds that the answer asks to wait: ``retry-after`` first, then the reset of a spent quota."""
    after = _number(headers.get("retry-after"))
    if after is not None:
        return min(max(after, 0.0), LONGEST_WAIT)
    reset = _number(headers.get("x-ratelimit-reset"))
    if reset is not None and headers.get("x-ratelimit-remaining") == "0":
        return min(max(reset - time.time(), 1.0), LONGEST_WAIT)
    return None


def _number(text: str | None) -> float | None:
    """Seconds, or a moment in seconds; None where it is no plain number, such as a date."""
    return float(text) if text and text.isascii() and text.isdigit() else None


def _message(text: str) -> str:
    """GitHub's own words on one line; nothing of a page of HTML."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict):
        return ""
    errors = value.get("errors")
    parts = [str(value.get("message") or ""), *map(_detail, errors if isinstance(errors, list) else ())]
    return " ".join("; ".join(part for part in parts if part).split())[:300]


def _detail(error: Any) -> str:
    if isinstance(error, dict):
        return str(error.get("message") or f"{error.get('field', '')} {error.get('code', '')}".strip())
    return str(error)


def parsed(text: str, what: str) -> Any:
    """The JSON of an answer; None where it is empty. Raises TransientError where it is not JSON."""
    if not text:
        return None
    try:
        return readable(text)
    except (ValueError, RecursionError):
        raise TransientError(f"{what}: GitHub's answer is not JSON") from None
