"""Reading files that somebody named without trusting them to end."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def regular(path: Path) -> Iterator[IO[bytes]]:
    """A regular file, opened for reading; a pipe or a device, which may never end, is an OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        yield stream


def complete(stream: IO[bytes], path: Path, max_bytes: int) -> bytes:
    """What is left in a stream of ``path``; OSError where that is more than ``max_bytes``."""
    data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", str(path))
    return data


def read_file(path: Path, max_bytes: int) -> bytes:
    """The bytes of a regular file. Raises OSError, also where it is none or holds more than ``max_bytes``."""
    with regular(path) as stream:
        return complete(stream, path, max_bytes)
