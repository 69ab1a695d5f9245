"""The environment that a repository's tests need: made once by its own set-up commands, kept on disk.

An environment is a virtual environment at a fixed place, made in the sandbox, with a network that reaches public
addresses alone, by the commands of the default branch's configuration. It is found again by the hash of everything
that it follows from: repository, interpreter, commands, sandbox, and the repository's dependency files. What a
set-up wrote is only ever used inside the sandbox: nothing in it is read here. It counts as made once the file
``complete`` lies beside it, written last: whatever was cut off before is removed and made anew. Files are
locked, not rows: several workers on one machine may share the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import shlex
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from bot.core.errors import UserError
from bot.core.frozen import Frozen
from bot.sandbox.monitor import measure
from bot.sandbox.protocol import Limits, ProgramResult, ProgramRun, Sandbox

#: Changes whenever environments are made in another way.
_FORMAT = "2"
_COMPLETE = "complete"
#: Where a set-up notes, in the work folder, which of its commands it is at.
_STEP = ".bouncer-step"
#: Files whose content decides what gets installed.
_DEPENDENCY_FILES = (
    "*requirements*.txt", "requirements/*.txt", "*.lock", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile",
    "constraints*.txt", "environment*.yml", "tox.ini",
)  # fmt: skip
#: What installers report, of all that they and the repository's own code print.
_REPORT_LINE = re.compile(
    r"(?:ERROR|error|E|fatal|npm ERR!|\[ERROR\]|(?:[\w./-]{0,200}/)?(?:sh|env|python[\d.]{0,8}))!?: "
)
_MAX_LINES = 10
_MAX_LINE = 300
#: The largest dependency file that counts, bytes.
_MAX_FILE = 4 << 20

_log = logging.getLogger(__name__)


class SetupFailed(UserError):
    """A set-up command of the repository ended badly; the message says which and what installers reported."""


class Recipe(Frozen):
    """How an environment is made: ``reproduce.python`` and ``reproduce.setup`` of the default branch."""

    repository: int = Field(description="its id: what one repository's set-up wrote never runs in another's tests")
    python: str = "python3"
    commands: tuple[str, ...] = Field((), description="lines for the shell, in order, the environment's bin first")

    def key(self, workdir: Path, surroundings: str) -> str:
        """Identifies the environment for a checkout."""
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
    """What a harness adds to see a prepared environment."""

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
        """The environment for the files in ``workdir``, made if need be; it is not evicted while in use.

        Without commands there is none: tests run under the interpreter that the operator would get. Raises
        SetupFailed for a command that fails, SandboxError where the sandbox does.
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
            # No lock is turned from one kind into the other: in between somebody else could remove the place.
            with self._locked(place, fcntl.LOCK_EX):
                if not (place / _COMPLETE).exists():
                    self._make(sandbox, workdir, recipe, place)
            self._evict(place)

    def _make(self, sandbox: Sandbox, workdir: Path, recipe: Recipe, place: Path) -> None:
        _remove(place)
        home = place / "env"
        # A set-up may leave programs of its own user here: nobody else on this machine reaches them.
        place.mkdir(parents=True, mode=0o700)
        home.mkdir()
        made = _environment(home, sandbox)
        result = sandbox.run(
            ProgramRun(
                ["/bin/sh", "-c", _script(recipe, home)],
                workdir=workdir,
                limits=self.limits,
                env={**made.env, "PIP_NO_CACHE_DIR": "1"},
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
        """Remove what is old, then what was used longest ago, until the rest fits; what is in use stays."""
        room = self.max_bytes - _size(current)
        others = [each for each in self.folder.iterdir() if each.is_dir() and each != current]
        for place in sorted(others, key=_last_used, reverse=True):
            room -= _size(place)
            if room < 0 or time.time() - _last_used(place) > self.max_age:
                self._discard(place)

    def _discard(self, place: Path) -> None:
        with suppress(BlockingIOError), self._locked(place, fcntl.LOCK_EX | fcntl.LOCK_NB):  # it may be in use
            _remove(place)

    @contextmanager
    def _locked(self, place: Path, kind: int) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        # The lock file stays: removing it would let two holders lock two different files of one name.
        with place.with_name(f"{place.name}.lock").open("ab") as stream:
            fcntl.flock(stream, kind)
            yield


def _script(recipe: Recipe, home: Path) -> str:
    steps = [f"{shlex.quote(recipe.python)} -m venv {shlex.quote(str(home))}", *recipe.commands]
    return "set -e\n" + "".join(f"echo {number} >{_STEP}\n{step}\n" for number, step in enumerate(steps))


def _failure(recipe: Recipe, result: ProgramResult) -> str:
    """What people are told: the command, how it ended, and what an installer said about it."""
    how = f"exit code {result.exit_code}" if result.ending == "exited" else f"limit: {result.ending}"
    noted = result.files.get(_STEP, "").strip()[:4]
    number = int(noted) if noted.isascii() and noted.isdigit() else 0
    step = recipe.commands[number - 1] if 0 < number <= len(recipe.commands) else f"{recipe.python} -m venv"
    told = [line[:_MAX_LINE] for line in result.output.splitlines() if _REPORT_LINE.match(line)][-_MAX_LINES:]
    return "\n".join((f"the set-up of the test environment failed ({how}) at `{step[:_MAX_LINE]}`", *told))


def _environment(home: Path, sandbox: Sandbox) -> Environment:
    return Environment({"PATH": f"{home}/bin{os.pathsep}{sandbox.path}", "VIRTUAL_ENV": str(home)}, (home,))


def _read(path: Path) -> bytes | None:
    """A regular file of a repository; None for anything else, and for one that is out of proportion."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MAX_FILE:
            return None
        return stream.read(_MAX_FILE)


def _remove(place: Path) -> None:
    """The marker first: a removal that is cut off must not leave half an environment that looks whole.

    By ``rm``, after everything was made removable: what a set-up made may be deeper than Python's own walk can go.
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
    try:
        return (place / _COMPLETE).stat().st_mtime
    except FileNotFoundError:
        return 0.0  # never finished
