"""A supervised process that freezes: ``python -m tests.bot.cli.frozen FILE`` adds a line to FILE at each start."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from bot.cli.running import stopped
from bot.cli.serve import Child, supervise
from bot.cli.worker import end_if_frozen


def freeze(file: str) -> None:
    """Hold the interpreter's lock in native code for good."""
    with Path(file).open("a") as log:
        log.write("started\n")
    end_if_frozen(1.0)
    re.match("(?:a|a)*b", "a" * 100)


if __name__ == "__main__":
    supervise([Child("worker", freeze, (sys.argv[1],))], stopped())
