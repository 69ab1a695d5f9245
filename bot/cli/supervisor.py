"""Waits for the children of ``bouncer serve`` in little memory, and starts again what ends.

``serve`` forks its children, which share what it imported, and becomes this program: exec keeps the process and
its children, and drops all that was imported. It is run by its path and imports the standard library alone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

ENDINGS = (signal.SIGTERM, signal.SIGINT)
#: Blocked in the parent, which waits for them; a child takes them again.
SIGNALS = (*ENDINGS, signal.SIGCHLD, signal.SIGALRM)
#: How long children are given to end, seconds; they drain what they have begun.
STOP_SECONDS = 28.0
#: A process that lived for this long is started again at once, seconds; others wait longer each time.
STABLE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 10.0
#: Exit code of a process whose settings are wrong: a new start would not help.
WRONG_USAGE = 2

_PR_SET_PDEATHSIG = 1


def fork(run: Callable[[], int]) -> int:
    """Run a function in a new process, which exits with its result, and return the process id.

    The child is ended with its parent, even if that is killed. SIGNALS are blocked in the caller.
    """
    parent = os.getpid()
    if pid := os.fork():
        return pid
    # Not at the top: the supervisor itself does without.
    import ctypes

    for number in ENDINGS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    sys.exit(run() if os.getppid() == parent else 0)


def supervise(children: dict[int, str], program: list[str]) -> int:
    """Start children (process id -> name) again when they end, until a signal. Return the exit code.

    A child is started again as ``program`` with the option ``--child NAME``.
    """
    started = dict.fromkeys(children.values(), time.monotonic())
    failures = dict.fromkeys(children.values(), 0)
    due: dict[str, float] = {}
    while True:
        wait = min(due.values(), default=time.monotonic() + 60) - time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, max(0.001, wait))
        if signal.sigwait(SIGNALS) in ENDINGS:
            _end(children)
            return 0
        while child := _ended():
            pid, code = child
            if pid not in children:
                continue
            name = children.pop(pid)
            if code == WRONG_USAGE:
                _end(children)
                return WRONG_USAGE
            now = time.monotonic()
            failures[name] = 0 if now - started[name] > STABLE_SECONDS else failures[name] + 1
            pause = min(LONGEST_PAUSE_SECONDS, 2.0 ** (failures[name] - 1)) if failures[name] > 1 else 0.0
            due[name] = now + pause
            _log("process_died", process=name, exit_code=code, again_in=pause)
        for name in [name for name, moment in due.items() if moment <= time.monotonic()]:
            del due[name]
            started[name] = time.monotonic()
            children[_start(program, name)] = name


def _start(program: list[str], name: str) -> int:
    def run() -> int:
        os.execv(sys.executable, [sys.executable, *program, "--child", name])  # noqa: S606 - the same program

    return fork(run)


def _ended() -> tuple[int, int] | None:
    """Return the process id and exit code of a child that ended; None if none did. Reaps it."""
    try:
        child, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (child, os.waitstatus_to_exitcode(status)) if child else None


def _end(children: Mapping[int, str]) -> None:
    """Ask children (process id -> name) to end, and kill what has not ended in time."""
    remaining = dict(children)
    for pid in remaining:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while remaining and time.monotonic() < deadline:
        if child := _ended():
            remaining.pop(child[0], None)
        else:
            time.sleep(0.05)
    for pid, name in remaining.items():
        _log("process_killed", process=name)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _log(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts, "level": "error"}), file=sys.stderr, flush=True)


if __name__ == "__main__":
    pids: dict[str, int] = json.loads(sys.argv[1])
    sys.exit(supervise({pid: name for name, pid in pids.items()}, sys.argv[2:]))
