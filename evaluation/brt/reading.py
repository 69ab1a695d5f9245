"""Reading single files of a checkout, which is a stranger's: links in it lead nowhere."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from evaluation.brt.patching import PatchRejected

#: The largest file that a candidate may change, bytes.
_MAX_FILE = 8 << 20


def read_text(root: Path, path: str) -> str | None:
    """The text of ``path`` below ``root``, None where there is no such file; odd bytes survive as surrogates.

    Raises PatchRejected where it is no regular file, lies behind a link, or is too large.
    """
    try:
        data = _read(root, PurePosixPath(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PatchRejected(f"{path}: {error.strerror}") from error
    if len(data) > _MAX_FILE:
        raise PatchRejected(f"{path}: over {_MAX_FILE >> 20} MiB")
    return data.decode("utf-8", "surrogateescape")


def _read(root: Path, path: PurePosixPath) -> bytes:
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        for part in path.parts[:-1]:
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    with os.fdopen(file, "rb") as stream:
        return stream.read(_MAX_FILE + 1)
