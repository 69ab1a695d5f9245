"""The hidden line at the end of our texts, by which they are recognised."""

from __future__ import annotations

import hashlib
import hmac
import re

from pydantic import Field

from bot.core.actions import Task
from bot.core.frozen import Frozen

_MARKER_LINE = re.compile(
    r"<!-- bouncer:(?P<task>[a-z]+):v1(?: (?P<extra>[A-Za-z0-9_.:-]+))?"
    r"(?: sig=(?P<signature>[0-9a-f]{32}))? -->\s*\Z"
)


class Seal(Frozen):
    """Writes and reads the hidden markers of one issue or pull request.

    If other programs share our account, a marker is signed with ``key``: it counts only in the repository, on the
    number and for the task that it was written for. The text above it is not covered, because maintainers edit
    our comments; copying a marker within its subject gains nothing, because the oldest comment counts.
    """

    repository: str = ""
    number: int = 0
    key: bytes = Field(b"", repr=False)

    def marker(self, task: Task, extra: str = "") -> str:
        """Return the hidden line at the end of our texts."""
        signature = f" sig={self._signature(task, extra)}" if self.key else ""
        return f"<!-- bouncer:{task}:v1{f' {extra}' if extra else ''}{signature} -->"

    def read(self, body: str) -> tuple[str, str] | None:
        """Return (task, extra) of the marker that a body ends with; None if its signature is not ours."""
        match = _MARKER_LINE.search(body.rstrip())
        if match is None:
            return None
        task, extra = match["task"], match["extra"] or ""
        if self.key and not hmac.compare_digest(self._signature(task, extra), match["signature"] or ""):
            return None
        return task, extra

    def _signature(self, task: str, extra: str) -> str:
        signed = f"bouncer marker v1\n{self.repository.lower()}#{self.number}\n{task}\n{extra}"
        return hmac.new(self.key, signed.encode(), hashlib.sha256).hexdigest()[:32]


#: Markers of an account that is ours alone.
UNSIGNED = Seal()


def without_marker(body: str) -> str:
    return _MARKER_LINE.sub("", body.rstrip()).rstrip()
