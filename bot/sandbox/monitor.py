"""Monitors a running sandbox from outside: reads its output, ends it at the first limit that it exceeds.

Usage that the kernel does not limit is read from ``/proc``. Control groups would count most of it in the kernel,
but many workers may not create them; this works for every user. Between two checks a program can exceed a limit by
what it can allocate in one tick.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bot.core.errors import SandboxError
from bot.sandbox.launch import READY, unpack
from bot.sandbox.mounts import WRITABLE_MOUNTS
from bot.sandbox.protocol import COLLECT_BYTES, Ending, Limits, ProgramResult, ProgramRun

#: Seconds between two checks of the processes' usage.
TICK = 0.02
#: Seconds that unpacking the work folder may take.
_PREPARATION = 120.0
#: Seconds for a killed sandbox to end.
_END_SECONDS = 10.0
_CHUNK = 1 << 16
_PAGE = os.sysconf("SC_PAGE_SIZE")
#: Seconds between two measurements of the writable host folders of a set-up.
_DISK_TICK = 1.0
#: Unread data that one socket may hold, bytes: the kernel's default buffers, both ways.
_SOCKET = 2 * 212_992
#: A mapping of shared memory without a file: ``start-end rw-s offset dev inode /dev/zero (deleted)``.
_SHARED = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) ...s \S+ \S+ (\d+) +(?:/dev/zero|/memfd:|/SYSV).*\(deleted\)$", re.MULTILINE
)
#: The place of the launcher among the processes of a sandbox, after bubblewrap's two. It sees what the program
#: sees, and the sandbox ends with it; a process of the program's may have ended and still be listed.
_LAUNCHER = 2
_PAGE_TABLES = re.compile(r"^VmPTE:\s+(\d+) kB$", re.MULTILINE)
#: Bytes of disk for each inode on an ext4 file system with default settings.
_INODE_RATIO = 16 << 10


def _without_nul(text: str) -> str:
    # A database column of text takes no NUL.
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


@dataclass
class Monitor:
    """One run of ``process`` for a request, whose standard output and error are pipes.

    The contents of the host folders in ``writable`` count against ``Limits.disk_bytes``. ``check_usage`` returns
    the limit that the program exceeds now, and ``stop`` kills the whole sandbox.
    """

    process: subprocess.Popen[bytes]
    request: ProgramRun
    writable: Sequence[Path]
    stop: Callable[[], None]
    check_usage: Callable[[], Ending | None] = lambda: None

    def __post_init__(self) -> None:
        self.limits = self.request.limits
        self._control = bytearray()
        self._output = bytearray()
        self._is_flooded = False
        self._ready_at: float | None = None
        self._deadline = time.monotonic() + _PREPARATION
        self._next_check = 0.0
        self._next_measurement = time.monotonic() + _DISK_TICK

    @property
    def is_ready(self) -> bool:
        """True if the program was started; otherwise its output is the runner's error."""
        return self._ready_at is not None

    def run(self) -> ProgramResult:
        """Read until the sandbox ends or is ended. Raises SandboxError if it cannot be ended."""
        ending: Ending | None = None
        with selectors.DefaultSelector() as selector:
            sinks = ((self.process.stdout, self._add_control), (self.process.stderr, self._add_output))
            for stream, sink in sinks:
                assert stream is not None
                selector.register(stream, selectors.EVENT_READ, sink)
            while ending is None and self._read(selector, TICK):
                ending = self._exceeded_limit()
            ended_at = time.monotonic()
            if ending is None:
                # A short run may end between two measurements.
                ending = self._exceeded_disk()
            else:
                self.stop()
                while self._read(selector, TICK):
                    if time.monotonic() > ended_at + _END_SECONDS:
                        raise SandboxError("the sandbox was killed and does not end")
        return self._result(ending, ended_at)

    def _result(self, ending: Ending | None, ended_at: float) -> ProgramResult:
        try:
            code = self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.stop()
            raise SandboxError("the sandbox closed its output and does not end") from error
        status = 128 - code if code < 0 else code  # as a shell reports a signal
        if ending is None and status == 128 + signal.SIGXCPU:
            ending = "timeout"  # the kernel's answer to too much CPU time
        elif ending is None:
            ending = "killed" if status == 128 + signal.SIGKILL else "exited"
        collected = bytes(self._control[len(READY) :])
        files = unpack(collected, self.request.collect) if len(collected) <= COLLECT_BYTES else {}
        return ProgramResult(
            ending=ending,
            exit_code=status if ending in ("exited", "killed") else None,
            output=_without_nul(self._output[: self.limits.output_bytes].decode("utf-8", "replace")),
            seconds=round(max(0.0, ended_at - (self._ready_at or ended_at)), 6),
            files={name: _without_nul(text) for name, text in files.items()},
        )

    def _read(self, selector: selectors.BaseSelector, wait: float) -> bool:
        """Read available data. Return False when both streams are at their end."""
        for key, _ in selector.select(wait):
            data = os.read(key.fd, _CHUNK)
            if data:
                key.data(data)
            else:
                selector.unregister(key.fileobj)
        return bool(selector.get_map())

    def _add_control(self, data: bytes) -> None:
        if len(self._control) <= COLLECT_BYTES + len(READY):
            self._control += data
        if self._ready_at is None and self._control.startswith(READY):
            self._ready_at = time.monotonic()
            self._deadline = self._ready_at + self.limits.seconds

    def _add_output(self, data: bytes) -> None:
        room = self.limits.output_bytes - len(self._output)
        self._output += data[: max(0, room)]
        self._is_flooded = self._is_flooded or len(data) > room

    def _exceeded_limit(self) -> Ending | None:
        now = time.monotonic()
        if self._is_flooded:
            return "output"
        if now > self._deadline:
            return "timeout"
        if self._ready_at is None or now < self._next_check:
            return None
        self._next_check = now + TICK
        return self.check_usage() or (self._exceeded_disk() if now >= self._next_measurement else None)

    def _exceeded_disk(self) -> Ending | None:
        """Return "disk" if the writable host folders hold too much."""
        contents = [measure(folder) for folder in self.writable]
        self._next_measurement = time.monotonic() + _DISK_TICK
        full = sum(content.bytes for content in contents) > self.limits.disk_bytes
        return "disk" if full or any(content.entries > self.limits.entries for content in contents) else None


