"""What a command that an operator typed needs to see of the host: the Python installation that its program is in.

For the commands on files alone, where whoever runs them chose command and folders. What a repository says names
programs that are found inside the sandbox and never a folder of the host.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.sandbox.mounts import python_parts
from bot.sandbox.protocol import WORKDIR


@dataclass(frozen=True)
class Program:
    """A command as it works inside the sandbox, and the host folders that it needs there."""

    argv: tuple[str, ...]
    readable: tuple[Path, ...]


def typed(argv: Sequence[str], workdir: Path, env: Mapping[str, str] | None = None) -> Program:
    """The command ``argv`` of the operator's, its bare first word looked up as the operator's shell would.

    Paths into ``workdir`` become paths inside the sandbox. A program in a virtual environment or a Python
    installation brings that along, and so do the folders that PYTHONPATH names in ``env``; any other program is
    only there if it is the system's or lies in BOUNCER_SANDBOX_FOLDERS.
    """
    inside = tuple(_inside(argument, workdir) for argument in argv)
    paths = _folders_in(env or {})
    if inside[0] != argv[0] or ("/" in argv[0] and not Path(argv[0]).is_absolute()):
        return Program(inside, paths)
    program = Path(argv[0]) if "/" in argv[0] else next(_candidates(argv[0]), None)
    if program is None:
        return Program(inside, paths)
    homes = (program.parent.parent, program.resolve().parent.parent)
    parts = tuple(part for home in dict.fromkeys(homes) for part in python_parts(home))
    return Program((str(program), *inside[1:]), (*parts, *paths))


def _inside(argument: str, workdir: Path) -> str:
    return re.sub(rf"{re.escape(str(workdir.absolute()))}(?=/|$)", WORKDIR, argument)


def _candidates(name: str) -> Iterator[Path]:
    """Programs of that name on the search path, last beside the interpreter that runs this.

    Version managers' shims are passed over: they choose at run time, from files that the sandbox does not show.
    """
    for folder in map(Path, (*os.get_exec_path(), str(Path(sys.executable).parent))):
        program = folder / name
        if folder.is_absolute() and folder.name != "shims" and os.access(program, os.X_OK) and program.is_file():
            yield program


def _folders_in(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The existing host folders that PYTHONPATH names, absolute ones only; none that a home lies in."""
    entries = map(Path, env.get("PYTHONPATH", "").split(os.pathsep))
    return tuple(
        entry
        for entry in entries
        if entry.is_absolute() and entry.exists() and not Path.home().is_relative_to(entry.resolve())
    )
