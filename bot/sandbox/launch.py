"""The launcher of every sandbox: the archive that goes in, the shell script, the files that come out.

A short POSIX shell script unpacks, sets limits, runs the program and returns files. The protocol with the worker
is the same for every runner. Standard input is a tar archive of the work folder, never a path of the host;
standard error is everything that the program prints; standard output belongs to the launcher alone and carries
``READY``, then after the program's end a tar archive of the collected files. The program can disturb this protocol
(it runs as the same user), but that affects only its own result.
"""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from bot.core.errors import SandboxError
from bot.sandbox.protocol import TREE_BYTES, WORKDIR, ProgramRun

#: Printed once everything is in place and the program is about to start.
READY = b"ready\n"

#: Address space of a process, bytes: its page tables take 128 MiB. A JVM without options reserves 9 GiB.
ADDRESS_SPACE = 64 << 30
#: Open files of a process: pipes hold data that belongs to no process.
DESCRIPTORS = 4096
_PAGE = 4096
#: The history of a checkout is not copied: it is large, and its configuration may hold a token.
_EXCLUDED = ".git"

#: Base of the program's environment.
ENVIRONMENT: Mapping[str, str] = {
    "HOME": "/tmp",  # noqa: S108 - a path inside the sandbox
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TMPDIR": "/tmp",  # noqa: S108
    "TZ": "UTC",
    "USER": "sandbox",
}

# The limit on processes is spelt -u or -p, depending on the shell; the empty word sets none. /dev/null is no
# terminal and no pipe: a program that asks a question gets an end of file.
_SCRIPT = """\
set -eu
exec 3>&1 1>&2
cd "$1"
processes=$2 cpu=$3 file=$4 data=$5 space=$6 descriptors=$7 collect=$8
shift 8
umask 022
tar -x -i -p -o -f -
ulimit -c 0
ulimit -d "$data"
ulimit -v "$space"
ulimit -f "$file"
ulimit -n "$descriptors" 2>/dev/null || :
ulimit -S -t "$cpu"
ulimit -H -t "$((cpu + 1))"
if [ -n "$processes" ]; then
    ulimit -u "$processes" 2>/dev/null || ulimit -p "$processes"
fi
printf 'ready\\n' >&3
code=0
(
    shift "$collect"
    exec env -i -- "$@" </dev/null 3>&-
) || code=$?
while [ "$collect" -gt 0 ]; do
    if [ -f "$1" ] && [ ! -L "$1" ]; then tar -c -f - "./$1" >&3 2>/dev/null || :; fi
    shift
    collect=$((collect - 1))
done
exit "$code"
"""


def launch(request: ProgramRun, path: str, tree: int, *, processes: bool) -> tuple[str, ...]:
    """Return the command that a runner starts to run the requested program.

    ``path``: PATH inside. ``tree``: size of the work folder's own files, bytes.
    ``processes``: the launcher limits processes (per user), for a runner that does not count them itself.
    """
    limits, variables = request.limits, {**ENVIRONMENT, "PATH": path, **request.env}
    return (
        "/bin/sh",
        "-c",
        _SCRIPT,
        "launch",
        WORKDIR,
        str(limits.processes) if processes else "",
        str(limits.cpu_seconds),
        str(max(1, (tree + limits.disk_bytes) // 512)),
        # A backstop per process far above the watched sum: untouched reservations are no memory yet.
        str(limits.memory_bytes * 4 // 1024),
        str(ADDRESS_SPACE // 1024),
        str(DESCRIPTORS),
        str(len(request.collect)),
        *map(_relative, request.collect),
        *(f"{name}={value}" for name, value in variables.items()),
        # To env, a first word with "=" in it would be one more variable and the next word the program.
        *("/bin/sh", "-c", 'exec "$@"', "sh"),
        *request.argv,
    )


@dataclass(frozen=True)
class WorkArchive:
    """A work folder as an open archive, at its beginning."""

    stream: IO[bytes]
    size: int  # size of the unpacked files in memory pages, bytes


def pack(workdir: Path, files: Mapping[str, str]) -> WorkArchive:
    """Archive ``workdir`` with ``files`` on top, in a nameless temporary file.

    Raises SandboxError if it cannot be read, is over TREE_BYTES, or a path leads outside.
    """
    top = _archive(files)
    try:
        size = sum(_folder_sizes(workdir.resolve()))  # a walk does not enter a link
    except OSError as error:
        raise SandboxError(f"{workdir} cannot be read: {error}") from error
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
    command = ["tar", "-c", "-f", "-", "-C", str(workdir), f"--exclude=./{_EXCLUDED}", "."]
    try:
        done = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, check=False)  # noqa: S603
    except FileNotFoundError as error:
        raise SandboxError("the program tar is missing") from error
    if done.returncode > 1:  # 1: a file changed while it was read
        raise SandboxError(f"{workdir} cannot be copied: {done.stderr.decode(errors='replace').strip()}")


def _folder_sizes(workdir: Path) -> Iterator[int]:
    def refuse(error: OSError) -> None:
        raise error

    for folder, folders, names, descriptor in os.fwalk(workdir, onerror=refuse):
        if Path(folder) == workdir and _EXCLUDED in folders:
            folders.remove(_EXCLUDED)
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
            try:
                # Bytes that were not UTF-8 when the text was read are restored.
                data = text.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                data = text.encode("utf-8", "surrogatepass")
            entry = tarfile.TarInfo(_relative(name))
            entry.size, entry.mode, entry.mtime = len(data), 0o644, int(time.time())
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _relative(name: str) -> str:
    """Return ``name`` if it is a plain path below the work folder. Raises SandboxError otherwise."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name or "\n" in name:
        raise SandboxError(f"{name!r} is no path below the work folder")
    return str(path)


def unpack(data: bytes, names: Sequence[str]) -> dict[str, str]:
    """Return the text of ``names`` that an archive from the sandbox holds as regular files.

    The archive is untrusted: members under other names, links and devices are ignored, and a cut or malformed
    archive gives the files that could be read.
    """
    names_by_path = {_relative(name): name for name in names}
    texts: dict[str, str] = {}
    with (
        suppress(tarfile.TarError, OSError, ValueError, EOFError, RecursionError),
        tarfile.open(fileobj=io.BytesIO(data), mode="r:", ignore_zeros=True) as archive,
    ):
        for member in archive:
            name = names_by_path.get(str(PurePosixPath(member.name)))
            whole = member.isreg() and not member.issparse()  # holes take no room before they are read
            stream = archive.extractfile(member) if name is not None and whole else None
            if name is not None and stream is not None:
                texts[name] = stream.read().decode("utf-8", "replace")
    return texts
