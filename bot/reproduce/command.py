"""A test command and the tests that it is to run, put together in the way that its runner names tests. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduce.java.running import RUNNERS, Runner, reports, runner, selected

#: The element of a command that the tests take the place of.
PLACE = "{tests}"

#: ``pytest``: ``a/test_b.py::TestC::test_d``. ``dotted``: ``a.test_b.TestC.test_d``, from the runner's own folder
#: (unittest, Django). ``files``: paths only, for a runner of which nothing is known. The others are Java's.
Naming = Literal["pytest", "dotted", "files"] | Runner


class Target(Frozen):
    """What to run: a test file, or one test in it."""

    path: str = Field(description="relative to the work folder")
    name: str | None = Field(None, description="within the file, ``TestC::test_d``; None = the whole file")


class TestCommand(Frozen):
    """How a repository runs its tests, as a list of arguments with ``{tests}`` in it (or at its end)."""

    __test__ = False

    argv: tuple[str, ...] = Field(min_length=1)

    @classmethod
    def parse(cls, text: str) -> TestCommand:
        """From one line as people type it. Raises ValueError where its quotes do not match or it is empty."""
        return cls(argv=tuple(shlex.split(text)))

    @classmethod
    def of_repository(cls, text: str) -> TestCommand:
        """The same from a repository's configuration, which names a program and never a place on the host.

        Raises ValueError for an absolute program, too, and for a first word with ``=`` in it.
        """
        command = cls.parse(text)
        program = command.argv[0]
        if program.startswith("/"):
            raise ValueError(f"its program is named without a folder (`{PurePosixPath(program).name}`)")
        if "=" in program:
            raise ValueError("it starts with a program, not with a variable")
        return command

    @property
    def naming(self) -> Naming:
        """How its runner names tests, told from the names of the programs in it."""
        words = [PurePosixPath(word).name for argument in self.argv for word in argument.split()]
        if any(word in ("pytest", "py.test") for word in words):
            return "pytest"
        if java := runner([word for argument in self.argv for word in argument.split()]):
            return java
        return "dotted" if any(word in ("unittest", "runtests.py", "manage.py") for word in words) else "files"

    @property
    def runs_java(self) -> bool:
        """Whether its runner is one of Java's."""
        return self.naming in RUNNERS

    def reports(self, targets: Sequence[Target]) -> tuple[str, ...]:
        """Where its runner leaves reports by itself: files relative to the work folder."""
        naming = self.naming
        return reports(naming, self.argv, targets) if naming in RUNNERS else ()

    def fill(self, targets: Sequence[Target]) -> tuple[str, ...]:
        """The arguments with ``targets`` in their place, each one once."""
        named = tuple(dict.fromkeys(self._named(target) for target in targets))
        argv = self.argv if any(PLACE in argument for argument in self.argv) else (*self.argv, PLACE)
        naming = self.naming
        if naming in RUNNERS:
            return selected(naming, argv, targets, PLACE)
        filled: list[str] = []
        for argument in argv:
            if argument == PLACE:
                filled += named
            else:
                filled.append(argument.replace(PLACE, shlex.join(named)))
        return tuple(filled)

    def _named(self, target: Target) -> str:
        name = target.name.split("[", 1)[0] if target.name else None
        if self.naming == "files" or (self.naming == "pytest" and name is None):
            return target.path
        if self.naming == "pytest":
            return f"{target.path}::{name}"
        path = PurePosixPath(target.path)
        root = self._root()
        module = path.relative_to(root) if path.is_relative_to(root) else path
        parts = module.with_suffix("").parts
        return ".".join((*parts, *(name.split("::") if name else ())))

    def _root(self) -> PurePosixPath:
        """The folder that dotted names start from: where Django's runner lies, else the work folder."""
        for argument in self.argv:
            if PurePosixPath(argument).name in ("runtests.py", "manage.py"):
                return PurePosixPath(argument).parent
        return PurePosixPath(".")
