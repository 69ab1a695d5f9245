"""Shared parts of network providers: HTTP, capabilities of models, the meaning of failures.

A failure's message names the provider and a remedy, without keys and with at most one line of the response.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import httpx2

from bot.core.errors import AnswerLost, ModelError, ProviderRefused, TransientError
from bot.core.frozen import Frozen
from bot.core.http_client import HttpClient, TooLarge, TooSlow, limit_chunks, retry_after
from bot.core.redaction import REDACTED
from bot.models.conversation import Answer, Request

#: Bytes of an answer, decompressed: a hundred times what 4,000 tokens need.
MAX_BYTES = 4_000_000
#: Seconds for one request: a reasoning model at medium effort may think for minutes.
TIMEOUT = 300.0
#: Longest wait that a provider can ask for, seconds.
MAX_WAIT = 3600.0
#: Worth another try. 529 is Anthropic's "overloaded", 520 to 524 are a CDN that could not reach its origin.
TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
#: A gateway gave up waiting for a model, which may go on and be billed.
_GATEWAY_TIMEOUTS = frozenset({504, 524})
#: No connection was made, so nothing was asked.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)

#: Models from before structured output: they are given the schema as a tool that they must call.
TOOL_ONLY = re.compile(
    r"(^|/)(gpt-3\.5|gpt-4($|-\d{4}|-turbo|-32k|-vision)"
    r"|claude-(2|3|instant|(opus|sonnet)-4-0|(opus|sonnet)-4-20))"
)


class Capabilities(Frozen):
    """Parameters that a model accepts in a request."""

    temperature: bool = True
    effort: Literal["always", "lowered", "never"] = "never"
    """``lowered``: sent only if less than usual is asked for; it is unknown whether the model uses it."""
    native_schema: bool = True
    """False: the schema is sent as a tool that must be called."""
    limits: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """The server's names for the completion limit, the preferred one first."""

    def without_refused(self, payload: Container[str], message: str) -> Capabilities | None:
        """Return the capabilities without the parameter that a server refused; None if it named none.

        Each step removes one for good, so that the retries end.
        """
        if self.temperature and "temperature" in payload and "temperature" in message:
            return self.model_copy(update={"temperature": False})
        if self.effort != "never" and (
            "effort" in message or (not self.native_schema and "output_config" in message)
        ):
            return self.model_copy(update={"effort": "never"})
        if len(self.limits) > 1 and self.limits[0] in message:
            return self.model_copy(update={"limits": self.limits[1:]})
        shape = r"response_format|json_schema|output_config|output_format|structured"
        if self.native_schema and re.search(shape, message):
            return self.model_copy(update={"native_schema": False})
        return None


@dataclass
class Remote:
    """A ``Provider`` over the network; parameters that it refuses are left out from then on."""

    provider: str
    capabilities: Capabilities
    body: Callable[[Request, Capabilities], dict[str, Any]]
    """The JSON of a request."""
    send: Callable[[dict[str, Any] | None], httpx2.Response]
    """Sends it and returns the response, with any status. Raises TransientError if there is none.

    None asks for the description of the model, which costs nothing.
    """
    answer: Callable[[bytes], Answer]
    """Parses a successful response. Raises ModelError or TransientError if it is unusable."""
    own_server: bool = False
    """True for a compatible server of the operator's, which need not describe its models."""

    @property
    def has_effort(self) -> bool:
        return self.capabilities.effort != "never"

    @property
    def key_name(self) -> str:
        return f"{self.provider.upper()}_API_KEY"

    def check(self) -> bool:
        """Return True if the provider takes the key and knows the model, False if it does not say.

        Raises ProviderRefused, or TransientError if it does not answer.
        """
        response = self.send(None)
        status = response.status_code
        # A key may be valid for questions only, and a compatible server may have no such page.
        if status == 401 or (status == 404 and not self.own_server):
            raise status_error(self.provider, status, response.headers, response.text, self.key_name)
        return bool(response.is_success)

    def complete(self, request: Request) -> Answer:
        payload = self.body(request, self.capabilities)
        response = self.send(payload)
        if response.is_success:
            return self.answer(response.content)
        status, text = response.status_code, response.text
        reduced = self.capabilities.without_refused(payload, text) if status in (400, 422) else None
        if reduced is None:
            raise status_error(self.provider, status, response.headers, text, self.key_name)
        self.capabilities = reduced
        return self.complete(request)


