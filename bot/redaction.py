"""Secrets that must not be seen: patterns of well-known credentials, and the operator's own by value."""

from __future__ import annotations

import re
from collections.abc import Iterable

REDACTED = "[redacted]"

#: Shapes that a credential gives itself; each is long or prefixed enough not to hit prose or code.
_SHAPES = re.compile(
    r"""
      -----BEGIN\ [A-Z0-9 ]{0,30}PRIVATE\ KEY-----.*?(?:-----END\ [A-Z0-9 ]{0,30}PRIVATE\ KEY-----|\Z)
    | \bgh[pousr]_[A-Za-z0-9_.-]{20,}                    # GitHub: personal, OAuth, user, server, refresh
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bv1\.[0-9a-f]{40}\b                               # GitHub: older installation tokens
    | \bglpat-[A-Za-z0-9_-]{20,}
    | \bsk-[A-Za-z0-9_-]{16,}                            # OpenAI, Anthropic and compatible servers
    | \b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{35}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \b(?:hf|npm)_[A-Za-z0-9]{30,}
    | \bpypi-[A-Za-z0-9_-]{40,}
    | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}
    | \bsha(?:1|256)=[0-9a-f]{40,64}\b                   # a webhook signature
    """,
    re.VERBOSE | re.DOTALL,
)
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{1,30}://[^\s:/@]{0,200}:)[^\s/@]{1,500}(?=@)", re.IGNORECASE)
#: ``api_key = "…"``: only where the value looks drawn at random, so that code such as ``token = next()`` stays.
_NAMED = re.compile(
    r"""
    (\b[\w-]{0,40}(?:api[_-]?key|secret|token|passw(?:or)?d|authorization)[\w-]{0,40}["']?\s{0,3}[:=]\s{0,3}
        ["']?(?:bearer\s+|basic\s+)?)
    (?=[^\s"']{0,200}[0-9])(?=[^\s"']{0,200}[A-Za-z])
    [A-Za-z0-9+/_=.-]{20,}
    """,
    re.VERBOSE | re.IGNORECASE,
)
#: Shorter values are too likely to be a word of ordinary text.
_SHORTEST_OWN = 6


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without whatever looks like a credential, and without the given ``secrets`` themselves."""
    for secret in sorted((each for each in secrets if len(each) >= _SHORTEST_OWN), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    text = _SHAPES.sub(REDACTED, text)
    text = _URL_PASSWORD.sub(rf"\1{REDACTED}", text)
    return _NAMED.sub(rf"\1{REDACTED}", text)
