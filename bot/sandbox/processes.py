"""What a process and all its descendants use, read from ``/proc``.

Control groups would count the same in the kernel, but only where the worker may create some; this holds everywhere
and for every user. Between two looks a program can run ahead by what it can touch in ``TICK`` seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


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
    over ``enough``, the proportional sets decide (every shared page divided among its users).
    """
    resident = sum(_resident(pid) for pid in pids)
    return resident if resident <= enough else sum(_proportional(pid) for pid in pids)


def _resident(pid: int) -> int:
    text = _read(pid, "statm")
    return int(text.split()[1]) * _PAGE if text else 0


def _proportional(pid: int) -> int:
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return _resident(pid)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def entries(pid: int, folder: str) -> int:
    """Files and folders in the file system that ``pid`` sees mounted at ``folder``; 0 where it is gone."""
    try:
        facts = os.statvfs(f"/proc/{pid}/root{folder}")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return facts.f_files - facts.f_ffree


def written(folder: Path) -> int:
    """Bytes that the files below ``folder`` take, links not followed; what vanishes meanwhile counts nothing."""
    total = 0
    for _, _, names, descriptor in os.fwalk(folder):
        for name in names:
            try:
                total += os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:
                continue
    return total
