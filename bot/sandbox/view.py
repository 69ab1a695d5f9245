"""What a program under bubblewrap sees of files: arguments for ``bwrap``, and the descriptors that they name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bot.errors import SandboxError
from bot.sandbox.protocol import WORKDIR, Limits

#: Of /etc, what programs and libraries need to start; nothing of the host's accounts or keys.
_ETC = (
    "ld.so.cache", "alternatives", "localtime", "mime.types", "protocols", "services", "ssl/certs",
    "ssl/openssl.cnf", "pki/tls/certs", "ca-certificates", "fonts", "java-17-openjdk", "java-21-openjdk",
)  # fmt: skip
_ETC_NETWORK = ("resolv.conf", "nsswitch.conf")
_STUBS: Mapping[str, str] = {
    "/etc/passwd": "sandbox:x:1000:1000:sandbox:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "/etc/group": "sandbox:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
#: Top-level folders of the system that are links into /usr on most distributions, and folders on others.
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Everything that a program can write to.
WRITABLE_MOUNTS = (WORKDIR, "/tmp", "/dev/shm")  # noqa: S108 - paths inside the sandbox


@dataclass
class View:
    """Builds the file system of one run; ``resources`` closes the descriptors that it opens."""

    resources: ExitStack
    descriptors: list[int] = field(default_factory=list)

    def system(self, network: bool) -> list[str]:
        """The system's programs and libraries, read-only, and a stub of /etc."""
        arguments = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
        for name in _SYSTEM:
            if Path(name).is_symlink():
                arguments += ["--symlink", str(Path(name).readlink()), name]
            else:
                arguments += ["--ro-bind-try", name, name]
        for name in (*_ETC, *(_ETC_NETWORK if network else ())):
            arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        for path, text in _STUBS.items():
            arguments += ["--ro-bind-data", str(self._holding(text)), path]
        return arguments

    def _holding(self, text: str) -> int:
        descriptor = os.memfd_create("stub")
        self.resources.callback(os.close, descriptor)
        os.write(descriptor, text.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        self.descriptors.append(descriptor)
        return descriptor


def memory(limits: Limits, tree: int) -> list[str]:
    """The writable file systems; ``tree`` is what the work folder's own files take, bytes."""
    sizes = (tree + limits.disk_bytes // 2, limits.disk_bytes * 3 // 8, limits.disk_bytes // 8)
    arguments: list[str] = []
    for path, size in zip(WRITABLE_MOUNTS, sizes, strict=True):
        arguments += ["--size", str(size), "--tmpfs", path]
    return arguments


def shown(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Absolute paths of the host folders to bind, each once, those of the system left out: they are there anyway.

    Raises SandboxError for a folder that does not exist, and for the root.
    """
    paths = tuple(dict.fromkeys(Path(os.path.abspath(each)) for each in folders))  # noqa: PTH100 - keeps links
    for path in paths:
        if path == Path("/") or not path.exists():
            raise SandboxError(f"{path} cannot be shown to a program: it is not there, or everything")
    return tuple(path for path in paths if not path.is_relative_to("/usr"))


def bound(folders: Iterable[Path], option: str, sources: Mapping[Path, Path]) -> list[str]:
    """Host folders at their own paths; ``sources`` says where one lies that cannot be reached there."""
    return [word for each in folders for word in (option, str(sources.get(each, each)), str(each))]


def own(folders: Sequence[Path], user: int | None) -> None:
    """Give the folders to be written to their writer; only the folder itself: it is empty, or its own before."""
    if user is not None:
        for folder in folders:
            os.chown(folder, user, user, follow_symlinks=False)
