"""What runs first inside every sandbox: a few lines of POSIX shell that unpack, limit, run and hand back.

The launcher and its program share one conversation with the worker, the same for every runner. Standard input is
a tar archive of the work folder; standard error is everything that the program prints; standard output belongs to
the launcher alone and carries ``READY``, then after the program's end a tar archive of the collected files. The
program can disturb this conversation (it runs as the same user), and then harms nothing but its own result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.sandbox.protocol import WORKDIR, Limits

#: Printed once everything is in place and the program is about to start.
READY = b"ready\n"

#: What the program's environment starts from.
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
processes=$2 cpu=$3 file=$4 data=$5 collect=$6
shift 6
umask 022
tar -x -i -p -o -f -
ulimit -c 0
ulimit -d "$data"
ulimit -f "$file"
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


def launch(
    argv: Sequence[str],
    limits: Limits,
    *,
    env: Mapping[str, str],
    collect: Sequence[str],
    written: int,
    processes: bool,
) -> tuple[str, ...]:
    """The command that a runner starts in place of ``argv``.

    ``written``: the most that one file may hold, bytes. ``processes``: whether the launcher limits processes
    (per user), for a runner that does not count them itself.
    """
    variables = {**ENVIRONMENT, **env}
    return (
        "/bin/sh",
        "-c",
        _SCRIPT,
        "launch",
        WORKDIR,
        str(limits.processes) if processes else "",
        str(limits.cpu_seconds),
        str(max(1, written // 512)),
        # A backstop per process far above the watched sum: untouched reservations are no memory yet.
        str(limits.memory_bytes * 4 // 1024),
        str(len(collect)),
        *collect,
        *(f"{name}={value}" for name, value in variables.items()),
        # To env, a first word with "=" in it would be one more variable and the next word the program.
        *("/bin/sh", "-c", 'exec "$@"', "sh"),
        *argv,
    )