def exceeded_usage(pid: int, limits: Limits) -> Ending | None:
    """Return the limit that the processes below ``pid`` exceed: total memory, or entries on disk."""
    pids = descendants(pid)
    if _memory(pids, limits.memory_bytes) > limits.memory_bytes:
        return "memory"
    if len(pids) <= _LAUNCHER:
        return None
    launcher = pids[_LAUNCHER]
    # Sockets count that no process holds any more.
    words = _read(launcher, "net/sockstat").split(maxsplit=3)
    if len(words) > 2 and int(words[2]) * _SOCKET > limits.memory_bytes:
        return "memory"
    if any(_entries(launcher, mount) > limits.entries for mount in WRITABLE_MOUNTS):
        return "disk"
    return None


def descendants(pid: int) -> tuple[int, ...]:
    """``pid`` and every living descendant, parents first."""
    pids = [pid]
    for parent in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # the process ended in between
            for task in Path(f"/proc/{parent}/task").iterdir():
                pids.extend(map(int, (task / "children").read_text().split()))
    return tuple(pids)


def _memory(pids: tuple[int, ...], enough: int) -> int:
    """Return the memory in use, bytes; exact only if it may exceed ``enough``.

    Resident sets count shared pages once a process, which is cheap and never too little; if their sum is
    over ``enough``, the proportional sets decide (every shared page divided among its users). Page tables are
    in no set and are added. Shared memory without a file stays when a process releases its pages, so the size
    of each mapping counts once.
    """
    pids = tuple(map(_with_memory, pids))
    sizes = [_sizes(pid) for pid in pids]
    # Reading one byte in 2 MiB of address space costs 4 KiB of page tables and nothing elsewhere.
    tables = sum(1024 * int(size) for pid in pids for size in _PAGE_TABLES.findall(_read(pid, "status")))
    resident = sum(size for _, size in sizes) + tables
    if resident > enough:
        resident = sum(_proportional(pid) for pid in pids) + tables
    if resident > enough or max((virtual for virtual, _ in sizes), default=0) <= enough // 4:
        return resident
    return max(resident, _shared(pids))


def _with_memory(pid: int) -> int:
    """Return a thread of a process that shows the process's memory: one that has ended shows none."""
    if any(_sizes(pid)):
        return pid
    with suppress(FileNotFoundError, ProcessLookupError):
        threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
        return next((thread for thread in threads if any(_sizes(thread))), pid)
    return pid


def _sizes(pid: int) -> tuple[int, int]:
    """Address space and resident set, bytes."""
    words = _read(pid, "statm").split()
    return (int(words[0]) * _PAGE, int(words[1]) * _PAGE) if words else (0, 0)


def _proportional(pid: int) -> int:
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return _sizes(pid)[1]


def _shared(pids: tuple[int, ...]) -> int:
    mappings: dict[tuple[str, str, str], int] = {}
    for pid in pids:
        for start, end, inode in _SHARED.findall(_read(pid, "maps")):
            mappings[inode, start, end] = int(end, 16) - int(start, 16)
    return sum(mappings.values())


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def _entries(pid: int, folder: str) -> int:
    """Count the files and folders in the file system of ``pid`` at ``folder``; 0 if the process has ended."""
    try:
        facts = os.statvfs(f"/proc/{pid}/root{folder}")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return facts.f_files - facts.f_ffree


class Contents(NamedTuple):
    """Size of a folder and everything below it."""

    bytes: int
    entries: int

    @property
    def cost(self) -> int:
        """Return the share of the disk in bytes: every entry uses an inode."""
        return max(self.bytes, self.entries * _INODE_RATIO)


def measure(folder: Path) -> Contents:
    """Measure ``folder`` with ``du``; a program may make a tree too deep for Python's own walk.

    Links are not followed. Files that are removed during the run are not counted. Every hard link is an entry.
    """
    return Contents(_du(folder, "--block-size=1"), _du(folder, "--inodes", "--count-links"))


def _du(folder: Path, *options: str) -> int:
    command = ["du", "--summarize", *options, "--one-file-system", "--", str(folder)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    return int(done.stdout.split(b"\t", 1)[0] or 0)
