"""HTTP requests to GitHub's API: one transport per process, and a client for each identity.

An answer is stored with its ETag and asked for again under that condition: one that has not changed costs nothing
of the hourly quota.

PyGithub knows the messages of rate limits. Its requester is not used: it keeps a request in the connection until
the answer is read, so threads cannot share one, and one for each token is a connection pool for each token. It
also mints tokens for all repositories of an installation, never replaces a revoked one, reads answers of any size,
and has no conditional requests.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpx2

from bot import __version__
from bot.core.errors import LACKING, ForgeError, NotFound, TransientError
from bot.core.http_client import HttpClient, TooLarge, TooSlow, limit_chunks
from bot.github.answer_errors import Headers, graphql_data, raise_for_status
from bot.github.identity import Identity
from bot.github.payloads import parse_json

#: Seconds for a connection, and for each piece of an answer.
TIMEOUT = 15
#: Larger answers are refused, bytes after decompression. The largest useful one is a file of some MB in base64.
MAX_ANSWER = 32 << 20
#: Seconds after which an incomplete answer is given up.
DEADLINE = 90.0
PER_PAGE = 100
MAX_REDIRECTS = 3
#: Most pages of a list: 100,000 comments.
MAX_PAGES = 1000
#: Bytes of stored answers in one process, and of the largest answer that is stored.
CACHE_BYTES = 1 << 20
CACHED_ANSWER_BYTES = 1 << 18
#: What a stored answer takes besides its text: its key, its ETag and the objects around them, bytes.
CACHE_OVERHEAD = 1_000
#: Seconds after which a token that lacks a permission is replaced: the permission may have been granted since.
GRANTED_SECONDS = 10.0
#: Connections of one process, and those of them that stay open when they are idle.
CONNECTIONS, IDLE_CONNECTIONS = 100, 20

JSON = "application/vnd.github+json"

Query = Mapping[str, str | int]
Object = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """One request as metrics see it, without credentials."""

    installation: int | None
    method: str
    status: int
    seconds: float
    remaining: int | None


Observe = Callable[[Exchange], None]


def no_metrics(call: Exchange) -> None:
    """Ignore the exchange."""


@dataclass(frozen=True)
class Raw:
    """An answer before it is parsed; undecodable bytes are surrogate escapes in ``text``."""

    status: int
    headers: Headers
    text: str


class Answers:
    """The last answers with an ETag, by identity and request. Drops the least recently used ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, Raw] = OrderedDict()
        self._bytes = 0

    def find(self, key: Hashable) -> Raw | None:
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def store(self, key: Hashable, answer: Raw) -> None:
        """Store the answer if it can be asked for again under a condition and is not too large."""
        if "etag" not in answer.headers or _size(answer) > CACHED_ANSWER_BYTES:
            return
        # The other headers concern this exchange only.
        headers = {name: answer.headers[name] for name in ("etag", "link") if name in answer.headers}
        answer = replace(answer, headers=headers)
        with self._lock:
            replaced = self._answers.pop(key, None)
            self._answers[key] = answer
            self._bytes += _size(answer) - (_size(replaced) if replaced else 0)
            while self._bytes > CACHE_BYTES:
                self._bytes -= _size(self._answers.popitem(last=False)[1])


def _size(answer: Raw) -> int:
    # One character outside of Latin-1 doubles or quadruples a string.
    return sys.getsizeof(answer.text) + CACHE_OVERHEAD


class Transport:
    """Connections, stored answers and metrics: one per process, for all installations."""

    def __init__(self, observe: Observe = no_metrics) -> None:
        self.observe = observe
        self.answers = Answers()
        # No retries, of reads neither: jobs are retried, after the wait that GitHub asks for.
        self.http = HttpClient(
            TIMEOUT,
            headers={"User-Agent": f"bouncer/{__version__}"},
            limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=IDLE_CONNECTIONS),
        )

    def close(self) -> None:
        self.http.close()


