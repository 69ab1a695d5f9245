"""The errors that GitHub's answers stand for."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from bot.core.errors import ForgeError, NotFound, Suspended, TransientError, Unauthorized
from bot.core.http_client import retry_after

#: Seconds to wait if GitHub names no time: its documentation asks for a minute at least.
UNSTATED_WAIT = 60.0
#: Longest wait that a server can ask for, seconds.
LONGEST_WAIT = 3600.0
#: GitHub's words if the account suspended the App.
SUSPENDED = "installation has been suspended"

#: GitHub's words if a repository has no commit yet.
EMPTY = "Git Repository is empty."

Headers = Mapping[str, str]


def graphql_data(answer: Any) -> Any:
    """Return the ``data`` of a GraphQL answer, or raise the error for the first of its errors."""
    if not isinstance(answer, dict):
        raise TransientError("GraphQL: GitHub's answer is not an object")
    errors = answer.get("errors")
    if not errors:
        return answer.get("data")
    first = errors[0] if isinstance(errors, list) and isinstance(errors[0], dict) else {}
    error_type = str(first.get("type") or (first.get("extensions") or {}).get("code") or "")
    message = f"GraphQL: {str(first.get('message'))[:200]}"
    if error_type in ("NOT_FOUND", "undefinedField"):
        raise NotFound(message)
    if error_type == "RATE_LIMITED":
        raise TransientError(message, UNSTATED_WAIT)
    if error_type in ("FORBIDDEN", "INSUFFICIENT_SCOPES"):
        raise ForgeError(message, 403)
    raise TransientError(message)


def raise_for_status(status: int, headers: Headers, text: str, operation: str) -> None:
    """Raise the error for a status of 400 or more; ``operation`` names the request in the message."""
    if status < 400:
        return
    message = _message(text)
    line = f"{operation}: GitHub answered {status}{': ' if message else ''}{message}"
    if status == 403 and SUSPENDED in message:
        raise Suspended(line)
    if status == 429 or (status == 403 and _limited(headers, message)):
        raise TransientError(line, _wait_asked(headers) or UNSTATED_WAIT)
    if status == 401:
        # With a fresh token it means that the app's own credentials are wrong.
        raise Unauthorized(line)
    if status == 408 or status >= 500:
        raise TransientError(line, _wait_asked(headers))
    if status in (404, 410) or (status == 409 and message == EMPTY):
        raise NotFound(line, status)
    raise ForgeError(line, status)


def _limited(headers: Headers, message: str) -> bool:
    from github.Requester import Requester  # 20 MB that an idle process does without

    exhausted = headers.get("x-ratelimit-remaining") == "0"
    return exhausted or "retry-after" in headers or Requester.isRateLimitError(message)


def _wait_asked(headers: Headers) -> float | None:
    """Return the seconds that the answer asks to wait: ``retry-after`` first, then the reset of a spent quota."""
    if (after := retry_after(headers)) is not None:
        return min(after, LONGEST_WAIT)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
        return min(max(float(reset) - time.time(), 1.0), LONGEST_WAIT)
    return None


def _message(text: str) -> str:
    """Return GitHub's message on one line; empty for a page of HTML."""
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
