"""Which of the host's folders a test command needs to see: those of the interpreter that it names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.sandbox.protocol import WORKDIR

_SYSTEM = (Path("/usr"), Path("/bin"), Path("/sbin"), Path("/lib"), Path("/lib64"))


@dataclass(frozen=True)
class Program:
    """A command as it works inside the sandbox, and the host folders that it needs there."""

    argv: tuple[str, ...]
    readable: tuple[Path, ...]


def resolve(argv: Sequence[str], workdir: Path, search: str | None = None) -> Program:
    """Find the program that ``argv`` starts with, on ``search`` (a PATH; None = the operator's own).

    A bare ``python`` is the one that the operator would get. Paths into ``workdir`` become paths inside the
    sandbox. Nothing is executed, and a program that is not found stays as it is: running it will say so.
    """
    inside = tuple(_inside(argument, workdir) for argument in argv)
    if "/" in argv[0]:
        program = Path(argv[0])
        if not program.is_absolute() or inside[0] != argv[0]:
            return Program(inside, ())
    else:
        found = next(_candidates(argv[0], search), None)
        if found is None:
            return Program(inside, ())
        program = found
    return Program((str(program), *inside[1:]), folders_of(program))


def _inside(argument: str, workdir: Path) -> str:
    return re.sub(rf"{re.escape(str(workdir.absolute()))}(?=/|$)", WORKDIR, argument)


def _candidates(name: str, search: str | None) -> Iterator[Path]:
    """Programs of that name on the search path, last beside the interpreter that runs this.

    Version managers' shims are passed over: they choose at run time, from files that the sandbox does not show.
    """
    own = (*os.get_exec_path(), str(Path(sys.executable).parent))
    for folder in map(Path, own if search is None else search.split(os.pathsep)):
        program = folder / name
        if folder.is_absolute() and folder.name != "shims" and os.access(program, os.X_OK) and program.is_file():
            yield program


def folders_of(program: Path) -> tuple[Path, ...]:
    """The folders to show for ``program``: its virtual environment and the installation behind it."""
    homes = [program.parent.parent, *_base(program.parent.parent)]
    homes.append(program.resolve().parent.parent)
    return tuple(dict.fromkeys(home for home in homes if not _is_system(home)))


def folders_in(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The existing host folders that PYTHONPATH names, absolute ones only."""
    entries = map(Path, env.get("PYTHONPATH", "").split(os.pathsep))
    return tuple(entry for entry in entries if entry.is_absolute() and entry.exists() and not _is_system(entry))


def _base(environment: Path) -> Iterator[Path]:
    """The installation that a virtual environment was made from, as it recorded it."""
    try:
        text = (environment / "pyvenv.cfg").read_text(errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            yield Path(value.strip()).parent
            yield (Path(value.strip()) / "python3").resolve().parent.parent


def _is_system(folder: Path) -> bool:
    """Shown anyway, or so much that it must not be: a home or the root."""
    return any(folder.is_relative_to(each) for each in _SYSTEM) or Path.home().is_relative_to(folder)
