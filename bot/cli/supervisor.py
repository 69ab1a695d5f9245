"""Waits for the children of ``bouncer serve`` without the memory that it takes to start them.

``serve`` becomes this program when its children run: exec keeps the process and its children, and drops all that
was imported. When a child ends, this program becomes ``serve`` again, which starts another one. It is run by its
path and imports the standard library alone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any, NoReturn

#: The variable that carries what ``serve`` knows of its children, JSON.
STATE = "_BOUNCER_SERVE"
ENDINGS = (signal.SIGTERM, signal.SIGINT)
#: How long children are given to end, seconds; they drain what they have begun.
STOP_SECONDS = 28.0


def ended(pid: int = -1) -> tuple[int, int] | None:
    """Return the process id and exit code of a child that ended; None if none did. Reaps it."""
    try:
        child, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return (child, os.waitstatus_to_exitcode(status)) if child else None


def end(children: Mapping[int, str]) -> None:
    """Ask children (process id -> name) to end, and kill what has not ended in time."""
    remaining = dict(children)
    for pid in remaining:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while remaining and time.monotonic() < deadline:
        if child := ended():
            remaining.pop(child[0], None)
        else:
            time.sleep(0.05)
    for pid, name in remaining.items():
        print(json.dumps({"event": "process_killed", "process": name, "level": "error"}), file=sys.stderr)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def become(program: list[str], state: Mapping[str, Any]) -> NoReturn:
    """Go on as another Python program. Signals wait until it takes them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (*ENDINGS, signal.SIGCHLD))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *program], {**os.environ, STATE: json.dumps(state)})  # noqa: S606


def main(serve: list[str]) -> int:
    """Wait for a signal to end, or for a child that ends. Then Python goes on with the arguments ``serve``."""
    state = json.loads(os.environ.pop(STATE))
    children = {child["pid"]: name for name, child in state["children"].items()}
    while True:
        if child := ended():
            if child[0] in children:
                state["children"][children[child[0]]]["code"] = child[1]
                become(serve, state)
        elif signal.sigwait((*ENDINGS, signal.SIGCHLD)) in ENDINGS:
            end(children)
            return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
