"""The default sandbox: bubblewrap, which needs no daemon, image or privileges.

The program runs as a user that owns nothing on the host, in namespaces of its own (files, processes, network,
users, keys), sees the system's programs and libraries read-only, may make the system calls of an allow-list,
and writes to memory file systems of a fixed size that vanish with it. A worker that is root starts bubblewrap
as a fresh, otherwise unused user: root is exempt from the limit on processes, and nothing that runs here should
ever be root outside. Any other worker keeps its user outside; inside, none of its files, sockets and keys can
be named.

Limits hold by what the kernel offers everywhere: the size of memory file systems, resource limits of the user
namespace (from Linux 5.14 processes count per namespace; before, those of the worker's whole user count), and a
watch on memory. Control groups would need rights that a worker often lacks.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from bot.core.errors import SandboxError
from bot.core.io_limits import leased
from bot.sandbox import seccomp
from bot.sandbox.launch import launch, pack
from bot.sandbox.monitor import Monitor, exceeded_usage
from bot.sandbox.mounts import FileSystem, bind, memory, own, own_python, search_path, to_mount
from bot.sandbox.network import NAMESERVER, Gate
from bot.sandbox.protocol import WORKDIR, ProgramResult, ProgramRun

_ISOLATION = (
    "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
    "--uid", "1000", "--gid", "1000", "--hostname", "sandbox",
)  # fmt: skip
_NOBODY = 65534
_JOIN_SESSION_KEYRING = 1  # of keyctl

# Runs on the host before bubblewrap: the kernel ends the program first if memory runs short, and root becomes the
# fresh user. If root's interpreter is below root's private home, which that user cannot enter, root binds such
# folders to public places in a mount namespace of its own. On the host this leaves one empty folder below /tmp,
# which is removed again.
_PREPARE = """\
set -eu
stage=$1 user=$2
shift 2
echo 1000 >/proc/self/oom_score_adj
if [ -n "$stage" ]; then
    mount -t tmpfs -o mode=0755,size=1m stage "$stage"
fi
number=0
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir "$stage/$number"; else : >"$stage/$number"; fi
    mount --bind "$1" "$stage/$number"
    number=$((number + 1))
    shift
done
shift
[ -n "$user" ] || exec "$@"
exec setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all --no-new-privs -- "$@"
"""


@dataclass(frozen=True)
class Bubblewrap:
    """The bubblewrap runner; ``program`` is looked up on the search path.

    ``folders`` of the host are visible to every program, with the programs in their ``bin``.
    """

    name = "bubblewrap"
    host_programs = True

    program: str = "bwrap"
    folders: tuple[Path, ...] = ()
    #: Set-up steps run without any network, too.
    offline: bool = False

    @property
    def path(self) -> str:
        return search_path(self.folders)

    @property
    def surroundings(self) -> str:
        return f"{self.name} {self.path} {'none' if self.offline else 'public addresses'}"

    def run(self, request: ProgramRun) -> ProgramResult:
        program, limits = shutil.which(self.program), request.limits
        if program is None:
            raise SandboxError(f"{self.program} is not installed (Debian, Ubuntu: apt-get install bubblewrap)")
        visible = to_mount((*own_python(), *self.folders, *request.readable))
        changeable = to_mount(request.writable)
        user = _fresh_user()
        own(changeable, user)
        packed = pack(request.workdir, request.files)
        with packed.stream, ExitStack() as resources:
            prefix, sources = resources.enter_context(_stage((*visible, *changeable), user))
            view = FileSystem(resources)
            gate = Gate(resources) if request.network and not self.offline else None
            arguments = [*prefix, program, *_ISOLATION, "--seccomp", str(view.holding(seccomp.program()))]
            arguments += [*(gate.arguments if gate else ()), *view.system(NAMESERVER if gate else None)]
            arguments += memory(limits, packed.size)
            arguments += bind(visible, "--ro-bind", sources) + bind(changeable, "--bind", sources)
            arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORKDIR, "--"]
            arguments += launch(request, self.path, packed.size, processes=True)
            descriptors = (*view.descriptors, *(gate.descriptors if gate else ()))
            with _started(arguments, packed.stream, descriptors) as process:
                check_usage = partial(exceeded_usage, process.pid, limits)
                monitor = Monitor(process, request, changeable, process.kill, check_usage)
                with gate.connected(user) if gate else nullcontext():
                    result = monitor.run()
        if not monitor.is_ready:
            raise SandboxError(_complaint(result.output))
        return result


def _fresh_user() -> int | None:
    """Return a user that owns nothing for a worker that is root; None for any other worker."""
    if os.geteuid() != 0:
        return None
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first == 0 and count > 1 << 31:
            return (1 << 30) + secrets.randbelow(1 << 28)
    return _NOBODY  # in a container with few users


@contextmanager
def _stage(folders: Iterable[Path], user: int | None) -> Iterator[tuple[tuple[str, ...], Mapping[Path, Path]]]:
    """Make ``folders`` reachable for ``user``; None: the worker is not root.

    Yield the command before bubblewrap, and the public places of folders that its user cannot reach.
    """
    closed = () if user is None else tuple(folder for folder in folders if not _open_to_all(folder))
    prepare = ("/bin/sh", "-c", _PREPARE, "prepare")
    as_user = "" if user is None else str(user)
    if not closed:
        yield (*prepare, "", as_user, "--"), {}
        return
    # Folders with the same parent (the parts of an installation) share one mount.
    bases = {folder: folder.parent if _enterable(folder.parent) else folder for folder in closed}
    numbers = {base: number for number, base in enumerate(dict.fromkeys(bases.values()))}
    with leased(Path("/tmp"), "bouncer-stage-") as place:  # noqa: S108 - public, unlike TMPDIR
        yield (
            ("unshare", "--mount", *prepare, str(place), as_user, *map(str, numbers), "--"),
            {folder: Path(place, str(numbers[base]), folder.relative_to(base)) for folder, base in bases.items()},
        )


def _open_to_all(folder: Path) -> bool:
    path = folder.resolve()
    return all(map(_enterable, path.parents)) and (not path.is_dir() or _enterable(path))


def _enterable(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)


@contextmanager
def _started(
    arguments: list[str], stdin: IO[bytes], descriptors: Sequence[int]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start bwrap and kill it when the block ends. The environment is empty: the program can read it."""
    _new_keyring()
    process = subprocess.Popen(  # noqa: S603
        arguments,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={"PATH": os.defpath},
        pass_fds=descriptors,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _new_keyring() -> None:
    """Give this thread and its children a new session keyring; the worker itself keeps no keys there.

    bubblewrap has no option for it, and it must be the thread that starts the program. Raises SandboxError.
    """
    import pyseccomp

    libc = ctypes.CDLL(None, use_errno=True)
    number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, "keyctl")
    if libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None) != -1:
        return
    # If the kernel has no keys, or a container forbids them, the program cannot reach them, either.
    if (why := ctypes.get_errno()) not in (errno.ENOSYS, errno.EPERM):
        raise SandboxError(f"the program cannot have a session keyring of its own: {os.strerror(why)}")


def _complaint(output: str) -> str:
    message = output.strip().partition("\n")[0] or "no output"
    text = f"bubblewrap could not start the program: {message}"
    if "namespace" in message or "uid map" in message or "Operation not permitted" in message:
        text += (
            " (user namespaces seem to be forbidden here: see the sysctls kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns and user.max_user_namespaces, or the container's "
            "seccomp profile)"
        )
    return text
