"""How a work folder travels into a sandbox and named files come back out: as tar, never by a path of the host."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from bot.errors import SandboxError
from bot.sandbox.protocol import TREE_BYTES

_PAGE = 4096
#: Of a checkout, its history stays outside: it is large, and its configuration may hold a token.
_LEFT_OUT = ".git"


@dataclass(frozen=True)
class WorkArchive:
    """A work folder as an open archive, at its beginning."""

    stream: IO[bytes]
    size: int  # what the unpacked files take in memory pages, bytes


def pack(workdir: Path, files: Mapping[str, str]) -> WorkArchive:
    """Archive ``workdir`` with ``files`` on top, in a nameless temporary file.

    Raises SandboxError where it cannot be read, is over TREE_BYTES, or a path leads outside.
    """
    top = _archive(files)
    size = _tree_size(workdir)
    if size > TREE_BYTES:
        raise SandboxError(f"{workdir} holds {size >> 20} MiB: more than {TREE_BYTES >> 20} MiB is not copied")
    stream = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it with the run
    try:
        _write(workdir, stream)
    except SandboxError:
        stream.close()
        raise
    stream.seek(0, os.SEEK_END)
    stream.write(top)
    stream.flush()
    stream.seek(0)
    return WorkArchive(stream, size + sum(_pages(len(text) * 4) for text in files.values()))


def _write(workdir: Path, stream: IO[bytes]) -> None:
    command = ["tar", "-c", "-f", "-", "-C", str(workdir), f"--exclude=./{_LEFT_OUT}", "."]
    try:
        done = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, check=False)  # noqa: S603
    except FileNotFoundError as error:
        raise SandboxError("the program tar is missing") from error
    if done.returncode > 1:  # 1: a file changed while it was read
        raise SandboxError(f"{workdir} cannot be copied: {done.stderr.decode(errors='replace').strip()}")


def _tree_size(workdir: Path) -> int:
    try:
        return sum(_folder_sizes(workdir))
    except OSError as error:
        raise SandboxError(f"{workdir} cannot be read: {error}") from error


def _folder_sizes(workdir: Path) -> Iterator[int]:
    def refuse(error: OSError) -> None:
        raise error

    for folder, folders, names, descriptor in os.fwalk(workdir, onerror=refuse):
        if Path(folder) == workdir and _LEFT_OUT in folders:
            folders.remove(_LEFT_OUT)
        yield _PAGE
        for name in names:
            facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            yield _pages(facts.st_size) if stat.S_ISREG(facts.st_mode) else _PAGE


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _archive(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, text in files.items():
            data = _bytes(text)
            entry = tarfile.TarInfo(relative(name))
            entry.size, entry.mode, entry.mtime = len(data), 0o644, int(time.time())
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _bytes(text: str) -> bytes:
    """UTF-8; bytes that were no UTF-8 when the text was read come back as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def relative(name: str) -> str:
    """``name`` where it is a plain path below the work folder. Raises SandboxError otherwise."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name or "\n" in name:
        raise SandboxError(f"{name!r} is no path below the work folder")
    return str(path)


def unpack(data: bytes, names: Sequence[str]) -> dict[str, str]:
    """Text of those ``names`` that an archive made inside the sandbox holds as regular files.

    The archive is untrusted: members under other names, links and devices are ignored, and an archive that is
    cut or malformed gives what could be read of it.
    """
    wanted = {relative(name): name for name in names}
    found: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:", ignore_zeros=True) as archive:
            for member in archive:
                name = wanted.get(str(PurePosixPath(member.name)))
                whole = member.isreg() and not member.issparse()  # holes take no room before they are read
                stream = archive.extractfile(member) if name is not None and whole else None
                if name is not None and stream is not None:
                    found[name] = stream.read().decode("utf-8", "replace")
    except (tarfile.TarError, OSError, ValueError, EOFError, RecursionError):
        return found
    return found
