"""Supervised processes that freeze or end; each adds a line to FILE when it starts.

``python -m tests.bot.cli.frozen FILE [CODE ...]`` freezes, or ends with the codes, one after the other.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bot.cli.running import stopped
from bot.cli.serve import SETTLED_SECONDS, Child, supervise
from bot.cli.worker import end_if_frozen


def run(file: str, codes: Sequence[str]) -> None:
    """Hold the interpreter's lock in native code for good, or end after a while."""
    with Path(file).open("a") as log:
        log.write("started\n")
    if codes:
        time.sleep(SETTLED_SECONDS + 2)
        sys.exit(int(codes[Path(file).read_text().count("\n") - 1]))
    end_if_frozen(1.0)
    re.match("(?:a|a)*b", "a" * 100)


if __name__ == "__main__":
    sys.exit(supervise([Child("worker", run, (sys.argv[1], sys.argv[2:]))], stopped()))
