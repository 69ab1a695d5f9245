"""Run parsers of foreign text in child processes, with limits on processor time, time and memory.

A native parser holds the interpreter's lock, and some inputs take it minutes or crash its process. A child
gets a function and its arguments and returns plain data: JSON, validated against the function's return type.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import pickle
import resource
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection, Pipe
from typing import Any, ParamSpec, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

P = ParamSpec("P")
R = TypeVar("R")

#: Processor time of one call. The kernel counts whole seconds: a call gets between one and two.
CPU_SECONDS = 1
#: Wall-clock limit of one call, seconds; generous for a busy machine.
DEADLINE_SECONDS = 20.0
#: Address space of a child, and the largest answer, bytes.
MAX_MEMORY, MAX_ANSWER = 1 << 30, 64 << 20
#: Idle children that are kept. Concurrent calls start more, which end afterwards.
MAX_IDLE = 2
#: Niceness of children: the worker's threads go first.
_NICE = 5

_START = f"import sys; fd, *sys.path[:] = sys.argv[1:]; from {__name__} import serve; serve(int(fd))"


class NotParsed(Exception):
    """A text took too much time or memory, or crashed its parser."""


def parse_apart(function: Callable[P, R], *arguments: P.args, **keywords: P.kwargs) -> R:
    """Call a module-level function in a child process and return its result. Raises NotParsed.

    Its return type must be annotated with plain data: texts, numbers, tuples, frozen dataclasses or models.
    """
    child = _pool.take()
    try:
        answer = child.ask(pickle.dumps((function, arguments, keywords)))
        if "error" in answer:
            _log().error("parser_failed", function=function.__qualname__, error=answer["error"])
            raise NotParsed(answer["error"].strip().rpartition("\n")[2])
        result: R = _type_of(function).validate_python(answer["value"])
    except (OSError, EOFError, ValueError, ValidationError, KeyError, TypeError) as error:
        child.end()
        _log().warning("parser_ended", function=function.__qualname__, exit_code=child.exit_code)
        raise NotParsed("its parser took too long or ended") from error
    except BaseException:
        child.end()
        raise
    _pool.give_back(child)
    return result


def _log() -> Any:
    """Return the logger. Children, of which many may start, write no log and do without its import."""
    import structlog

    return structlog.get_logger(__name__)


class _Child:
    """A child process, which answers one call at a time."""

    def __init__(self) -> None:
        paths = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - an archive is no folder
        self._pipe, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-B", "-c", _START, str(theirs.fileno()), *paths],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"LANG": "C.UTF-8"},
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )

    def ask(self, call: bytes) -> dict[str, Any]:
        """Send a call and return the answer. Raises OSError, EOFError or ValueError."""
        watchdog = threading.Timer(DEADLINE_SECONDS, self._process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            self._pipe.send_bytes(call)
            answer = json.loads(self._pipe.recv_bytes(MAX_ANSWER))
        finally:
            watchdog.cancel()
        if not isinstance(answer, dict):
            raise ValueError("no answer")
        return answer

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()


class _Pool:
    """The idle children of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._owner = os.getpid()

    def take(self) -> _Child:
        with self._lock:
            if self._owner != os.getpid():  # forked: the children are the parent's
                self._idle, self._owner = [], os.getpid()
            while self._idle:
                child = self._idle.pop()
                if child.exit_code is None:
                    return child
                child.end()
        return _Child()

    def give_back(self, child: _Child) -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE:
                self._idle.append(child)
                return
        child.end()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle if self._owner == os.getpid() else ():
            child.end()


_pool = _Pool()
atexit.register(_pool.close)


def serve(descriptor: int) -> None:
    """Answer calls in the child until the parent closes the pipe or ends."""
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe = Connection(descriptor)
    while True:
        try:
            call = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send_bytes(_answer(call))


def _answer(call: bytes) -> bytes:
    try:
        function, arguments, keywords = pickle.loads(call)  # noqa: S301 - the parent's own
        return_type = _type_of(function)
        _limit_cpu()
        value = return_type.dump_python(function(*arguments, **keywords), mode="json")
        return json.dumps({"value": value}).encode()
    except Exception:  # noqa: BLE001 - the parent reports it
        return json.dumps({"error": traceback.format_exc(limit=-5)[-2_000:]}).encode()


def _limit_cpu() -> None:
    """Let the kernel end this process after CPU_SECONDS and the rest of a second from now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    limit = math.ceil(usage.ru_utime + usage.ru_stime + CPU_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (limit if most < 0 else min(limit, most), most))


@cache
def _type_of(function: Callable[..., R]) -> TypeAdapter[R]:
    return TypeAdapter(get_type_hints(function)["return"])
