"""Requests to GitHub's API as one identity: authentication, faults, redirects, pages and GraphQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import requests
from github.Auth import Auth
from requests.utils import parse_header_links

from bot import __version__
from bot.errors import ForgeError, NotFound, TransientError
from bot.forge.github import failures
from bot.forge.github.connection import CappedRequester

#: Seconds for a connection, and for each piece of an answer.
TIMEOUT = 15
PER_PAGE = 100
MAX_REDIRECTS = 3
#: A list longer than this many pages is not read to its end by any sane use: 100,000 comments.
MAX_PAGES = 1000

Query = Mapping[str, str | int]
Object = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One request as it went: for counting, never with credentials."""

    installation: int | None
    method: str
    status: int
    seconds: float
    remaining: int | None
    limit: int | None


Observe = Callable[[Call], None]


def unobserved(call: Call) -> None:
    """Nobody counts."""


class Identity(Auth):
    """A PyGithub authentication that can be told that its secret was refused."""

    installation: int | None = None

    def refuse(self, secret: str) -> bool:
        """The API refused ``secret``; True where another one will be used from now on."""
        return False


@dataclass(frozen=True)
class Raw:
    """An answer before it is read; undecodable bytes are surrogate escapes in ``text``."""

    status: int
    headers: Mapping[str, str]
    text: str


