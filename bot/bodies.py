"""What is sent, to the last character: hidden markers, caps, and the final look at every text. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

from bot.core.actions import InlineComment, Task
from bot.core.frozen import Frozen
from bot.redaction import redact
from bot.text import cap, fence, net, visible

#: GitHub's limits, characters.
MAX_BODY = 65_536
MAX_CHECK = 65_535
MAX_TITLE = 250

_FINGERPRINT = re.compile(r"[^A-Za-z0-9_.:-]")
_COMMAND_LINE = re.compile(r"^\s*/[a-z][\w-]*(?:\s|$)", re.MULTILINE | re.IGNORECASE)
_MARKER_LINE = re.compile(r"<!-- bouncer:(?P<task>[a-z]+):v1(?: (?P<extra>[A-Za-z0-9_.:-]+))? -->\s*\Z")


class Rules(Frozen):
    """What a text may hold at the place where it goes."""

    hosts: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()

    def text(self, body: str, limit: int) -> str:
        """A body without a marker."""
        return cap(redact(net(_shown(body), hosts=self.hosts), self.secrets), limit)

    def title(self, text: str) -> str:
        """A title: plain text, one line."""
        return cap(redact(" ".join(visible(text).split()), self.secrets), MAX_TITLE)

    def marked(self, body: str, task: Task, extra: str = "") -> str:
        """A body that can be found again by its hidden marker."""
        sign = marker(task, extra)
        return f"{self.text(body, MAX_BODY - len(sign) - 2)}\n\n{sign}".lstrip()

    def inline(self, comment: InlineComment) -> InlineComment:
        """A review's comment with its suggestion as a block and its fingerprint as a marker.

        A suggestion is code that somebody may take over with one click, so it is sent as it is or not at all.
        """
        body = self.text(comment.body, MAX_BODY // 2)
        new = comment.suggestion
        if new is not None and comment.side == "RIGHT" and self._harmless(new):
            ticks = fence(new).partition("\n")[0]
            body += f"\n\n{ticks}suggestion\n{new}\n{ticks}"
        sign = marker("review", _FINGERPRINT.sub("", comment.fingerprint)[:100])
        return comment.model_copy(update={"body": f"{body}\n\n{sign}", "suggestion": None})

    def _harmless(self, code: str) -> bool:
        return (
            len(code) <= MAX_BODY // 4
            and visible(code, lookalikes=False) == code
            and redact(code, self.secrets) == code
            and _COMMAND_LINE.search(code) is None
            and "<!-- bouncer:" not in code
        )


def marker(task: Task, extra: str = "") -> str:
    """The hidden line at the end of what we write. Anyone can type it: it counts with our own account only."""
    return f"<!-- bouncer:{task}:v1{f' {extra}' if extra else ''} -->"


def read_marker(body: str) -> tuple[str, str] | None:
    """(task, extra) of the marker that a body ends with."""
    found = _MARKER_LINE.search(body.rstrip())
    return (found["task"], found["extra"] or "") if found else None


def content_hash(parts: Iterable[str]) -> str:
    """Tells whether what is to be sent differs from what was sent."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def rules(hosts: Collection[str], secrets: Iterable[str]) -> Rules:
    """The rules of a place."""
    return Rules(hosts=frozenset(host for host in hosts if host), secrets=tuple(secrets))


def _shown(body: str) -> str:
    """``body`` without characters that hide or reorder text; the breaks that ``clean`` put in stay."""
    return "\u200b".join(visible(part, lookalikes=False) for part in body.split("\u200b"))
