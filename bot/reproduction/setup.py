"""The environment for a repository's tests: made once by its set-up commands, cached on disk.

An environment is a virtual environment at a fixed path. The commands of the default branch's configuration make it
in the sandbox, with a network that reaches only public addresses. Its key is a hash of all inputs: repository,
interpreter, commands, sandbox, and the repository's dependency files. Its files are used only inside the sandbox
and never read here. It is complete when the file ``complete`` exists, which is written last; an incomplete one is
removed and made again. The locks are files, because several workers on one machine may share the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from bot.core.config import ReproduceConfig
from bot.core.frozen import Frozen
from bot.core.io_limits import changed_at, read_file
from bot.core.subjects import Repository
from bot.reproduction.execution import SandboxHarness
from bot.reproduction.protocol import Harness, SetupFailed, TestCommand
from bot.sandbox.monitor import measure
from bot.sandbox.protocol import Limits, ProgramResult, ProgramRun, Sandbox

#: Version of the way in which environments are made.
_FORMAT = "2"
_COMPLETE = "complete"
#: File in the work folder with the number of the current set-up command.
_STEP = ".bouncer-step"
#: Files that determine the installed packages.
_DEPENDENCY_FILES = (
    "*requirements*.txt", "requirements/*.txt", "*.lock", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile",
    "constraints*.txt", "environment*.yml", "tox.ini",
)  # fmt: skip
#: Error lines of installers; the rest of the output is not shown.
_REPORT_LINE = re.compile(
    r"(?:ERROR|error|E|fatal|npm ERR!|\[ERROR\]|(?:[\w./-]{0,200}/)?(?:sh|env|python[\d.]{0,8}))!?: "
)
_MAX_LINES = 10
_MAX_LINE = 300
#: Bytes of the largest dependency file that is part of the key.
_MAX_FILE = 4 << 20

_log = logging.getLogger(__name__)


class Recipe(Frozen):
    """The recipe of an environment: ``reproduce.python`` and ``reproduce.setup`` of the default branch."""

    repository: int = Field(description="its id: an environment is never shared between repositories")
    python: str = "python3"
    commands: tuple[str, ...] = Field((), description="lines for the shell, in order, the environment's bin first")

    def key(self, workdir: Path, surroundings: str) -> str:
        """Return the key of the environment for a checkout."""
        facts = (_FORMAT, str(self.repository), surroundings, self.python, *self.commands)
        digest = hashlib.sha256("\0".join(facts).encode())
        files = {path for pattern in _DEPENDENCY_FILES for path in workdir.glob(pattern)}
        for path in sorted(files):
            content = _read(path)
            if content is not None:
                digest.update(f"\0{path.relative_to(workdir)}\0".encode("utf-8", "surrogateescape"))
                digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Environment:
    """Settings of a harness for a prepared environment."""

    env: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Environments:
    """The cache in ``folder``: at most ``max_bytes`` in environments that were used within ``max_age`` seconds."""

    folder: Path
    max_bytes: int = 10 << 30
    max_age: float = 30 * 24 * 3600.0
    limits: Limits = field(
        default_factory=lambda: Limits(
            seconds=1800, cpu_seconds=1800, memory_bytes=4 << 30, processes=512, disk_bytes=4 << 30
        )
    )

    @contextmanager
    def prepared(self, sandbox: Sandbox, workdir: Path, recipe: Recipe) -> Iterator[Environment]:
        """Return the environment for the files in ``workdir``, made if necessary and not evicted while in use.

        Without commands it is empty: tests run under the operator's interpreter. Raises SetupFailed if a command
        fails, SandboxError if the sandbox does.
        """
        if not recipe.commands:
            yield Environment()
            return
        place = self.folder.resolve() / recipe.key(workdir, sandbox.surroundings)
        while True:
            with self._locked(place, fcntl.LOCK_SH):
                if (place / _COMPLETE).exists():
                    os.utime(place / _COMPLETE)
                    yield _environment(place / "env", sandbox)
                    return
            # A lock is never converted: another process could remove the folder in between.
            with self._locked(place, fcntl.LOCK_EX):
                if not (place / _COMPLETE).exists():
                    self._make(sandbox, workdir, recipe, place)
            self._evict(place)

    def _make(self, sandbox: Sandbox, workdir: Path, recipe: Recipe, place: Path) -> None:
        _remove(place)
        home = place / "env"
        # Set-up may leave setuid programs: no other user of this machine may reach them.
        place.mkdir(parents=True, mode=0o700)
        home.mkdir()
        environment = _environment(home, sandbox)
        steps = (f"{shlex.quote(recipe.python)} -m venv {shlex.quote(str(home))}", *recipe.commands)
        script = "".join(f"echo {number} >{_STEP}\n{step}\n" for number, step in enumerate(steps))
        result = sandbox.run(
            ProgramRun(
                ["/bin/sh", "-c", f"set -e\n{script}"],
                workdir=workdir,
                limits=self.limits,
                env={**environment.env, "PIP_NO_CACHE_DIR": "1"},
                writable=(home,),
                collect=(_STEP,),
                network=True,
            )
        )
        if result.ending != "exited" or result.exit_code != 0:
            _remove(place)
            _log.info("a set-up failed: %r", result.output[-10_000:])
            raise SetupFailed(_failure(recipe, result))
        (place / _COMPLETE).write_text(str(measure(home).cost))

    def _evict(self, current: Path) -> None:
        """Remove old environments, then the least recently used ones until the rest fits, except those in use."""
        room = self.max_bytes - _size(current)
        others = [entry for entry in self.folder.iterdir() if entry.is_dir() and entry != current]
        for place in sorted(others, key=_last_used, reverse=True):
            room -= _size(place)
            if room < 0 or time.time() - _last_used(place) > self.max_age:
                # BlockingIOError: it is in use.
                with suppress(BlockingIOError), self._locked(place, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    _remove(place)

    @contextmanager
    def _locked(self, place: Path, operation: int) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        # The lock file stays: removing it would let two holders lock two different files of one name.
        with place.with_name(f"{place.name}.lock").open("ab") as stream:
            fcntl.flock(stream, operation)
            yield


@dataclass(frozen=True)
class SandboxHarnesses:
    """Implements ``bot.reproduction.protocol.Harnesses``."""

    sandbox: Sandbox
    environments: Environments

    @contextmanager
    def prepared(
        self, checkout: Path, command: TestCommand, repository: Repository, config: ReproduceConfig
    ) -> Iterator[Harness]:
        limits = Limits(seconds=config.seconds, cpu_seconds=config.seconds)
        recipe = Recipe(repository=repository.id, python=config.python, commands=config.setup)
        with self.environments.prepared(self.sandbox, checkout, recipe) as environment:
            yield SandboxHarness(self.sandbox, command, environment.env, environment.readable, limits)


@dataclass(frozen=True)
class OperatorHarnesses:
    """Implements ``bot.reproduction.protocol.Harnesses``: the operator's harness for every checkout."""

    harness: Harness

    @contextmanager
    def prepared(
        self, checkout: Path, command: TestCommand, repository: Repository, config: ReproduceConfig
    ) -> Iterator[Harness]:
        yield self.harness


