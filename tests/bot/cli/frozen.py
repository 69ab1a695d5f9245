"""Supervised processes that freeze or end; each adds a line to FILE when it starts.

``python -m tests.bot.cli.frozen FILE [CODE ...]`` freezes, or ends with the codes, one after the other.
The code ``error`` is an exception.
"""

from __future__ import annotations

import re
import sys
import time
from functools import partial
from pathlib import Path

from bot.cli.serve import supervise
from bot.cli.worker import end_if_frozen


def run(file: str, *codes: str) -> None:
    """Hold the interpreter's lock in native code for good, or end after a while."""
    with Path(file).open("a") as log:
        log.write("started\n")
    if codes:
        time.sleep(1)
        code = codes[Path(file).read_text().count("\n") - 1]
        if code == "error":
            raise OSError("no file can be opened")
        sys.exit(int(code))
    end_if_frozen(1.0)
    re.match("(?:a|a)*b", "a" * 100)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--child" in arguments:
        run(*arguments[: arguments.index("--child")])
    else:
        supervise({"worker": partial(run, *arguments)})
