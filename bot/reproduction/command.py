"""Test commands: insert the tests to run in the notation of the test runner. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from bot.core.frozen import Frozen

#: The placeholder for the tests in a command.
PLACE = "{tests}"

#: ``pytest``: ``a/test_b.py::TestC::test_d``. ``dotted``: ``a.test_b.TestC.test_d``, from the runner's own folder
#: (unittest, Django). ``files``: paths only, for an unknown runner. The others are Java's:
#: ``console`` is JUnit's launcher, whose ``{tests}`` becomes its own selecting options.
Naming = Literal["pytest", "dotted", "files", "maven", "gradle", "console"]

_DJANGO_RUNNERS = ("runtests.py", "manage.py")
_REPORTS = ".bouncer-junit"
_REPORTS_OPTION = re.compile(r"--reports-dir[= ]['\"]?([^\s'\"]+)")
_SOURCES = re.compile(r"^(?P<module>(?:.*/)?)src/(?:test|main)/java/")


class Target(Frozen):
    """A test file to run, or one test in it."""

    path: str = Field(description="relative to the work folder")
    name: str | None = Field(None, description="within the file, ``TestC::test_d``; None = the whole file")


class TestCommand(Frozen):
    """A repository's test command: arguments with ``{tests}`` among them (or else at the end)."""

    __test__ = False

    argv: tuple[str, ...] = Field(min_length=1)

    @classmethod
    def parse(cls, text: str) -> TestCommand:
        """Parse one line as typed in a shell. Raises ValueError if its quotes do not match or it is empty."""
        return cls(argv=tuple(shlex.split(text)))

    @classmethod
    def of_repository(cls, text: str) -> TestCommand:
        """Parse a command of a repository's configuration, which must not name a path on the host.

        Also raises ValueError for an absolute program and for a first word with ``=`` in it.
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
        """The notation of its runner for tests, by the names of the programs in the command."""
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
        return "dotted" if programs & {"unittest", *_DJANGO_RUNNERS} else "files"

    @property
    def runs_java(self) -> bool:
        """True if its runner is one of Java's."""
        return self.naming in ("maven", "gradle", "console")

    def reports(self, targets: Sequence[Target]) -> tuple[str, ...]:
        """Return the report files that a Java runner writes by itself, relative to the work folder."""
        if not self.runs_java:
            return ()
        if self.naming == "console":
            reports_dir = _REPORTS_OPTION.search(" ".join(self.argv))
            folder = reports_dir[1] if reports_dir else _REPORTS
            return tuple(
                str(PurePosixPath(folder) / f"TEST-junit-{engine}.xml") for engine in ("jupiter", "vintage")
            )
        folder = "target/surefire-reports" if self.naming == "maven" else "build/test-results/test"
        paths: list[str] = []
        for target in targets:
            match = _SOURCES.match(target.path)
            name = _full(target, "#").partition("#")[0]
            paths.append(f"{match['module'] if match else ''}{folder}/TEST-{name}.xml")
        return tuple(dict.fromkeys(paths))

    def fill(self, targets: Sequence[Target]) -> tuple[str, ...]:
        """Return the arguments with ``targets`` inserted, without duplicates."""
        argv = self.argv if any(PLACE in argument for argument in self.argv) else (*self.argv, PLACE)
        if self.naming == "gradle":
            return _for_gradle(argv, [_full(target, ".") for target in targets])
        if self.naming == "maven":
            joined = ",".join(_full(target, "#") for target in targets)
            text = joined if any(f"test={PLACE}" in argument for argument in argv) else f"-Dtest={joined}"
            return _fill(argv, [text], text)
        if self.naming == "console":
            words = [f"--select-{'method' if target.name else 'class'}={_full(target, '#')}" for target in targets]
            if not _REPORTS_OPTION.search(" ".join(argv)):
                words.append(f"--reports-dir={_REPORTS}")
        else:
            words = list(dict.fromkeys(self._word(target) for target in targets))
        return _fill(argv, words, shlex.join(words))

    def line(self, target: Target) -> str:
        """Return the command line that runs one test alone, for people."""
        return shlex.join(self.fill([target]))

    def _word(self, target: Target) -> str:
        """Return a target in the notation of pytest, unittest or Django's runner."""
        name = target.name.split("[", 1)[0] if target.name else None
        if self.naming == "files" or (self.naming == "pytest" and name is None):
            return target.path
        if self.naming == "pytest":
            return f"{target.path}::{name}"
        path = PurePosixPath(target.path)
        # Dotted names start from the folder of Django's runner, else from the work folder.
        runners = (argument for argument in map(PurePosixPath, self.argv) if argument.name in _DJANGO_RUNNERS)
        root = next((runner.parent for runner in runners), PurePosixPath("."))
        module = path.relative_to(root) if path.is_relative_to(root) else path
        parts = module.with_suffix("").parts
        return ".".join((*parts, *(name.split("::") if name else ())))


def _for_gradle(argv: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Insert the names, each after its own ``--tests`` option."""
    if PLACE in argv and "--tests" in argv:
        at = argv.index(PLACE)
        return (*argv[: at - 1], *(word for name in names for word in ("--tests", name)), *argv[at + 1 :])
    text = " --tests ".join(names)
    text = text if any("--tests" in argument for argument in argv) else f"--tests {text}"
    return _fill(argv, shlex.split(text), text)


def _fill(argv: Sequence[str], words: Sequence[str], text: str) -> tuple[str, ...]:
    """Replace a placeholder argument by ``words``, and a placeholder within an argument by ``text``."""
    filled: list[str] = []
    for argument in argv:
        if argument == PLACE:
            filled += words
        else:
            filled.append(argument.replace(PLACE, text))
    return tuple(filled)


def _full(target: Target, between: str) -> str:
    """Return ``org.x.ATest#method``: the class by the test's name, or by the path below the source root."""
    if target.name:
        return target.name.replace("::", between)
    path = _SOURCES.sub("", target.path)
    path = re.sub(r"^(?:tests?|src)/", "", path) if path == target.path else path
    return ".".join(PurePosixPath(path).with_suffix("").parts)
