"""The HTTP client that the SDKs are given: no redirects, a whole answer in bounded time and space."""

from __future__ import annotations

import time
from typing import Any

import httpx2

from bot.core.bounded import TooLarge, TooSlow, bounded
from bot.core.redaction import REDACTED

#: Bytes of an answer, decompressed: a hundred times what 4,000 tokens need.
MAX_BYTES = 4_000_000
#: Seconds for one request: a reasoning model at medium effort may think for minutes.
TIMEOUT = 300.0


class BoundedClient(httpx2.Client):
    """Reads every answer completely, before anybody parses it.

    Redirects are not followed: httpx drops ``Authorization`` on the way to another host, but not ``x-api-key``.
    """

    def __init__(self, timeout: float = TIMEOUT) -> None:
        limits = httpx2.Timeout(timeout, connect=min(timeout, 10.0))
        super().__init__(timeout=limits, follow_redirects=False, headers={"Accept-Encoding": "gzip, identity"})
        self._seconds = timeout

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As ``httpx2.Client.send``; raises ReadTimeout or ReadError for an answer that does not end."""
        deadline = time.monotonic() + self._seconds
        response = super().send(request, **{**options, "stream": True, "follow_redirects": False})
        try:
            content = self._content(response, deadline)
        finally:
            response.close()
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in _OF_THE_WIRE]
        content = _without_credentials(content, request.headers)
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)

    def _content(self, response: httpx2.Response, deadline: float) -> bytes:
        try:
            return b"".join(bounded(response.iter_bytes(), MAX_BYTES, deadline - time.monotonic()))
        except TooLarge:
            raise httpx2.ReadError(f"the answer is longer than {MAX_BYTES} bytes") from None
        except TooSlow:
            raise httpx2.ReadTimeout(f"the answer took longer than {self._seconds:.0f} s") from None


def _without_credentials(content: bytes, sent: httpx2.Headers) -> bytes:
    """An answer that repeats the key it was asked with, as gateways' complaints do, is nobody's to keep."""
    values = (sent.get("authorization", "").removeprefix("Bearer "), sent.get("x-api-key", ""))
    for key in values:
        if len(key) >= _SHORTEST_KEY:
            content = content.replace(key.encode(), REDACTED.encode())
    return content


#: A shorter one is a placeholder such as ``none``, and part of ordinary words.
_SHORTEST_KEY = 8
# They describe the bytes as they came, not the content as it was read.
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})
