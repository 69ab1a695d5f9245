"""Which limit a running sandbox breaks, as far as the kernel does not enforce it by itself; read from ``/proc``.

Control groups would count most of this in the kernel, but only where the worker may create some; this holds
everywhere and for every user. Between two looks a program can run ahead by what it can touch in one tick.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.sandbox.mounts import WRITABLE_MOUNTS
from bot.sandbox.protocol import Ending, Limits

_PAGE = os.sysconf("SC_PAGE_SIZE")
#: Seconds between two measurements of the writable host folders of a set-up.
_DISK_TICK = 1.0
#: What one socket may hold back unread, bytes: the kernel's default buffers, both ways.
_SOCKET = 2 * 212_992
#: A mapping of shared memory without a file: ``start-end rw-s offset dev inode /dev/zero (deleted)``.
_SHARED = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) ...s \S+ \S+ (\d+) +(?:/dev/zero|/memfd:|/SYSV).*\(deleted\)$", re.MULTILINE
)


class WrittenFolders:
    """Host folders that a set-up writes to; what they hold counts against ``Limits.disk_bytes``."""

    def __init__(self, folders: Sequence[Path], limits: Limits) -> None:
        self._folders = folders
        self._limits = limits
        self._next = time.monotonic() + _DISK_TICK

    def __call__(self) -> Ending | None:
        if not self._folders or time.monotonic() < self._next:
            return None
        used = sum(written(folder) for folder in self._folders)
        self._next = time.monotonic() + _DISK_TICK
        return "disk" if used > self._limits.disk_bytes else None


class ProcessTree:
    """The processes below ``pid``: memory together, and ``entries`` in each writable file system."""

    def __init__(self, pid: int, limits: Limits, entries: int) -> None:
        self._pid = pid
        self._limits = limits
        self._entries = entries

    def __call__(self) -> Ending | None:
        pids = descendants(self._pid)
        if memory(pids, self._limits.memory_bytes) > self._limits.memory_bytes:
            return "memory"
        # The last one was born inside: the first still sees the host's file systems and network.
        if sockets(pids[-1]) * _SOCKET > self._limits.memory_bytes:
            return "memory"
        if any(entries(pids[-1], mount) > self._entries for mount in WRITABLE_MOUNTS):
            return "disk"
        return None


def descendants(pid: int) -> tuple[int, ...]:
    """``pid`` and every living descendant, parents first."""
    found = [pid]
    for parent in found:
        found.extend(_children(parent))
    return tuple(found)


def _children(pid: int) -> Iterator[int]:
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (task / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):  # it ended while it was looked at
        return


def memory(pids: tuple[int, ...], enough: int) -> int:
    """Memory in use, bytes; exact only where it may exceed ``enough``.

    Resident sets count shared pages once a process, which is cheap and never too little; where their sum is
    over ``enough``, the proportional sets decide (every shared page divided among its users). Shared memory
    without a file stays when a process lets its pages go, so there the size of the mapping counts, once each.
    """
    sizes = [_sizes(pid) for pid in pids]
    resident = sum(each for _, each in sizes)
    if resident > enough:
        resident = sum(_proportional(pid) for pid in pids)
    if resident > enough or max((virtual for virtual, _ in sizes), default=0) <= enough // 4:
        return resident
    return max(resident, _shared(pids))


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


def sockets(pid: int) -> int:
    """Sockets in the network that ``pid`` sees, those that no process holds any more included."""
    words = _read(pid, "net/sockstat").split(maxsplit=3)
    return int(words[2]) if len(words) > 2 else 0


def entries(pid: int, folder: str) -> int:
    """Files and folders in the file system that ``pid`` sees mounted at ``folder``; 0 where it is gone."""
    try:
        facts = os.statvfs(f"/proc/{pid}/root{folder}")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return facts.f_files - facts.f_ffree


def written(folder: Path) -> int:
    """Bytes that the files below ``folder`` take, links not followed; what vanishes meanwhile counts nothing.

    Counted by ``du``: a tree that a program made may be deeper than Python's own walk can go.
    """
    command = ["du", "--summarize", "--block-size=1", "--one-file-system", "--", str(folder)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    return int(done.stdout.split(b"\t", 1)[0] or 0)
