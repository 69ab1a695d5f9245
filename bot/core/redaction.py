"""Remove secrets from text and logs: well-known credentials by pattern, the operator's own by value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from html import unescape
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

#: A plain word, which cannot become part of Markdown around it.
REDACTED = "REDACTED"

#: Text between the lines of a key, also if it is quoted, joined in code or printed as JSON.
_BETWEEN = r"""(?:\s|\\[nr]|["'+,>|]){0,40}"""

#: Patterns of credentials, each long or specific enough not to match prose or code.
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
#: ``api_key = "…"``: only if the value looks random, so that code such as ``token = next()`` stays.
_ASSIGNED = re.compile(
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
#: White space of a secret, as text, Markdown, JSON, HTML or an address has it.
_BLANK = r"(?:[\s\u200b>+]|\\[nrt]|%20|%0[AaDd9]|&nbsp;|&\#(?:32|10|13|9|[xX]20|[xX]0?[aAdD9]);)+"
#: Characters of a secret that are enough to recognise it at the end of a cut text, and what may follow them there.
_PREFIX = 8
_CUT = r"[^\s`]{0,1000}…"
#: Nesting of a logged value up to which its parts are redacted one by one; the event is the first level.
_DEEPEST = 7


#: The operator's secrets while handlers write their texts.
_PROTECTED: ContextVar[tuple[str, ...]] = ContextVar("protected", default=())


@contextmanager
def protecting(secrets: Iterable[str]) -> Iterator[None]:
    """Redact ``secrets`` in every text that is made safe inside, before Markdown can split them."""
    token = _PROTECTED.set(tuple(secrets))
    try:
        yield
    finally:
        _PROTECTED.reset(token)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` without anything that looks like a credential and without ``secrets``.

    A secret is recognised by value also with Markdown escapes, zero-width breaks, other white space, percent or
    HTML encoding in it, or if the text was cut within it. Those of ``protecting`` are removed, too.
    """
    own = _own((*secrets, *_PROTECTED.get()))
    if own is not None:
        text = own.sub(REDACTED, text)
    text = _SHAPES.sub(REDACTED, text)
    text = _URL_PASSWORD.sub(rf"\1{REDACTED}", text)
    return _ASSIGNED.sub(rf"\1{REDACTED}", text)


@lru_cache(maxsize=16)
def _own(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    long_secrets = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_OWN}, key=len, reverse=True)
    whole = [_spelled(secret) for secret in long_secrets]
    prefixes = [_spelled(secret[:_PREFIX]) + _CUT for secret in long_secrets if len(secret) > _PREFIX]
    return re.compile("|".join([*whole, *prefixes])) if long_secrets else None


def log_redactor(secrets: Iterable[str]) -> Callable[[Any, str, MutableMapping[str, Any]], Mapping[str, Any]]:
    """Return a processor of structlog that redacts every value of an event, in types that JSON knows."""
    own_secrets = tuple(secrets)

    def clean(value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, dict) and depth < _DEEPEST:
            return {str(key): clean(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset) and depth < _DEEPEST:
            return [clean(item, depth + 1) for item in value]
        return redact(str(value), own_secrets).encode("utf-8", "replace").decode()

    return lambda _logger, _method, event: clean(event, 0)


def leaks(text: str, secrets: Iterable[str]) -> bool:
    """Return True if a secret can be read in ``text``, with any white space or encoding."""
    compact_secrets = [short for secret in secrets if len(short := _compact(secret)) >= _SHORTEST_OWN]
    if not compact_secrets:
        return False
    forms = (
        text, unescape(text), unescape(unescape(text)), unquote(text), unquote_plus(text), unquote(unquote(text))
    )  # fmt: skip
    return any(secret in form for form in map(_compact, forms) for secret in compact_secrets)


def _compact(text: str) -> str:
    return "".join(text.replace("\u200b", "").split())


def _spelled(secret: str) -> str:
    words = secret.split()
    return _BLANK.join("\u200b*".join(map(_character, word)) for word in words)


def _character(char: str) -> str:
    """Return a pattern for a character of a secret: plain, escaped by Markdown, or encoded."""
    if char.isascii() and char.isalnum():
        return char
    hexadecimal = f"{ord(char):x}"
    digits = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in hexadecimal)
    forms = [rf"\\?{re.escape(char)}", f"&\\#0*{ord(char)};", f"&\\#[xX]0*{digits};"]
    encoded = quote(char, safe="")
    if encoded.startswith("%"):
        forms.append(f"(?i:{encoded})".replace("%", "%(?:25)?"))
    name = {"<": "lt", ">": "gt", "&": "amp", '"': "quot", "'": "apos"}.get(char)
    if name:
        forms.append(f"&(?:amp;)?{name};")
    return f"(?:{'|'.join(reversed(forms))})"
