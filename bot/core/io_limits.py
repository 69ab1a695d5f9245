"""Limits on files: capped reads, and temporary folders that a killed process does not leave behind."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: A temporary folder this young may not have its lock yet, seconds.
_YOUNG = 60.0


@contextmanager
def regular(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file for reading. Raises OSError for a pipe or a device, which may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield stream


def complete(stream: IO[bytes], path: Path, max_bytes: int) -> bytes:
    """Read the rest of a stream of ``path``. Raises OSError if it is longer than ``max_bytes``."""
    data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", str(path))
    return data


def read_file(path: Path, max_bytes: int) -> bytes:
    """Read a regular file. Raises OSError, also if it is another kind or holds more than ``max_bytes``."""
    with regular(path) as stream:
        return complete(stream, path, max_bytes)


def changed_at(path: Path) -> float:
    """Return when a file or folder was changed last, in seconds since 1970; 0 if it is not there."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@contextmanager
def leased(place: Path, prefix: str) -> Iterator[Path]:
    """Make a locked temporary folder below ``place`` and remove it after the block.

    Unlocked folders of this user with the same prefix, left by killed processes, are removed first.
    """
    for leftover in place.glob(f"{prefix}*"):
        with suppress(OSError):
            _remove_if_left(leftover)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(descriptor)


def _remove_if_left(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        facts = os.fstat(descriptor)
        if facts.st_uid == os.geteuid() and time.time() - facts.st_mtime > _YOUNG:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
