"""Maven, Gradle and JUnit's console launcher: how they name tests, where results lie, what javac says. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from bot.reproduce.outcome import Frame, TestOutcome

if TYPE_CHECKING:
    from bot.reproduce.command import Target

#: Whose command line it is. ``console``: ``{tests}`` becomes the launcher's own selecting options.
Runner = Literal["maven", "gradle", "console"]
RUNNERS: tuple[Runner, ...] = ("maven", "gradle", "console")

_REPORTS = ".bouncer-junit"
_GIVEN = re.compile(r"--reports-dir[= ]['\"]?([^\s'\"]+)")
_SOURCES = re.compile(r"^(?P<module>(?:.*/)?)src/(?:test|main)/java/")
#: javac's own lines, and Maven's: ``[ERROR] /repo/A.java:[3,5] cannot find symbol``.
_COMPLAINT = re.compile(
    r"^(?:\[ERROR\]\s+)?(?P<path>\S+\.java):(?:(?P<line>\d+): error:|\[(?P<row>\d+),\d+\])\s*(?P<message>.+)$",
    re.MULTILINE,
)
#: A JVM reserves far more than it uses, and starts a thread for each core: neither fits a sandbox's limits.
_OPTIONS = "-Xmx768m -Xss1m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CICompilerCount=1 -Djava.io.tmpdir=/tmp"
ENVIRONMENT = {
    "JAVA_TOOL_OPTIONS": _OPTIONS,
    "GRADLE_OPTS": "-Dorg.gradle.daemon=false",
}
_MAX_OUTPUT = 20_000


def runner(words: Sequence[str]) -> Runner | None:
    """Which runner the words of a command line speak of; None for none of Java's."""
    programs = {PurePosixPath(word).name for word in words}
    if programs & {"mvn", "mvnw", "mvnd"}:
        return "maven"
    if programs & {"gradle", "gradlew"}:
        return "gradle"
    if any("junit-platform-console" in word or "ConsoleLauncher" in word for word in words):
        return "console"
    return None


def selected(kind: Runner, argv: Sequence[str], targets: Sequence[Target], place: str) -> tuple[str, ...]:
    """The arguments with ``targets`` where ``place`` stands."""
    if kind == "console":
        options = [f"--select-{'method' if each.name else 'class'}={_full(each, '#')}" for each in targets]
        if not _GIVEN.search(" ".join(argv)):
            options.append(f"--reports-dir={_REPORTS}")
        return _replaced(argv, place, options, shlex.join(options))
    if kind == "maven":
        joined = ",".join(_full(each, "#") for each in targets)
        text = joined if any(f"test={place}" in each for each in argv) else f"-Dtest={joined}"
        return _replaced(argv, place, [text], text)
    names = [_full(each, ".") for each in targets]
    if place in argv and "--tests" in argv:
        at = argv.index(place)
        return (*argv[: at - 1], *(word for name in names for word in ("--tests", name)), *argv[at + 1 :])
    text = " --tests ".join(names)
    text = text if any("--tests" in each for each in argv) else f"--tests {text}"
    return _replaced(argv, place, shlex.split(text), text)


def _replaced(argv: Sequence[str], place: str, words: Sequence[str], text: str) -> tuple[str, ...]:
    filled: list[str] = []
    for argument in argv:
        if argument == place:
            filled += words
        else:
            filled.append(argument.replace(place, text))
    return tuple(filled)


def _full(target: Target, between: str) -> str:
    """``org.x.ATest#method``: the class from the test's name, or from the file's place below its source root."""
    if target.name:
        return target.name.replace("::", between)
    path = _SOURCES.sub("", target.path)
    path = re.sub(r"^(?:tests?|src)/", "", path) if path == target.path else path
    return ".".join(PurePosixPath(path).with_suffix("").parts)


def reports(kind: Runner, argv: Sequence[str], targets: Sequence[Target]) -> tuple[str, ...]:
    """The files, relative to the work folder, in which results of the targets may be left."""
    if kind == "console":
        given = _GIVEN.search(" ".join(argv))
        folder = given[1] if given else _REPORTS
        return tuple(str(PurePosixPath(folder) / f"TEST-junit-{engine}.xml") for engine in ("jupiter", "vintage"))
    folder = "target/surefire-reports" if kind == "maven" else "build/test-results/test"
    found: list[str] = []
    for each in targets:
        match = _SOURCES.match(each.path)
        name = _full(each, "#").partition("#")[0]
        found.append(f"{match['module'] if match else ''}{folder}/TEST-{name}.xml")
    return tuple(dict.fromkeys(found))


def without_report(output: str, exit_code: int | None) -> TestOutcome:
    """What a run that left no report comes to: the compiler's first complaint, or the last thing that was said."""
    complaint = _COMPLAINT.search(output)
    if complaint is None:
        last = next((line for line in reversed(output.strip().splitlines()) if line.strip()), "")
        message = f"no test was run (exit code {exit_code}): {last.strip()[:500]}".rstrip(": ")
        return TestOutcome(status="error", phase="load", message=message, output=output[-_MAX_OUTPUT:].strip())
    line = int(complaint["line"] or complaint["row"])
    said = [complaint["message"].strip()]
    # javac tells which symbol on the lines below.
    said += [each.strip() for each in output[complaint.end() :].splitlines()[1:6] if "symbol:" in each]
    return TestOutcome(
        status="error",
        phase="load",
        exception_type="compilation",
        message=f"line {line}: {'; '.join(said)}",
        frame=Frame(path=complaint["path"].removeprefix("/repo/"), line=line),
        output=output[-_MAX_OUTPUT:].strip(),
    )
