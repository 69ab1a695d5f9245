"""The default sandbox: bubblewrap, which needs no daemon, no image and no privileges.

The program runs as a user that owns nothing on the host, in namespaces of its own (files, processes, network,
users), sees the system's programs and libraries read-only, and writes to memory file systems of a fixed size that
vanish with it. A worker that is root starts bubblewrap as a fresh, otherwise unused user: root is exempt from the
limit on processes, and nothing that runs here should ever be root outside.

Limits hold by what the kernel offers everywhere: the size of memory file systems, resource limits of the user
namespace (from Linux 5.14 processes count per namespace; before, those of the worker's whole user count), and a
watch on memory. Control groups would need rights that a worker often lacks.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bot.errors import SandboxError
from bot.sandbox.archive import pack, relative, unpack
from bot.sandbox.launch import launch
from bot.sandbox.look import ProcessTree, WrittenFolders
from bot.sandbox.outcome import outcome
from bot.sandbox.protocol import WORKDIR, Limits, Outcome
from bot.sandbox.staging import stage
from bot.sandbox.view import View, bound, memory, own, shown
from bot.sandbox.watch import Watch

_ISOLATION = (
    "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
    "--uid", "1000", "--gid", "1000", "--hostname", "sandbox",
)  # fmt: skip
_NOBODY = 65534


@dataclass(frozen=True)
class Bubblewrap:
    """Runs programs under ``program``, which is looked up on the search path.

    ``entries``: files and folders that may exist at once in each writable file system. Their contents are limited
    by ``Limits.disk_bytes``, but an empty one costs the host about 1 KiB, too.
    """

    program: str = "bwrap"
    entries: int = 500_000
    name: str = "bubblewrap"
    host_programs: bool = True

    def run(
        self,
        argv: Sequence[str],
        *,
        workdir: Path,
        files: Mapping[str, str],
        limits: Limits,
        env: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        collect: Sequence[str] = (),
        network: bool = False,
    ) -> Outcome:
        """See ``Sandbox.run``."""
        program = _found(self.program)
        names = tuple(relative(name) for name in collect)
        visible, changeable = shown(readable), shown(writable)
        user = _fresh_user()
        own(changeable, user)
        packed = pack(workdir, files)
        with packed.stream, ExitStack() as resources, stage((*visible, *changeable), user) as place:
            view = View(resources)
            arguments = [*place.prefix, program, *_ISOLATION, *(["--share-net"] if network else [])]
            arguments += [*view.system(network), *memory(limits, packed.size)]
            arguments += bound(visible, "--ro-bind", place.sources) + bound(changeable, "--bind", place.sources)
            arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORKDIR, "--"]
            largest = packed.size + limits.disk_bytes
            arguments += launch(argv, limits, env=env or {}, collect=names, written=largest, processes=True)
            with _started(arguments, packed.stream, view.descriptors, place.user) as process:
                tree, folders = ProcessTree(process.pid, limits, self.entries), WrittenFolders(changeable, limits)
                watched = Watch(process, limits, lambda: tree() or folders(), process.kill).run()
        if not watched.ready:
            raise SandboxError(_complaint(watched.output))
        return outcome(argv, watched, unpack(watched.collected, collect))


def _found(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise SandboxError(f"{program} is not installed (Debian, Ubuntu: apt-get install bubblewrap)")
    return found


def _fresh_user() -> int | None:
    """A user that owns nothing, for a worker that is root; None otherwise: others stay who they are."""
    if os.geteuid() != 0:
        return None
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first == 0 and count > 1 << 31:
            return (1 << 30) + secrets.randbelow(1 << 28)
    return _NOBODY  # in a container with few users


@contextmanager
def _started(
    arguments: list[str], stdin: IO[bytes], descriptors: Sequence[int], user: int | None
) -> Iterator[subprocess.Popen[bytes]]:
    """bwrap as a child that is gone when the block ends. The environment is empty: its own is visible inside."""
    process = subprocess.Popen(  # noqa: S603
        arguments,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={"PATH": os.defpath},
        pass_fds=descriptors,
        user=user,
        group=user,
        extra_groups=None if user is None else (),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _complaint(output: bytes) -> str:
    said = output.decode("utf-8", "replace").strip().partition("\n")[0] or "it said nothing"
    text = f"bubblewrap could not start the program: {said}"
    if "namespace" in said or "uid map" in said or "Operation not permitted" in said:
        text += (
            " (user namespaces seem to be forbidden here: see the sysctls kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns and user.max_user_namespaces, or the container's "
            "seccomp profile)"
        )
    return text
