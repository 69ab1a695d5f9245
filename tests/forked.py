"""Processes of ``bouncer``, forked from one that has imported it: a start costs a tenth of the processor time.

What has to start as an operator starts it, such as ``bouncer serve``, uses ``subprocess`` instead.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import bot.cli
from tests.bot.pipeline import worker_process

_ROOT = Path(__file__).resolve().parents[1]
_NUMBER = struct.Struct("i")
#: Modules that can be run as by ``python -m``.
_MODULES = {
    "bot": bot.cli.main,
    "tests.bot.pipeline.worker_process": worker_process.main,
}


class Process:
    """A process with a session of its own; the methods are those of ``subprocess.Popen``."""

    def __init__(self, status: int) -> None:
        self._status = status
        self.pid = self._next()
        self.returncode: int | None = None

    def _next(self) -> int:
        number: int = _NUMBER.unpack(os.read(self._status, _NUMBER.size))[0]
        return number

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = self._next()
            os.close(self._status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            select.select([self._status], [], [], timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired("bouncer", timeout or 0)
        return code


class Ended(NamedTuple):
    """The result of a command; a negative ``code`` is the signal that ended it."""

    code: int
    out: bytes
    err: bytes


def start(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> Process:
    """Do what ``python -m`` with these arguments does; the output is appended to ``log``."""
    with log.open("ab") as output, Path(os.devnull).open("rb") as empty:
        return _start(arguments, environment, folder, empty.fileno(), output.fileno(), output.fileno())


def run(
    *words: str,
    environment: Mapping[str, str],
    folder: Path,
    stdin: bytes = b"",
    memory: int = -1,
    seconds: int = 120,
) -> Ended:
    """Run ``bouncer`` with these words. It is killed after ``seconds``, and may use ``memory`` bytes."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(stdin)
        files = (source, out, err)
        for file in files:
            file.seek(0)
        process = _start(("bot", *words), environment, folder, *(file.fileno() for file in files), memory=memory)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read(), err.read())


def _start(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path, *files: int, memory: int = -1
) -> Process:
    request = json.dumps([arguments, dict(environment), str(folder), memory]).encode()
    status, reporting = os.pipe()
    try:
        socket.send_fds(_parent()[0], [request], [*files, reporting])
    finally:
        os.close(reporting)
    return Process(status)


@cache
def _parent() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the process that the others are forked from. It ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.forked", str(theirs.fileno())]
        parent = subprocess.Popen(command, cwd=_ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    atexit.register(_end, ours, parent)
    return ours, parent


def _end(requests: socket.socket, parent: subprocess.Popen[bytes]) -> None:
    requests.close()
    parent.kill()
    parent.wait()


def _serve(requests: socket.socket) -> None:
    """Fork a process for each request and report its exit code, until the other end is closed."""
    deaths, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reporting: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([requests, deaths], [], [])
        if deaths in readable:
            os.read(deaths, 4096)
            _report_ends(reporting)
        if requests not in readable:
            continue
        request, files, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not request:
            return
        if (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            for file in (deaths, waking, *reporting.values()):
                os.close(file)
            _become(request, *files)
        *streams, reporting[pid] = files
        for file in streams:
            os.close(file)


def _report_ends(reporting: dict[int, int]) -> None:
    """Report the exit codes of the processes that ended."""
    while reporting:
        pid, code = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        status = reporting.pop(pid)
        with suppress(BrokenPipeError):
            os.write(status, _NUMBER.pack(os.waitstatus_to_exitcode(code)))
        os.close(status)


def _become(request: bytes, stdin: int, output: int, errors: int, status: int) -> None:
    """Report the id of this process, and be the process that was requested."""
    os.setsid()
    os.write(status, _NUMBER.pack(os.getpid()))
    os.close(status)
    for number, file in enumerate((stdin, output, errors)):
        os.dup2(file, number)
        os.close(file)
    _main(*json.loads(request))


def _main(arguments: list[str], environment: dict[str, str], folder: str, memory: int) -> None:
    """Run the module in this process, and end it."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    code: object = 0
    try:
        _MODULES[arguments[0]](arguments[1:])
    except SystemExit as ending:
        code = ending.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - the interpreter would print it too
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def _import_all() -> None:
    """Import what the processes need, with the SDKs that they import when they need a model or GitHub."""

    import markdown_it  # noqa: F401
    import openai.resources.chat.completions  # noqa: F401

    import bot.app
    import bot.cli.bouncers
    import bot.cli.review
    import bot.cli.web
    import bot.github.app
    import bot.github.archive
    import bot.github.offline
    import bot.github.reader
    import bot.models.openai
    import bot.models.recorded
    import bot.pipeline.publisher
    import bot.pipeline.runner
    import bot.pipeline.worker
    import bot.reproduction.pipeline
    import bot.reproduction.setup
    import bot.sandbox.bubblewrap
    import bot.web.app
    import bot.web.dashboard.acting
    import bot.web.dashboard.reading
    import bot.web.server  # noqa: F401

    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import_all()
    _serve(socket.socket(fileno=int(sys.argv[1])))