class Client:
    """One identity on a shared transport. Every method raises TransientError, NotFound or ForgeError."""

    def __init__(self, identity: Identity, api_url: str, transport: Transport) -> None:
        self._identity = identity
        self._transport = transport
        self._api_url = api_url.rstrip("/")
        self._api = urlsplit(self._api_url)

    def value(self, path: str, query: Query | None = None, *, redirects: str = "/") -> Any:
        """GET any JSON value. A redirect is followed only to a path that starts with ``redirects``."""
        return self._json(_Request("GET", self._url(path), f"GET {path}", query, redirects=redirects))

    def get(self, path: str, query: Query | None = None) -> Object:
        """GET one JSON object."""
        value = self.value(path, query)
        if not isinstance(value, dict):
            raise TransientError(f"GET {path}: GitHub's answer is not an object")
        return value

    def send(self, method: str, path: str, body: Any = None, operation: str = "", accept: str = JSON) -> Any:
        """Write once, without retries. After a TransientError the write may have been applied.

        Errors name ``operation`` in place of a path that holds a secret.
        """
        operation = operation or f"{method} {path}"
        return self._json(_Request(method, self._url(path), operation, body=body, accept=accept))

    def text(self, path: str, accept: str) -> str:
        """GET another media type."""
        return self._request(_Request("GET", self._url(path), f"GET {path}", accept=accept)).text

    def pages(self, path: str, query: Query | None = None, key: str = "") -> Iterator[Object]:
        """Yield every item of a list, page after page; ``key`` if each page wraps its items in an object."""
        url = path
        query = {"per_page": PER_PAGE, **(query or {})}
        for _ in range(MAX_PAGES):
            answer = self._request(_Request("GET", self._url(url), f"GET {path}", query))
            page = parse_json(answer.text, f"GET {path}")
            items = page.get(key) if key and isinstance(page, dict) else page
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise TransientError(f"GET {path}: GitHub's answer is not a list of objects")
            yield from items
            links = httpx2.Response(200, headers={"link": answer.headers.get("link", "")}).links
            url, query = links.get("next", {}).get("url", ""), {}
            if not url:
                return
        raise ForgeError(f"GET {path}: more than {MAX_PAGES} pages")

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Any:
        """Return the ``data`` of a GraphQL answer. Raises NotFound for unknown objects, and without a token."""
        if not self._identity.token:
            raise NotFound("GitHub answers GraphQL only with a token")
        body = {"query": query, "variables": dict(variables)}
        # An Enterprise Server has its REST API at /api/v3 and this one at /api/graphql.
        url = self._api._replace(path=self._api.path.removesuffix("/v3") + "/graphql").geturl()
        secret = self._identity.token
        try:
            return graphql_data(self.send("POST", url, body))
        except ForgeError as error:
            if not (LACKING in str(error) and self._identity.refuse(secret, GRANTED_SECONDS)):
                raise
        return graphql_data(self.send("POST", url, body))

    def _json(self, request: _Request) -> Any:
        return parse_json(self._request(request).text, request.operation)

    def _request(self, request: _Request) -> Raw:
        """Send a request. A token that is refused or lacks a permission is replaced once.

        Redirects are followed on our own host only.
        """
        answer = self._authorized(request)
        for _ in range(MAX_REDIRECTS):
            if not 300 <= answer.status < 400:
                break
            request = replace(request, url=self._redirect(request, answer), query=None)
            answer = self._authorized(request)
        if 300 <= answer.status < 400:
            raise ForgeError(f"{request.operation}: GitHub redirects in a circle")
        raise_for_status(answer.status, answer.headers, answer.text, request.operation)
        return answer

    def location(self, path: str) -> str:
        """Return the target of a redirect without following it: an archive, which is on another host."""
        answer = self._authorized(_Request("GET", self._url(path), f"GET {path}"))
        raise_for_status(answer.status, answer.headers, answer.text, f"GET {path}")
        if "location" not in answer.headers:
            raise TransientError(f"GET {path}: GitHub names no address")
        return urljoin(self._api_url, answer.headers["location"])

    def _url(self, path: str) -> str:
        """Return the address of a path below the API, or an address that GitHub named, moved to our own host."""
        if path.startswith("/"):
            return self._api_url + path
        return urlsplit(path)._replace(scheme=self._api.scheme, netloc=self._api.netloc).geturl()

    def _redirect(self, request: _Request, answer: Raw) -> str:
        target = urlsplit(urljoin(self._api_url, answer.headers.get("location", "")))
        if (target.scheme, target.netloc) != (self._api.scheme, self._api.netloc):
            raise ForgeError(
                f"{request.operation}: GitHub redirects to another host; credentials are not sent there"
            )
        if not (request.redirects and target.path.startswith(self._api.path + request.redirects)):
            raise ForgeError(f"{request.operation}: GitHub redirects to another repository; it is not read there")
        if request.method != "GET" and answer.status not in (301, 307, 308):
            raise ForgeError(f"{request.operation}: GitHub redirects a write", answer.status)
        return target.geturl()

    def _authorized(self, request: _Request) -> Raw:
        secret = self._identity.token
        answer = self._once(request, secret)
        has_new_secret = False
        if answer.status == 401:
            has_new_secret = self._identity.refuse(secret, date=answer.headers.get("date", ""))
        elif answer.status == 403 and LACKING in answer.text:
            has_new_secret = self._identity.refuse(secret, GRANTED_SECONDS)
        if has_new_secret:
            answer = self._once(request, self._identity.token)
        if answer.status < 400:
            return answer
        # Some gateways repeat the request in their error, which goes into logs.
        for credential in filter(None, (secret, self._identity.token)):
            answer = replace(answer, text=answer.text.replace(credential, "[token]"))
        return answer

    def _once(self, request: _Request, secret: str) -> Raw:
        """Send one request; return the stored answer if GitHub says that it has not changed."""
        cached = self._transport.answers.find(request.key(self._identity)) if request.method == "GET" else None
        start, status, headers = time.monotonic(), 0, dict[str, str]()
        try:
            with self._transport.http.stream(
                request.method,
                request.url,
                params=request.query or None,
                headers=request.headers(secret, cached),
                content=None if request.body is None else json.dumps(request.body),
            ) as response:
                status, headers = response.status_code, dict(response.headers)
                body = b"".join(limit_chunks(response.iter_bytes(), MAX_ANSWER, DEADLINE))
        except TooLarge:
            raise ForgeError(f"GitHub's answer is larger than {MAX_ANSWER >> 20} MB") from None
        except TooSlow:
            raise TransientError(f"GitHub's answer took longer than {DEADLINE:.0f} s") from None
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            # The type alone: the text may hold an address with a secret in it.
            raise TransientError(f"{request.operation}: no answer from GitHub ({type(error).__name__})") from None
        finally:
            remaining = headers.get("x-ratelimit-remaining", "")
            quota, seconds = int(remaining) if remaining.isdigit() else None, time.monotonic() - start
            self._transport.observe(Exchange(self._identity.installation, request.method, status, seconds, quota))
        if status == 304 and cached is not None:
            return cached
        if status == 202 and request.method == "GET":
            raise TransientError("GitHub is still preparing the answer")
        answer = Raw(status, headers, body.decode("utf-8", "surrogateescape"))
        if request.method == "GET" and status == 200:
            self._transport.answers.store(request.key(self._identity), answer)
        return answer


@dataclass(frozen=True)
class _Request:
    method: str
    url: str
    operation: str
    query: Query | None = None
    body: Any = None
    accept: str = JSON
    redirects: str = "/"

    def key(self, identity: Identity) -> Hashable:
        return identity.cache_key, self.url, tuple(sorted((self.query or {}).items())), self.accept

    def headers(self, secret: str, cached: Raw | None) -> dict[str, str]:
        return {
            "Accept": self.accept,
            **({"Authorization": f"Bearer {secret}"} if secret else {}),
            **({"Content-Type": "application/json"} if self.body is not None else {}),
            **({"If-None-Match": cached.headers["etag"]} if cached else {}),
        }


def segment(text: str) -> str:
    """Quote one segment of a path. Raises NotFound for an empty one or dots."""
    if text in ("", ".", ".."):
        raise NotFound(f"{text!r} names nothing")
    return quote(text, safe="")


def below(text: str) -> str:
    """Quote a path. Raises NotFound if it would lead upwards."""
    if any(part in ("", ".", "..") for part in text.split("/")):
        raise NotFound(f"{text[:200]!r} names nothing")
    return quote(text)
