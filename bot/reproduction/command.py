"""A test command and the tests that it is to run, put together in the way that its runner names tests. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen

#: The element of a command that the tests take the place of.
PLACE = "{tests}"

#: ``pytest``: ``a/test_b.py::TestC::test_d``. ``dotted``: ``a.test_b.TestC.test_d``, from the runner's own folder
#: (unittest, Django). ``files``: paths only, for a runner of which nothing is known. The others are Java's:
#: ``console`` is JUnit's launcher, whose ``{tests}`` becomes its own selecting options.
Naming = Literal["pytest", "dotted", "files", "maven", "gradle", "console"]

_REPORTS = ".bouncer-junit"
_GIVEN = re.compile(r"--reports-dir[= ]['\"]?([^\s'\"]+)")
_SOURCES = re.compile(r"^(?P<module>(?:.*/)?)src/(?:test|main)/java/")


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
        words = [word for argument in self.argv for word in argument.split()]
        programs = {PurePosixPath(word).name for word in words}
        if programs & {"pytest", "py.test"}:
            return "pytest"
        if programs & {"mvn", "mvnw", "mvnd"}:
            return "maven"
        if programs & {"gradle", "gradlew"}:
            return "gradle"
        if any("junit-platform-console" in word or "ConsoleLauncher" in word for word in words):
            return "console"
        return "dotted" if programs & {"unittest", "runtests.py", "manage.py"} else "files"

    @property
    def runs_java(self) -> bool:
        """Whether its runner is one of Java's."""
        return self.naming in ("maven", "gradle", "console")

    def reports(self, targets: Sequence[Target]) -> tuple[str, ...]:
        """Where one of Java's runners leaves reports by itself: files relative to the work folder."""
        if not self.runs_java:
            return ()
        if self.naming == "console":
            given = _GIVEN.search(" ".join(self.argv))
            folder = given[1] if given else _REPORTS
            return tuple(
                str(PurePosixPath(folder) / f"TEST-junit-{engine}.xml") for engine in ("jupiter", "vintage")
            )
        folder = "target/surefire-reports" if self.naming == "maven" else "build/test-results/test"
        found: list[str] = []
        for each in targets:
            match = _SOURCES.match(each.path)
            name = _full(each, "#").partition("#")[0]
            found.append(f"{match['module'] if match else ''}{folder}/TEST-{name}.xml")
        return tuple(dict.fromkeys(found))

    def fill(self, targets: Sequence[Target]) -> tuple[str, ...]:
        """The arguments with ``targets`` in their place, each one once."""
        argv = self.argv if any(PLACE in argument for argument in self.argv) else (*self.argv, PLACE)
        if self.naming == "gradle":
            return _for_gradle(argv, [_full(each, ".") for each in targets])
        if self.naming == "maven":
            joined = ",".join(_full(each, "#") for each in targets)
            text = joined if any(f"test={PLACE}" in each for each in argv) else f"-Dtest={joined}"
            return _replaced(argv, [text], text)
        if self.naming == "console":
            named = [f"--select-{'method' if each.name else 'class'}={_full(each, '#')}" for each in targets]
            if not _GIVEN.search(" ".join(argv)):
                named.append(f"--reports-dir={_REPORTS}")
        else:
            named = list(dict.fromkeys(self._named(target) for target in targets))
        return _replaced(argv, named, shlex.join(named))

    def line(self, target: Target) -> str:
        """The command line that runs one test alone, for people."""
        return shlex.join(self.fill([target]))

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


def _for_gradle(argv: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Gradle takes each name behind an option of its own."""
    if PLACE in argv and "--tests" in argv:
        at = argv.index(PLACE)
        return (*argv[: at - 1], *(word for name in names for word in ("--tests", name)), *argv[at + 1 :])
    text = " --tests ".join(names)
    text = text if any("--tests" in each for each in argv) else f"--tests {text}"
    return _replaced(argv, shlex.split(text), text)


def _replaced(argv: Sequence[str], words: Sequence[str], text: str) -> tuple[str, ...]:
    """The arguments with ``words`` for the place by itself, and ``text`` for it within an argument."""
    filled: list[str] = []
    for argument in argv:
        if argument == PLACE:
            filled += words
        else:
            filled.append(argument.replace(PLACE, text))
    return tuple(filled)


def _full(target: Target, between: str) -> str:
    """``org.x.ATest#method``: the class from the test's name, or from the file's place below its source root."""
    if target.name:
        return target.name.replace("::", between)
    path = _SOURCES.sub("", target.path)
    path = re.sub(r"^(?:tests?|src)/", "", path) if path == target.path else path
    return ".".join(PurePosixPath(path).with_suffix("").parts)
