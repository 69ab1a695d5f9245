"""Folders of the host that a program sees: a fixed list, the operator's, and its caller's.

Files that a repository or a set-up step wrote never decide this list.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bot.core.errors import SandboxError
from bot.sandbox.launch import ENVIRONMENT
from bot.sandbox.protocol import WORKDIR, Limits

#: Parts of /etc that programs and libraries need to start, without the host's accounts, keys and configuration.
#: The links in ``alternatives`` are followed inside the sandbox, so they lead only to the system.
_ETC = (
    "ld.so.cache", "alternatives", "localtime", "mime.types", "protocols", "services", "ssl/certs",
    "ssl/openssl.cnf", "pki/tls/certs", "fonts", "java-8-openjdk", "java-11-openjdk", "java-17-openjdk",
    "java-21-openjdk", "java-25-openjdk",
    # Not Maven's settings.xml, which may hold passwords of an operator's servers.
    "maven/m2.conf", "maven/logging",
)  # fmt: skip
_STUBS: Mapping[str, str] = {
    "/etc/passwd": "sandbox:x:1000:1000:sandbox:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "/etc/group": "sandbox:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
#: Top-level folders of the system that are links into /usr on most distributions, and folders on others.
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Parts of a Python installation or a virtual environment. Other files beside them (a project, an operator's .env,
#: a pip.conf with a password) are not shown.
_PYTHON = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
#: Everything that a program can write to.
WRITABLE_MOUNTS = (WORKDIR, "/tmp", "/dev/shm")  # noqa: S108 - paths inside the sandbox


@dataclass
class FileSystem:
    """Builds the file system of one run; ``resources`` closes the descriptors that it opens."""

    resources: ExitStack
    descriptors: list[int] = field(default_factory=list)

    def system(self, nameserver: str | None) -> list[str]:
        """The system's programs and libraries, read-only, and a stub of /etc."""
        arguments = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
        for name in _SYSTEM:
            if Path(name).is_symlink():
                arguments += ["--symlink", str(Path(name).readlink()), name]
            else:
                arguments += ["--ro-bind-try", name, name]
        for name in _ETC:
            arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        # These list names of the worker's keys, even if the keys themselves cannot be read.
        listings = {path: "" for path in ("/proc/keys", "/proc/key-users") if Path(path).exists()}
        resolver = {} if nameserver is None else {"/etc/resolv.conf": f"nameserver {nameserver}\n"}
        for path, text in {**_STUBS, **listings, **resolver}.items():
            arguments += ["--ro-bind-data", str(self.holding(text.encode())), path]
        return arguments

    def holding(self, data: bytes) -> int:
        """Return a descriptor that bwrap reads ``data`` from."""
        descriptor = os.memfd_create("stub")
        self.resources.callback(os.close, descriptor)
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        self.descriptors.append(descriptor)
        return descriptor


def memory(limits: Limits, tree: int) -> list[str]:
    """Mount the writable file systems; ``tree`` is the size of the work folder's own files, bytes."""
    sizes = (tree + limits.disk_bytes // 2, limits.disk_bytes * 3 // 8, limits.disk_bytes // 8)
    arguments: list[str] = []
    for path, size in zip(WRITABLE_MOUNTS, sizes, strict=True):
        arguments += ["--size", str(size), "--tmpfs", path]
    return arguments


def search_path(folders: Sequence[Path]) -> str:
    """Return PATH inside: this interpreter's folder, the operator's ``folders``, the system."""
    own = Path(sys.prefix)
    homes = (*(() if _is_system(own) else (own,)), *folders)
    return os.pathsep.join((*(f"{folder}/bin" for folder in homes), ENVIRONMENT["PATH"]))


@cache
def own_python() -> tuple[Path, ...]:
    """Return the folders of this interpreter: its virtual environment and the base installation."""
    homes = (
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.base_prefix).resolve(),
        Path(sys.executable).resolve().parent.parent,
    )
    return tuple(part for home in dict.fromkeys(homes) for part in python_parts(home))


def python_parts(home: Path) -> tuple[Path, ...]:
    """Return the folders of a Python installation at ``home``; empty if it is the system's, or none."""
    if _is_system(home) or not ((home / "pyvenv.cfg").is_file() or any((home / "lib").glob("python3*"))):
        return ()
    return tuple(home / name for name in _PYTHON if (home / name).exists())


def _is_system(folder: Path) -> bool:
    return folder == Path("/") or any(folder.is_relative_to(system_folder) for system_folder in ("/usr", *_SYSTEM))


def to_mount(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return absolute paths of the host folders to bind, without repetitions and without the system's own.

    Raises SandboxError for a folder that does not exist, and for the root.
    """
    paths = tuple(dict.fromkeys(Path(os.path.abspath(folder)) for folder in folders))  # noqa: PTH100 - keeps links
    for path in paths:
        if path.resolve() == Path("/") or not path.exists():
            raise SandboxError(f"{path} cannot be shown to a program: it is not there, or everything")
    return tuple(path for path in paths if not path.is_relative_to("/usr"))


def bind(folders: Iterable[Path], option: str, sources: Mapping[Path, Path]) -> list[str]:
    """Bind host folders at their own paths; ``sources`` has the places of those that cannot be reached there."""
    return [word for folder in folders for word in (option, str(sources.get(folder, folder)), str(folder))]


def own(folders: Sequence[Path], user: int | None) -> None:
    """Make ``user`` the owner of the writable folders, which are empty or hold only its own files."""
    if user is not None:
        for folder in folders:
            os.chown(folder, user, user, follow_symlinks=False)
