"""The base of every HTTP client in this process: one TLS context, no cookies, no redirects, capped answers."""

from __future__ import annotations

import math
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context that all clients share: one costs 0.9 MB and 35 ms of CPU time."""
    return httpx2.create_ssl_context()


class HttpClient(httpx2.Client):
    """A client for several accounts: cookies that an answer sets are never sent.

    Redirects are not followed: httpx drops ``Authorization`` on the way to another host, but not ``x-api-key``.
    """

    def __init__(self, timeout: float | httpx2.Timeout, **options: Any) -> None:
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        super().__init__(
            verify=tls_context(), timeout=timeout, cookies=no_cookies, follow_redirects=False, **options
        )


class TooLarge(Exception):
    """The answer is longer than allowed."""


class TooSlow(Exception):
    """The answer was not complete in time."""


def limit_chunks(chunks: Iterable[bytes], max_bytes: int, seconds: float) -> Iterator[bytes]:
    """Yield the chunks of an answer, after decompression. Raises TooLarge or TooSlow."""
    deadline, size = time.monotonic() + seconds, 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise TooLarge(f"more than {max_bytes} bytes")
        if time.monotonic() > deadline:
            raise TooSlow(f"longer than {seconds:.0f} s")
        yield chunk


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``retry-after`` asks for, as a number or as a date; None if it cannot be read."""
    if (milliseconds := _seconds(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _seconds(value)) is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(moment - time.time(), 0.0)


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
