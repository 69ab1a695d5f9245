"""How a test failed, and the same with everything taken out that differs between two runs of one test."""

from __future__ import annotations

import re

from pydantic import Field

from bot.core.frozen import Frozen


class Failure(Frozen):
    """What a test runner says about one failing test."""

    exception_type: str = Field(description="as printed, with or without its module; empty where none is known")
    message: str = Field("", description="the exception's text, without traceback")
    in_test: bool = Field(
        False, description="the exception was raised by the test's own lines, not by code that they called"
    )

    @property
    def short_type(self) -> str:
        """The exception's name without package, as people write it in a report."""
        return re.split(r"[.$]", self.exception_type)[-1]


# Order matters: a path is replaced before the numbers in it are.
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
        (r"\b0x[0-9a-fA-F]{4,}\b", "<address>"),
        (r"(?<=[\w$])@[0-9a-f]{5,8}\b", "@<address>"),
        # Temporary folders first, with everything below them: their names are random.
        (r"(?:/private)?(?:/var/folders|/tmp|/var/tmp|/dev/shm)(?:/[\w.+@~-]+)+", "<path>"),
        (r"[A-Za-z]:\\(?:[\w .+@~-]+\\)*[\w.+@~-]+", "<path>"),
        # Of any other absolute path the last part is kept: which file was missing tells failures apart.
        (r"(?<![\w/.<>])/(?:[\w.+@~-]+/)+(?=[\w.+@~-])", "<path>/"),
        (r"\b[0-9a-f]{32,64}\b", "<hash>"),
        (r"(?<=\.py):\d+\b|(?<=\.java):\d+\b", ":<line>"),
        (r"\b(lines?|column|col|char|position|offset) \d+\b", r"\1 <n>"),
        (r"\b(pid|PID|process|Thread|thread|worker|port)([ =:#-]+)\d+\b", r"\1\2<n>"),
        (r"\b(127\.0\.0\.1|localhost):\d+\b", r"\1:<n>"),
        (r"\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:seconds?|secs?|minutes?|milliseconds?|ms|[µu]s|ns|s)\b", "<duration>"),
        (r"\s+", " "),
    )
)


def normalise(message: str) -> str:
    """A failure message without addresses, temporary paths, line numbers, durations, ids and layout.

    Values under test stay: they are what tells two wrong results apart. Applying it twice changes nothing more.
    """
    for pattern, replacement in _VOLATILE:
        message = pattern.sub(replacement, message)
    return message.strip()


def signature(failure: Failure) -> str:
    """What two tests share that fail for one reason: exception type and normalised message.

    Only the text up to the first empty line counts, and no line of a value comparison's explanation (pytest's
    ``+  where ...``): those repeat the test's own expressions.
    """
    paragraph = failure.message.strip().split("\n\n", 1)[0]
    lines = [line for line in paragraph.splitlines() if not re.match(r"\s*(\+|E\s|\?|- |\^)", line)]
    return normalise(f"{failure.short_type}: {' '.join(lines)}")
