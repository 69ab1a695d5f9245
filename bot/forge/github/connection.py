"""The line to GitHub under PyGithub: one try, no silent redirect, no endless answer.

PyGithub's own connection reads whatever comes, waits two seconds and asks again forever on a 202, and follows a
301 without its query. Requester takes its connection classes from two attributes; a subclass replaces them for
itself alone (``injectConnectionClasses`` would also switch keep-alive off).
"""

from __future__ import annotations

import time
from collections.abc import ItemsView
from typing import Any

import requests
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester

from bot.errors import ForgeError, TransientError

#: Larger answers are refused, bytes after decompression. The largest wanted is a file of some MB in base64.
MAX_ANSWER = 32 << 20
#: An answer that is not complete after this many seconds is given up, however steadily it drips.
DEADLINE = 90.0


class CappedResponse:
    """A complete answer, in the shape that Requester reads.

    The text keeps undecodable bytes as surrogate escapes, so that none is lost.
    """

    def __init__(self, response: requests.Response) -> None:
        # PyGithub would follow a 301 by itself, dropping its query; to it, 308 is an answer like any other.
        self.status = 308 if response.status_code == 301 else response.status_code
        self.headers = response.headers
        self._body = _read(response)

    def getheaders(self) -> ItemsView[str, str]:
        return self.headers.items()

    def read(self) -> str:
        return self._body.decode("utf-8", "surrogateescape")


def _read(response: requests.Response) -> bytes:
    start, size, chunks = time.monotonic(), 0, []
    with response:
        for chunk in response.iter_content(64 << 10):
            size += len(chunk)
            chunks.append(chunk)
            if size > MAX_ANSWER:
                raise ForgeError(f"GitHub's answer is larger than {MAX_ANSWER >> 20} MB")
            if time.monotonic() - start > DEADLINE:
                raise TransientError(f"GitHub's answer took longer than {DEADLINE:.0f} s")
    return b"".join(chunks)


def _ask(connection: HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass) -> Any:
    response = connection.session.request(
        connection.verb,
        f"{connection.protocol}://{connection.host}:{connection.port}{connection.url}",
        headers=connection.headers,
        data=connection.input,
        timeout=connection.timeout,
        verify=connection.verify,
        allow_redirects=False,
        stream=True,
    )
    if response.status_code == 202 and connection.verb == "GET":
        response.close()
        raise TransientError("GitHub is still preparing the answer")
    return CappedResponse(response)


class _Http(HTTPRequestsConnectionClass):
    def getresponse(self) -> Any:
        return _ask(self)


class _Https(HTTPSRequestsConnectionClass):
    def getresponse(self) -> Any:
        return _ask(self)


class CappedRequester(Requester):
    """PyGithub's Requester on our connections."""

    _Requester__httpConnectionClass = _Http
    _Requester__httpsConnectionClass = _Https