class Client:
    """Every method raises TransientError, NotFound or ForgeError, and nothing of PyGithub's or requests'."""

    def __init__(self, identity: Identity, api_url: str, observe: Observe = unobserved) -> None:
        self._identity = identity
        self._observe = observe
        self._api = urlsplit(api_url)
        self._requester = CappedRequester(
            auth=identity,
            base_url=api_url.rstrip("/"),
            timeout=TIMEOUT,
            user_agent=f"bouncer/{__version__}",
            per_page=PER_PAGE,
            verify=True,
            # No blind second try, of reads neither: jobs try again, with the wait that GitHub asked for.
            retry=0,
            pool_size=None,
            seconds_between_requests=0,
            seconds_between_writes=0,
        )

    def close(self) -> None:
        self._requester.close()

    def value(self, path: str, query: Query | None = None) -> Any:
        """Whatever JSON there is."""
        return self._json("GET", path, query)

    def get(self, path: str, query: Query | None = None) -> Object:
        """One object."""
        value = self.value(path, query)
        if not isinstance(value, dict):
            raise TransientError(f"GET {path}: GitHub's answer is not an object")
        return value

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """A write, tried once. TransientError leaves open whether it was applied."""
        return self._json(method, path, None, body)

    def text(self, path: str, accept: str) -> str:
        """The answer to a GET in another media type."""
        return self.raw("GET", path, accept=accept).text

    def pages(self, path: str, query: Query | None = None, key: str = "") -> Iterator[Object]:
        """Every item of a list, page after page; ``key`` where each page wraps its items in an object."""
        url: str | None = path
        query = {"per_page": PER_PAGE, **(query or {})}
        for _ in range(MAX_PAGES):
            answer = self.raw("GET", url or path, query)
            page = failures.parsed(answer.text, f"GET {path}")
            items = page.get(key) if key and isinstance(page, dict) else page
            if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
                raise TransientError(f"GET {path}: GitHub's answer is not a list of objects")
            yield from items
            url, query = _next(answer.headers), {}
            if url is None:
                return
        raise ForgeError(f"GET {path}: more than {MAX_PAGES} pages")

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Any:
        """The ``data`` of a GraphQL answer. NotFound where the object or the field is not known."""
        body = {"query": query, "variables": dict(variables)}
        answer = self._json("POST", self._requester.graphql_url, None, body)
        if not isinstance(answer, dict):
            raise TransientError("GraphQL: GitHub's answer is not an object")
        if errors := answer.get("errors"):
            _refuse_graphql(errors)
        return answer.get("data")

    def _json(self, method: str, path: str, query: Query | None, body: Any = None) -> Any:
        return failures.parsed(self.raw(method, path, query, body).text, f"{method} {path}")

    def raw(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Any = None,
        accept: str = "application/vnd.github+json",
    ) -> Raw:
        """One request. A refused token is replaced once; redirects are followed on our own host only."""
        answer = self._authorized(method, path, query, body, accept)
        for _ in range(MAX_REDIRECTS):
            if not 300 <= answer.status < 400:
                break
            target = self._redirect(method, path, answer)
            answer = self._authorized(method, target, None, body, accept)
        if 300 <= answer.status < 400:
            raise ForgeError(f"{method} {path}: GitHub redirects in a circle")
        failures.check(answer.status, answer.headers, answer.text, f"{method} {path}")
        return answer

    def location(self, path: str) -> str:
        """Where a GET redirects to, unfollowed: an archive, which lives on another host."""
        answer = self._authorized("GET", path, None, None, "application/vnd.github+json")
        failures.check(answer.status, answer.headers, answer.text, f"GET {path}")
        if "location" not in answer.headers:
            raise TransientError(f"GET {path}: GitHub names no address")
        return urljoin(self._requester.base_url, answer.headers["location"])

    def _redirect(self, method: str, path: str, answer: Raw) -> str:
        target = urlsplit(urljoin(self._requester.base_url, answer.headers.get("location", "")))
        if (target.scheme, target.netloc) != (self._api.scheme, self._api.netloc):
            raise ForgeError(f"{method} {path}: GitHub redirects to another host; credentials are not sent there")
        if method != "GET" and answer.status not in (307, 308):
            raise ForgeError(f"{method} {path}: GitHub redirects a write", answer.status)
        return target.geturl()

    def _authorized(self, method: str, path: str, query: Query | None, body: Any, accept: str) -> Raw:
        secret = self._identity.token
        answer = self._once(method, path, query, body, accept)
        if answer.status == 401 and self._identity.refuse(secret):
            answer = self._once(method, path, query, body, accept)
        if answer.status < 400:
            return answer
        # A careless gateway repeats the request in its complaint; the complaint goes into logs and errors.
        for each in (secret, self._identity.token):
            answer = replace(answer, text=answer.text.replace(each, "[token]"))
        return answer

    def _once(self, method: str, path: str, query: Query | None, body: Any, accept: str) -> Raw:
        start, status, headers = time.monotonic(), 0, dict[str, str]()
        parameters = dict(query) if query else dict(parse_qsl(urlsplit(path).query))
        try:
            status, headers, text = self._requester.requestJson(
                method, path.partition("?")[0], parameters, {"Accept": accept}, body
            )
        except requests.RequestException as error:
            # The type alone: the text may hold an address with a secret in it.
            raise TransientError(f"{method} {path}: no answer from GitHub ({type(error).__name__})") from None
        finally:
            self._observe(_call(self._identity.installation, method, status, start, headers))
        return Raw(status, headers, text)


def _call(installation: int | None, method: str, status: int, start: float, headers: Mapping[str, str]) -> Call:
    def number(name: str) -> int | None:
        text = headers.get(name, "")
        return int(text) if text.isdigit() else None

    seconds = time.monotonic() - start
    remaining, limit = number("x-ratelimit-remaining"), number("x-ratelimit-limit")
    return Call(installation, method, status, seconds, remaining, limit)


def _next(headers: Mapping[str, str]) -> str | None:
    links = parse_header_links(headers.get("link", "")) if headers.get("link") else []
    return next((link["url"] for link in links if link.get("rel") == "next"), None)


def _refuse_graphql(errors: Any) -> None:
    first = errors[0] if isinstance(errors, list) and isinstance(errors[0], dict) else {}
    kind = str(first.get("type") or (first.get("extensions") or {}).get("code") or "")
    line = f"GraphQL: {str(first.get('message'))[:200]}"
    if kind in ("NOT_FOUND", "undefinedField"):
        raise NotFound(line)
    if kind == "RATE_LIMITED":
        raise TransientError(line, failures.UNSTATED_WAIT)
    if kind in ("FORBIDDEN", "INSUFFICIENT_SCOPES"):
        raise ForgeError(line, 403)
    raise TransientError(line)
