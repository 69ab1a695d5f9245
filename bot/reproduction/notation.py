"""How the runner of a test command names tests, and where it writes its reports."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.reproduction.protocol import DJANGO, Target, TestCommand

#: The placeholder for the tests in a command.
PLACE = "{tests}"

_REPORTS = ".bouncer-junit"
_REPORTS_OPTION = re.compile(r"--reports-dir[= ]['\"]?([^\s'\"]+)")
_SOURCES = re.compile(r"^(?P<module>(?:.*/)?)src/(?:test|main)/java/")


def command_line(command: TestCommand, target: Target) -> str:
    """Return the command line that runs one test alone, for people."""
    return shlex.join(arguments(command, [target]))


def arguments(command: TestCommand, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the arguments of a command with ``targets`` inserted, without duplicates."""
    argv = command.argv if any(PLACE in argument for argument in command.argv) else (*command.argv, PLACE)
    if command.naming == "gradle":
        return _for_gradle(argv, [_full(target, ".") for target in targets])
    if command.naming == "maven":
        joined = ",".join(_full(target, "#") for target in targets)
        text = joined if any(f"test={PLACE}" in argument for argument in argv) else f"-Dtest={joined}"
        return _fill(argv, [text], text)
    if command.naming == "console":
        words = [f"--select-{'method' if target.name else 'class'}={_full(target, '#')}" for target in targets]
        if not _REPORTS_OPTION.search(" ".join(argv)):
            words.append(f"--reports-dir={_REPORTS}")
    else:
        words = list(dict.fromkeys(_word(command, target) for target in targets))
    return _fill(argv, words, shlex.join(words))


def report_files(command: TestCommand, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the report files that a Java runner writes by itself, relative to the work folder."""
    if not command.runs_java:
        return ()
    if command.naming == "console":
        reports_dir = _REPORTS_OPTION.search(" ".join(command.argv))
        folder = reports_dir[1] if reports_dir else _REPORTS
        return tuple(str(PurePosixPath(folder) / f"TEST-junit-{engine}.xml") for engine in ("jupiter", "vintage"))
    folder = "target/surefire-reports" if command.naming == "maven" else "build/test-results/test"
    paths: list[str] = []
    for target in targets:
        match = _SOURCES.match(target.path)
        name = _full(target, "#").partition("#")[0]
        paths.append(f"{match['module'] if match else ''}{folder}/TEST-{name}.xml")
    return tuple(dict.fromkeys(paths))


def _word(command: TestCommand, target: Target) -> str:
    """Return a target in the notation of pytest, unittest or Django's runner."""
    name = target.name.split("[", 1)[0] if target.name else None
    if command.naming == "files" or (command.naming == "pytest" and name is None):
        return target.path
    if command.naming == "pytest":
        return f"{target.path}::{name}"
    path = PurePosixPath(target.path)
    # Dotted names start from the folder of Django's runner, else from the work folder.
    runners = (argument for argument in map(PurePosixPath, command.argv) if argument.name in DJANGO)
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
