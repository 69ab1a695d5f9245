"""Temporary folders that do not outlive a killed process for long."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: A folder this young may not have its lock yet, seconds.
_YOUNG = 60.0


@contextmanager
def leased(place: Path, prefix: str) -> Iterator[Path]:
    """A folder below ``place`` for this block, locked while it lasts.

    What processes that were killed left there under the same prefix goes first: folders of this user that nobody
    holds a lock on.
    """
    for left in place.glob(f"{prefix}*"):
        with suppress(OSError):
            _remove_if_left(left)
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
