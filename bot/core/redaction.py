"""Secrets that must not be seen: patterns of well-known credentials, and the operator's own by value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

#: A plain word: nothing in it can become part of Markdown around it.
REDACTED = "REDACTED"

#: What stands between the lines of a key, also where it is quoted, joined in code or printed by JSON.
_BETWEEN = r"""(?:\s|\\[nr]|["'+,>|]){0,40}"""

#: Shapes that a credential gives itself; each is long or prefixed enough not to hit prose or code.
_SHAPES = re.compile(
    rf"""
      # A key ends where its base64 ends, with or without an END: what follows it is not the key's.
      -----BEGIN\ [A-Z0-9 ]{{0,30}}PRIVATE\ KEY(?:\ BLOCK)?-----
      (?:{_BETWEEN}(?:[A-Za-z0-9+/=]{{16,}}+|(?:Proc-Type|DEK-Info|Version|Comment):[^\n`~<]{{0,100}}+))*+
      (?:{_BETWEEN}[A-Za-z0-9+/=]{{0,15}}{_BETWEEN}-----END\ [A-Z0-9 ]{{0,30}}PRIVATE\ KEY(?:\ BLOCK)?-----)?
      # GitHub: personal, OAuth, user, server, refresh. Markdown may have escaped an underscore.
    | gh[pousr]\\?_(?:[A-Za-z0-9.-]|\\?_){{20,}}
    | github\\?_pat\\?_(?:[A-Za-z0-9]|\\?_){{20,}}
    | \bv1\.[0-9a-f]{{40}}\b                               # GitHub: older installation tokens
    | glpat-[A-Za-z0-9_-]{{20,}}
    | (?:\bsk-|sk-(?:proj|ant)-)(?:[A-Za-z0-9-]|\\?_){{16,}}      # OpenAI, Anthropic and compatible servers
    | \b[sr]k\\?_(?:live|test)\\?_[A-Za-z0-9]{{16,}}
    | \b(?:AKIA|ASIA)[A-Z0-9]{{16}}\b
    | \bAIza[A-Za-z0-9_-]{{35}}
    | xox[abeoprs]-[A-Za-z0-9-]{{10,}}
    | \b(?:hf|npm)\\?_[A-Za-z0-9]{{30,}}
    | \bpypi-(?:[A-Za-z0-9-]|\\?_){{40,}}
    | \beyJ[A-Za-z0-9_-]{{10,}}\.eyJ[A-Za-z0-9_-]{{10,}}\.[A-Za-z0-9_-]{{5,}}
    | \bsha(?:1|256)=[0-9a-f]{{40,64}}\b                   # a webhook signature
    """,
    re.VERBOSE,
)
#: A password may hold an ``@``: it ends at the last one before the host.
_URL_PASSWORD = re.compile(r"(:\\?/\\?/[^\s:/@]{0,200}:)[^\s/`<>]{1,500}(?=@)")
#: ``api_key = "…"``: only where the value looks drawn at random, so that code such as ``token = next()`` stays.
_NAMED = re.compile(
    r"""
    (\b[\w-]{0,40}(?:api[_-]?key|secret|token|passw(?:or)?d|authorization)[\w-]{0,40}["']?\s{0,3}[:=]\s{0,3}
        ["']?(?:bearer\s+|basic\s+)?)
    (?=[^\s"']{0,200}[0-9])(?=[^\s"']{0,200}[A-Za-z])
    [A-Za-z0-9+/_=.@!$%^&~-]{20,}
    """,
    re.VERBOSE | re.IGNORECASE,
)
#: Shorter values are too likely to be a word of ordinary text.
_SHORTEST_OWN = 6
#: So much of a secret at the end of a text that was cut is recognised.
_PREFIX = 8


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without whatever looks like a credential, and without the given ``secrets`` themselves.

    A secret is recognised by value also where Markdown escapes or zero-width breaks stand in it, or where the
    text was cut within it.
    """
    own = _own(tuple(secrets))
    if own is not None:
        text = own.sub(REDACTED, text)
    text = _SHAPES.sub(REDACTED, text)
    text = _URL_PASSWORD.sub(rf"\1{REDACTED}", text)
    return _NAMED.sub(rf"\1{REDACTED}", text)


@lru_cache(maxsize=16)
def _own(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    known = sorted({each for each in secrets if len(each) >= _SHORTEST_OWN}, key=len, reverse=True)
    whole = [_spelled(each) for each in known]
    cut = [_spelled(each[:_PREFIX]) + r"[^\s`]*…" for each in known if len(each) > _PREFIX]
    return re.compile("|".join([*whole, *cut])) if known else None


def _spelled(secret: str) -> str:
    return "\u200b*".join(
        r"(?:\s|\\[nr])" if char.isspace() else re.escape(char) if char.isalnum() else rf"\\?{re.escape(char)}"
        for char in secret
    )
