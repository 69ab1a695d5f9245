"""Parts of an address made of other people's text."""

from __future__ import annotations

from urllib.parse import quote

from bot.errors import NotFound


def segment(text: str) -> str:
    """One segment of a path, whatever it holds."""
    if text in ("", ".", ".."):
        raise NotFound(f"{text!r} names nothing")
    return quote(text, safe="")


def below(text: str) -> str:
    """A path below an address. One that would climb out of it names nothing."""
    if any(part in ("", ".", "..") for part in text.split("/")):
        raise NotFound(f"{text[:200]!r} names nothing")
    return quote(text)
