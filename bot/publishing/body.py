"""What is sent, to the last character: hidden markers, limits, and the last look at every text. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from bot.core.actions import InlineComment, Task
from bot.core.frozen import Frozen
from bot.core.markdown import BREAK, COMMAND, MARKER, clean, clean_line, fence, visible
from bot.core.redaction import redact
from bot.core.text import cap
from bot.publishing.markdown import LIVE, harmless

#: GitHub's limits, characters.
MAX_BODY = 65_536
MAX_CHECK = 65_535
MAX_TITLE = 250

_FINGERPRINT = re.compile(r"[^A-Za-z0-9_.:-]")
_STRAY_BREAK = re.compile(rf"(?<![@#:</!])(?<!gh-){BREAK}+", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_MARKER_LINE = re.compile(r"<!-- bouncer:(?P<task>[a-z]+):v1(?: (?P<extra>[A-Za-z0-9_.:-]+))? -->\s*\Z")


class Rules(Frozen):
    """What a text may hold at the place where it goes."""

    host: str = ""
    secrets: tuple[str, ...] = ()

    def text(self, body: str, limit: int) -> str:
        """A body without a marker: as its template wrote it, or, if that is not harmless, as a stranger's text."""
        body = _cut(redact(_revealed(body), self.secrets), limit)
        return (
            body if harmless(body, {self.host}) else redact(clean(body, host=self.host, limit=limit), self.secrets)
        )

    def title(self, text: str) -> str:
        """A title: plain text, one line."""
        line = cap(redact(" ".join(visible(text).split()), self.secrets), MAX_TITLE)
        return clean_line(line, limit=MAX_TITLE) if LIVE.search(line) else line

    def marked(self, body: str, task: Task, extra: str = "") -> str:
        """A body that can be found again by its hidden marker."""
        sign = marker(task, extra)
        text = self.text(body, MAX_BODY - len(sign) - 2)
        return f"{text}\n\n{sign}" if text else sign

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
            and COMMAND.search(code) is None
            and MARKER.search(code) is None
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


def _cut(body: str, limit: int) -> str:
    """``body`` within ``limit``; a fence or fold that the cut left open is closed."""
    if len(body) <= limit:
        return body
    cut = cap(body, limit - 80)
    fences = _FENCE.findall(cut)
    folds = max(0, cut.count("<details") - cut.count("</details>"))
    return cut + f"\n{fences[-1][:40]}" * (len(fences) % 2) + "\n\n</details>" * min(folds, 2)


def _revealed(body: str) -> str:
    """``body`` without characters that hide or reorder text; breaks stay where ``clean`` puts them."""
    revealed = BREAK.join(visible(part, lookalikes=False) for part in body.split(BREAK))
    return _STRAY_BREAK.sub("", revealed)
