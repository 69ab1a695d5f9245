"""The environment that a repository's tests need: made once by its own set-up commands, kept on disk.

An environment is a virtual environment at a fixed place, made in the sandbox with network access by the
commands of the default branch's configuration. It is found again by the hash of everything that it follows
from: interpreter, commands, sandbox, and the repository's dependency files. It counts as made once the file
``complete`` lies beside it, written last: whatever was cut off before is removed and made anew. Files are
locked, not rows: several workers on one machine may share the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from bot.core.frozen import Frozen
from bot.errors import UserError
from bot.reproduce.interpreter import resolve
from bot.sandbox.launch import ENVIRONMENT
from bot.sandbox.processes import written
from bot.sandbox.protocol import Limits, Sandbox

#: Changes whenever environments are made in another way.
_FORMAT = "1"
_COMPLETE = "complete"
#: Files whose content decides what gets installed.
_DEPENDENCY_FILES = (
    "*requirements*.txt", "requirements/*.txt", "*.lock", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile",
    "constraints*.txt", "environment*.yml", "tox.ini",
)  # fmt: skip
_MAX_TAIL = 2_000


class SetupFailed(UserError):
    """A set-up command of the repository ended badly; the message says which and what it printed last."""


class Recipe(Frozen):
    """How an environment is made: ``reproduce.python`` and ``reproduce.setup`` of the default branch."""

    python: str = "python3"
    commands: tuple[str, ...] = Field((), description="lines for the shell, in order, the environment's bin first")

    def key(self, workdir: Path, sandbox: str) -> str:
        """Identifies the environment for a checkout."""
        digest = hashlib.sha256("\0".join((_FORMAT, sandbox, self.python, *self.commands)).encode())
        files = {path for pattern in _DEPENDENCY_FILES for path in workdir.glob(pattern)}
        for path in sorted(files):
            if path.is_file() and not path.is_symlink():
                digest.update(f"\0{path.relative_to(workdir)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Environment:
    """What a harness adds to see a prepared environment."""

    env: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Environments:
    """The cache in ``folder``: at most ``max_bytes`` in environments that were used within ``max_age`` seconds.

    ``variables`` are the operator's for the set-up alone, such as the address of an own package index.
    """

    folder: Path
    max_bytes: int = 10 << 30
    max_age: float = 30 * 24 * 3600.0
    limits: Limits = field(
        default_factory=lambda: Limits(
            seconds=1800, cpu_seconds=1800, memory_bytes=4 << 30, processes=512, disk_bytes=4 << 30
        )
    )
    variables: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def prepared(self, sandbox: Sandbox, workdir: Path, recipe: Recipe) -> Iterator[Environment]:
        """The environment for the files in ``workdir``, made if need be; it is not evicted while in use.

        Without commands there is none: tests run under the interpreter that the operator would get. Raises
        SetupFailed for a command that fails, SandboxError where the sandbox does.
        """
        if not recipe.commands:
            yield Environment()
            return
        place = self.folder.absolute() / recipe.key(workdir, sandbox.name)
        readable = _interpreter(recipe, sandbox, workdir)[1]
        while True:
            with self._locked(place, fcntl.LOCK_SH):
                if (place / _COMPLETE).exists():
                    os.utime(place / _COMPLETE)
                    yield _environment(place / "env", readable)
                    return
            # No lock is turned from one kind into the other: in between somebody else could remove the place.
            with self._locked(place, fcntl.LOCK_EX):
                if not (place / _COMPLETE).exists():
                    self._make(sandbox, workdir, recipe, place)
            self._evict(place)

    def _make(self, sandbox: Sandbox, workdir: Path, recipe: Recipe, place: Path) -> None:
        _remove(place)
        home = place / "env"
        home.mkdir(parents=True)
        python, readable = _interpreter(recipe, sandbox, workdir)
        made = f"{shlex.quote(python)} -m venv {shlex.quote(str(home))}"
        script = "\n".join(("set -ex", made, *recipe.commands))
        outcome = sandbox.run(
            ["/bin/sh", "-c", script],
            workdir=workdir,
            files={},
            limits=self.limits,
            env={**_environment(home, ()).env, "PIP_NO_CACHE_DIR": "1", **self.variables},
            readable=readable,
            writable=(home,),
            network=True,
        )
        if outcome.ending != "exited" or outcome.exit_code != 0:
            how = f"exit code {outcome.exit_code}" if outcome.ending == "exited" else f"limit: {outcome.ending}"
            said = outcome.output.replace(str(home), "$VIRTUAL_ENV")[-_MAX_TAIL:]
            _remove(place)
            raise SetupFailed(f"the set-up of the test environment failed ({how}):\n{said}")
        (place / _COMPLETE).write_text(str(written(home)))

    def _evict(self, current: Path) -> None:
        """Remove what is old, then what was used longest ago, until the rest fits; what is in use stays."""
        room = self.max_bytes - _size(current)
        others = [each for each in self.folder.iterdir() if each.is_dir() and each != current]
        for place in sorted(others, key=_last_used, reverse=True):
            room -= _size(place)
            if room < 0 or time.time() - _last_used(place) > self.max_age:
                self._discard(place)

    def _discard(self, place: Path) -> None:
        try:
            with self._locked(place, fcntl.LOCK_EX | fcntl.LOCK_NB):
                _remove(place)
        except BlockingIOError:
            return  # in use

    @contextmanager
    def _locked(self, place: Path, kind: int) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        # The lock file stays: removing it would let two holders lock two different files of one name.
        with place.with_name(f"{place.name}.lock").open("ab") as stream:
            fcntl.flock(stream, kind)
            yield


def _interpreter(recipe: Recipe, sandbox: Sandbox, workdir: Path) -> tuple[str, tuple[Path, ...]]:
    if not sandbox.host_programs:
        return recipe.python, ()
    program = resolve((recipe.python,), workdir)
    return program.argv[0], program.readable


def _environment(home: Path, readable: tuple[Path, ...]) -> Environment:
    path = f"{home}/bin{os.pathsep}{ENVIRONMENT['PATH']}"
    return Environment({"PATH": path, "VIRTUAL_ENV": str(home)}, (home, *readable))


def _remove(place: Path) -> None:
    """The marker first: a removal that is cut off must not leave half an environment that looks whole."""
    (place / _COMPLETE).unlink(missing_ok=True)
    if place.exists():
        shutil.rmtree(place)


def _size(place: Path) -> int:
    try:
        return int((place / _COMPLETE).read_text())
    except (FileNotFoundError, ValueError):
        return 0


def _last_used(place: Path) -> float:
    try:
        return (place / _COMPLETE).stat().st_mtime
    except FileNotFoundError:
        return 0.0  # never finished
