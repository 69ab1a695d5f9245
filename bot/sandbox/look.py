"""Which limit a running sandbox breaks, as far as the kernel does not enforce it by itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from bot.sandbox import processes
from bot.sandbox.protocol import Ending, Limits
from bot.sandbox.view import WRITABLE_MOUNTS

#: Seconds between two measurements of the writable host folders of a set-up.
_DISK_TICK = 1.0


class WrittenFolders:
    """Host folders that a set-up writes to; what they hold counts against ``Limits.disk_bytes``."""

    def __init__(self, folders: Sequence[Path], limits: Limits) -> None:
        self._folders = folders
        self._limits = limits
        self._next = time.monotonic() + _DISK_TICK

    def __call__(self) -> Ending | None:
        if not self._folders or time.monotonic() < self._next:
            return None
        used = sum(processes.written(folder) for folder in self._folders)
        self._next = time.monotonic() + _DISK_TICK
        return "disk" if used > self._limits.disk_bytes else None


class ProcessTree:
    """The processes below ``pid``: memory together, and ``entries`` in each writable file system."""

    def __init__(self, pid: int, limits: Limits, entries: int) -> None:
        self._pid = pid
        self._limits = limits
        self._entries = entries

    def __call__(self) -> Ending | None:
        pids = processes.descendants(self._pid)
        if processes.memory(pids, self._limits.memory_bytes) > self._limits.memory_bytes:
            return "memory"
        # The last one was born inside: the first still sees the host's file systems.
        if any(processes.entries(pids[-1], mount) > self._entries for mount in WRITABLE_MOUNTS):
            return "disk"
        return None