def _failure(recipe: Recipe, result: ProgramResult) -> str:
    """Describe a failed set-up: the command, its ending, and the installers' errors."""
    how = f"exit code {result.exit_code}" if result.ending == "exited" else f"limit: {result.ending}"
    digits = result.files.get(_STEP, "").strip()[:4]
    number = int(digits) if digits.isascii() and digits.isdigit() else 0
    step = recipe.commands[number - 1] if 0 < number <= len(recipe.commands) else f"{recipe.python} -m venv"
    errors = [line[:_MAX_LINE] for line in result.output.splitlines() if _REPORT_LINE.match(line)][-_MAX_LINES:]
    return "\n".join((f"the set-up of the test environment failed ({how}) at `{step[:_MAX_LINE]}`", *errors))


def _environment(home: Path, sandbox: Sandbox) -> Environment:
    return Environment({"PATH": f"{home}/bin{os.pathsep}{sandbox.path}", "VIRTUAL_ENV": str(home)}, (home,))


def _read(path: Path) -> bytes | None:
    """Read a regular file of a repository; None for anything else and for a file that is too large."""
    try:
        return None if path.is_symlink() else read_file(path, _MAX_FILE)
    except OSError:
        return None


def _remove(place: Path) -> None:
    """Remove an environment, its marker first: an interrupted removal must not leave a complete-looking one.

    ``rm`` is used because the folders may be deeper than Python's own walk can go.
    """
    (place / _COMPLETE).unlink(missing_ok=True)
    if place.exists():
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(place)], capture_output=True, check=False)  # noqa: S603, S607
        subprocess.run(["rm", "-rf", "--one-file-system", "--", str(place)], capture_output=True, check=True)  # noqa: S603, S607


def _size(place: Path) -> int:
    try:
        return int((place / _COMPLETE).read_text())
    except (FileNotFoundError, ValueError):
        return 0


def _last_used(place: Path) -> float:
    """Return when an environment was used last; 0 if it was never finished."""
    return changed_at(place / _COMPLETE)
