"""What a provider's failures mean: worth another try, or the end of this question.

Messages name the provider and what an operator can do; they carry no key and at most a line of what was said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bot.core.bounded import retry_after
from bot.errors import ModelError, TransientError

#: Worth another try. 529 is Anthropic's "overloaded", 520 to 524 are a CDN that could not reach its origin.
TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
#: Seconds that a provider may make us wait at most, whatever it asks for.
MAX_WAIT = 3600.0

_OUT_OF_CREDIT = re.compile(r"insufficient_quota|billing|credit balance|spend.?limit", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|prompt is too long", re.IGNORECASE
)
_FILTERED = re.compile(r"content_filter|content_policy|content management policy", re.IGNORECASE)
_SECRET = re.compile(r"\b(?:sk|key|Bearer)[-_ ][A-Za-z0-9_*.-]{4,}", re.IGNORECASE)


def of_status(
    provider: str, status: int, headers: Mapping[str, str], said: str, key_name: str = ""
) -> ModelError | TransientError:
    """What an HTTP error status means; ``said`` is the provider's own words, ``key_name`` where its key is set."""
    words = quoted(_message(said))
    if status in (402, 429) and _OUT_OF_CREDIT.search(said):
        return ModelError(f"{provider} has no credit left: {words}", "unavailable")
    if status in TRANSIENT:
        wait = retry_after(headers)
        after = None if wait is None else min(wait, MAX_WAIT)
        return TransientError(f"{provider} answered {status}{words and ': ' + words}", after)
    if status in (401, 403):
        return ModelError(f"{provider} refused the key ({status}): check {key_name or 'it'}", "unavailable")
    if 300 <= status < 400:
        return ModelError(
            f"{provider} redirects elsewhere ({status}), and keys do not follow: set the final base URL",
            "unavailable",
        )
    if status == 413 or _TOO_LONG.search(said):
        return ModelError(f"{provider} finds the question too long: {words}", "length")
    if _FILTERED.search(said):
        return ModelError(f"{provider} refused to answer: {words}", "refused")
    return ModelError(f"{provider} answered {status}{words and ': ' + words}", "unavailable")


def of_connection(provider: str, error: Exception) -> TransientError:
    """No answer, or half of one: nothing was decided, so asking again is safe."""
    cause = error.__cause__ or error
    return TransientError(f"{provider} could not be reached: {type(cause).__name__}: {quoted(str(cause))}")


def unreadable(provider: str, body: bytes) -> ModelError:
    """A success whose body is not what the interface promises: an HTML page, half a JSON, another shape."""
    start = quoted(body[:80].decode("utf-8", "replace"))
    return ModelError(f"{provider} answered with something that is no completion: {start!r}", "malformed")


def quoted(text: str) -> str:
    """One short line of somebody else's words, without what looks like a key."""
    return _SECRET.sub("[key]", " ".join(text.split()))[:200]


def _message(said: str) -> str:
    """The message in an error's body; the body itself where it has another shape, nothing of a page."""
    try:
        body = json.loads(said)
    except (ValueError, RecursionError):
        return "" if said.lstrip().startswith("<") else said
    inner = body.get("error", body) if isinstance(body, dict) else body
    found = inner.get("message", inner) if isinstance(inner, dict) else inner
    return found if isinstance(found, str) else said
