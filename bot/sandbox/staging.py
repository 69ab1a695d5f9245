"""Folders that only root can reach, for a sandbox that does not run as root.

A worker that is root often keeps its interpreter below root's own closed home, where the fresh user that
bubblewrap runs as cannot look. In a mount namespace of its own, root binds such folders to places that are open
to all, becomes that user for good, and only then starts bubblewrap. Nothing on the host changes but one empty
folder below /tmp, which is removed again.
"""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_SCRIPT = """\
set -eu
stage=$1 user=$2
shift 2
mount -t tmpfs -o mode=0755,size=1m stage "$stage"
number=0
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir "$stage/$number"; else : >"$stage/$number"; fi
    mount --bind "$1" "$stage/$number"
    number=$((number + 1))
    shift
done
shift
exec setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all --no-new-privs -- "$@"
"""


@dataclass(frozen=True)
class Stage:
    """How to start bubblewrap: as which user, behind which command, and where folders lie for it."""

    user: int | None = None
    prefix: tuple[str, ...] = ()
    sources: Mapping[Path, Path] = field(default_factory=dict)


@contextmanager
def stage(folders: Iterable[Path], user: int | None) -> Iterator[Stage]:
    """Make ``folders`` reachable for ``user``; None stands for a worker that is not root and stays who it is."""
    closed = () if user is None else tuple(folder for folder in folders if not _open_to_all(folder))
    if not closed:
        yield Stage(user=user)
        return
    with tempfile.TemporaryDirectory(prefix="bouncer-stage-", dir="/tmp") as place:
        paths = map(str, closed)
        yield Stage(
            prefix=("unshare", "--mount", "/bin/sh", "-c", _SCRIPT, "stage", place, str(user), *paths, "--"),
            sources={folder: Path(place, str(number)) for number, folder in enumerate(closed)},
        )


def _open_to_all(folder: Path) -> bool:
    path = folder.resolve()
    return all(each.stat().st_mode & stat.S_IXOTH for each in (path, *path.parents))
