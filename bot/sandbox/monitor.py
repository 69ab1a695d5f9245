"""Monitors a running sandbox from outside: reads what it prints, ends it at the first limit that it breaks."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.errors import SandboxError
from bot.sandbox.launch import READY
from bot.sandbox.protocol import COLLECT_BYTES, Ending, Limits, ProgramResult

#: Seconds between two looks at what the processes use.
TICK = 0.02
#: Seconds that unpacking the work folder may take.
_PREPARATION = 120.0
#: Seconds that a killed sandbox gets to vanish.
_FAREWELL = 10.0
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Observation:
    """What a sandbox did, as seen from outside."""

    ready: bool  # the program was started; otherwise ``output`` says what the runner complained about
    ending: Ending | None  # the limit that ended it, None where it ended by itself
    exit_code: int  # of the runner; negative signal number where the runner itself was killed
    output: bytes  # at most Limits.output_bytes
    collected: bytes  # the archive of collected files; empty where it was cut
    seconds: float  # from the program's start to its end

    def result(self, argv: Sequence[str], files: Mapping[str, str]) -> ProgramResult:
        """What is recorded of running ``argv``. Pure."""
        status = 128 - self.exit_code if self.exit_code < 0 else self.exit_code  # a shell's way to tell a signal
        ending = self.ending or _own_ending(status)
        return ProgramResult(
            argv=tuple(argv),
            ending=ending,
            exit_code=status if ending in ("exited", "killed") else None,
            output=_text(self.output.decode("utf-8", "replace")),
            seconds=round(self.seconds, 6),
            files={name: _text(text) for name, text in files.items()},
        )


def _own_ending(status: int) -> Ending:
    if status == 128 + signal.SIGXCPU:  # the kernel's answer to too much CPU time
        return "timeout"
    return "killed" if status == 128 + signal.SIGKILL else "exited"


def _text(text: str) -> str:
    # A database column of text takes no NUL.
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


@dataclass
class Monitor:
    """One run of ``process``, whose standard output and error are pipes.

    ``look`` names the limit that the program's use of the machine breaks now, and ``stop`` ends the sandbox at
    once, with everything in it.
    """

    process: subprocess.Popen[bytes]
    limits: Limits
    look: Callable[[], Ending | None]
    stop: Callable[[], None]

    def __post_init__(self) -> None:
        self._control = bytearray()
        self._output = bytearray()
        self._flooded = False
        self._ready_at: float | None = None
        self._deadline = time.monotonic() + _PREPARATION
        self._next_look = 0.0

    def run(self) -> Observation:
        """Read until the sandbox ends or is ended. Raises SandboxError where it cannot be ended."""
        ending: Ending | None = None
        with selectors.DefaultSelector() as selector:
            for stream, sink in ((self.process.stdout, self._hear), (self.process.stderr, self._print)):
                assert stream is not None
                selector.register(stream, selectors.EVENT_READ, sink)
            while ending is None and self._read(selector, TICK):
                ending = self._broken()
            ended_at = time.monotonic()
            if ending is not None:
                self.stop()
                self._drain(selector)
        return self._seen(ending, ended_at)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        deadline = time.monotonic() + _FAREWELL
        while self._read(selector, TICK):
            if time.monotonic() > deadline:
                raise SandboxError("the sandbox was killed and does not end")

    def _seen(self, ending: Ending | None, ended_at: float) -> Observation:
        try:
            code = self.process.wait(_FAREWELL)
        except subprocess.TimeoutExpired as error:
            self.stop()
            raise SandboxError("the sandbox closed its output and does not end") from error
        collected = bytes(self._control[len(READY) :])
        return Observation(
            ready=self._ready_at is not None,
            ending=ending,
            exit_code=code,
            output=bytes(self._output[: self.limits.output_bytes]),
            collected=collected if len(collected) <= COLLECT_BYTES else b"",
            seconds=max(0.0, ended_at - (self._ready_at or ended_at)),
        )

    def _read(self, selector: selectors.BaseSelector, wait: float) -> bool:
        """Take in what has come; False once both streams are at their end."""
        for key, _ in selector.select(wait):
            data = os.read(key.fd, _CHUNK)
            if data:
                key.data(data)
            else:
                selector.unregister(key.fileobj)
        return bool(selector.get_map())

    def _hear(self, data: bytes) -> None:
        if len(self._control) <= COLLECT_BYTES + len(READY):
            self._control += data
        if self._ready_at is None and self._control.startswith(READY):
            self._ready_at = time.monotonic()
            self._deadline = self._ready_at + self.limits.seconds

    def _print(self, data: bytes) -> None:
        room = self.limits.output_bytes - len(self._output)
        self._output += data[: max(0, room)]
        self._flooded = self._flooded or len(data) > room

    def _broken(self) -> Ending | None:
        now = time.monotonic()
        if self._flooded:
            return "output"
        if now > self._deadline:
            return "timeout"
        if self._ready_at is None or now < self._next_look:
            return None
        self._next_look = now + TICK
        return self.look()