class CappedClient(HttpClient):
    """The HTTP client for the SDKs: reads a response completely, up to a limit, before it is parsed."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        limits = httpx2.Timeout(timeout, connect=min(timeout, 10.0))
        super().__init__(limits, headers={"Accept-Encoding": "gzip, identity"})
        self._seconds = timeout

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; raises ReadTimeout or ReadError for a response that does not end."""
        deadline = time.monotonic() + self._seconds
        response = super().send(request, **{**options, "stream": True, "follow_redirects": False})
        try:
            content = b"".join(limit_chunks(response.iter_bytes(), MAX_BYTES, deadline - time.monotonic()))
        except TooLarge:
            raise httpx2.ReadError(f"the answer is longer than {MAX_BYTES} bytes") from None
        except TooSlow:
            raise httpx2.ReadTimeout(f"the answer took longer than {self._seconds:.0f} s") from None
        finally:
            response.close()
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in _OF_THE_WIRE]
        content = _without_credentials(content, request.headers)
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


def _without_credentials(content: bytes, request_headers: httpx2.Headers) -> bytes:
    """Remove the request's key from a response: errors of gateways may repeat it."""
    values = (
        request_headers.get("authorization", "").removeprefix("Bearer "),
        request_headers.get("x-api-key", ""),
    )
    for key in values:
        if len(key) >= _SHORTEST_KEY:
            content = content.replace(key.encode(), REDACTED.encode())
    return content


#: A shorter key is a placeholder such as ``none``, and part of ordinary words.
_SHORTEST_KEY = 8
# They describe the bytes on the wire, not the decoded content.
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})

_OUT_OF_CREDIT = re.compile(
    r"insufficient_quota|billing|credit balance|spend.?limit|specified API usage limits", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|prompt is too long", re.IGNORECASE
)
_FILTERED = re.compile(r"content_filter|content_policy|content management policy", re.IGNORECASE)
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|unknown model|invalid model|model.{1,80}does not exist", re.IGNORECASE
)
_SECRET = re.compile(r"\b(?:sk|key|Bearer)[-_ ][A-Za-z0-9_*.-]{4,}", re.IGNORECASE)


def status_error(
    provider: str, status: int, headers: Mapping[str, str], text: str, key_name: str = ""
) -> ModelError | TransientError:
    """Return the error for an HTTP status; ``text`` is the response, ``key_name`` the variable of the key."""
    words = _quoted(_message(text))
    # Anthropic says so with 400.
    if status in (400, 402, 429) and _OUT_OF_CREDIT.search(text):
        return ProviderRefused(f"{provider} has no credit left: {words}")
    if status in TRANSIENT:
        wait = retry_after(headers)
        after = None if wait is None else min(wait, MAX_WAIT)
        error_type = AnswerLost if status in _GATEWAY_TIMEOUTS else TransientError
        return error_type(f"{provider} answered {status}{words and ': ' + words}", after)
    if status in (401, 403):
        return ProviderRefused(f"{provider} refused the key ({status}): check {key_name or 'it'}")
    if 300 <= status < 400:
        return ProviderRefused(
            f"{provider} redirects elsewhere ({status}), and keys do not follow: set the final base URL"
        )
    if status == 404 or _UNKNOWN_MODEL.search(text):
        return ProviderRefused(
            f"{provider} does not know the model ({status}): check its name{words and ': ' + words}"
        )
    if status == 413 or _TOO_LONG.search(text):
        return ModelError(f"{provider} finds the question too long: {words}", "length")
    if _FILTERED.search(text):
        return ModelError(f"{provider} refused to answer: {words}", "refused")
    return ModelError(f"{provider} answered {status}{words and ': ' + words}", "unavailable")


def connection_error(provider: str, error: Exception) -> TransientError:
    """Return the error for a missing or partial response: asking again is safe."""
    cause = error.__cause__ or error
    error_type = TransientError if isinstance(cause, _NOT_SENT) else AnswerLost
    return error_type(f"{provider} could not be reached: {type(cause).__name__}: {_quoted(str(cause))}")


@contextmanager
def parsing(provider: str, content: bytes) -> Iterator[None]:
    """Raise ModelError if a success has an unusable body: an HTML page, half a JSON, another shape."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        start = _quoted(content[:80].decode("utf-8", "replace"))
        message = f"{provider} answered with something that is no completion: {start!r}"
        raise ModelError(message, "malformed") from None


def _quoted(text: str) -> str:
    """Shorten a provider's message to one line, without anything that looks like a key."""
    return _SECRET.sub("[key]", " ".join(text.split()))[:200]


def _message(text: str) -> str:
    """Return the message in an error's body; the body itself if it has another shape, empty for a page."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return "" if text.lstrip().startswith("<") else text
    inner = body.get("error", body) if isinstance(body, dict) else body
    message = inner.get("message", inner) if isinstance(inner, dict) else inner
    return message if isinstance(message, str) else text
