"""Run tests on a checkout in a sandbox and read their results.

pytest writes a JUnit report: PYTEST_ADDOPTS passes the options through any command. Without a report the output is
read.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os.path import lexists
from pathlib import Path

from bot.reproduction import console, junit
from bot.reproduction.notation import arguments, report_files
from bot.reproduction.pipeline import reproduce_in
from bot.reproduction.protocol import (
    MAX_OUTPUT,
    Author,
    Fetch,
    Options,
    Report,
    Reproduction,
    Target,
    TestCommand,
    TestOutcome,
    TestReport,
    combine,
)
from bot.sandbox.mounts import python_parts
from bot.sandbox.protocol import WORKDIR, Limits, ProgramResult, ProgramRun, Sandbox

#: pytest's report, in the work folder.
REPORT = ".bouncer-junit.xml"
_PYTEST_OPTIONS = ("--junitxml", REPORT, "-o", "junit_family=xunit1", "--tb=short", "--color=no")
#: A JVM reserves far more than it uses, and starts a thread for each core: neither fits a sandbox's limits.
_JAVA_OPTIONS = (
    "-Xmx768m -Xss1m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CICompilerCount=1 -Djava.io.tmpdir=/tmp"
)
_JAVA_ENVIRONMENT = {"JAVA_TOOL_OPTIONS": _JAVA_OPTIONS, "GRADLE_OPTS": "-Dorg.gradle.daemon=false"}
_TRACEBACK = "Traceback (most recent call last)"
_REPORT_LINE = re.compile(
    r"E  |>  |(?:FAILED|ERROR|FAIL|INTERNALERROR|SKIPPED|usage|Caused by|Exception in thread)\b|[=_-]{5,}"
    r"|ImportError\b|Fatal Python error|Ran \d+ test|collect(?:ed|ing) |\s+File \"|[\w./-]{1,200}:\d+: "
    r"|(?:[\w./-]{0,200}/)?(?:sh|env|python[\d.]{0,8}): |\[(?:ERROR|FATAL)\]|npm ERR!"
)


@dataclass(frozen=True)
class SandboxHarness:
    """Implements ``bot.reproduction.protocol.Harness`` with a sandbox, a command, an environment and limits."""

    sandbox: Sandbox
    command: TestCommand
    env: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    by_operator: bool = False
    """The command was typed by the operator, who may name an interpreter anywhere on the host."""

    @property
    def sandbox_name(self) -> str:
        return self.sandbox.name

    def run(self, workdir: Path, targets: Sequence[Target], files: Mapping[str, str]) -> TestReport:
        report_paths = report_files(self.command, targets)
        # A report of an earlier run must not count for this one.
        stale = {
            path: ""
            for path in (REPORT, *report_paths)
            if not (workdir / path).is_dir() and lexists(workdir / path)
        }
        options = f"{self.env.get('PYTEST_ADDOPTS', '')} {shlex.join(_PYTEST_OPTIONS)}".strip()
        outcome = self._execute(
            arguments(self.command, targets),
            workdir,
            {**stale, **files},
            {**(_JAVA_ENVIRONMENT if self.command.runs_java else {}), "PYTEST_ADDOPTS": options},
            (REPORT, *report_paths),
        )
        paths = {target.path for target in targets}
        return report(outcome, paths.pop() if len(paths) == 1 else "", java=self.command.runs_java)

    def _execute(
        self,
        argv: Sequence[str],
        workdir: Path,
        files: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        collect: Sequence[str] = (),
    ) -> ProgramResult:
        readable = self.readable
        if self.by_operator and self.sandbox.host_programs:
            program = operator_program(argv, workdir, self.env)
            argv, readable = program.argv, (*program.readable, *readable)
        return self.sandbox.run(
            ProgramRun(
                argv,
                workdir=workdir,
                files=files or {},
                limits=self.limits,
                env={**self.env, **(env or {})},
                readable=readable,
                collect=collect,
            )
        )

    def output(self, argv: Sequence[str], workdir: Path) -> str:
        return self._execute(argv, workdir).output

    def reproduce(
        self, workdir: Path, report: Report, author: Author, options: Options, fetch: Fetch | None = None
    ) -> Reproduction:
        return reproduce_in(workdir, report, author, self, options, fetch=fetch)


def report(outcome: ProgramResult, path: str = "", *, java: bool = False) -> TestReport:
    """Read the result of a test command. ``path`` is the tests' file if the output does not name it. Pure.

    ``java``: the runner always writes a report; without one nothing was run.
    """
    tests: list[TestOutcome] = []
    for test in _tests(outcome, java):
        frame = test.frame
        if frame is not None and path.endswith(f"/{frame.path}"):
            frame = frame.model_copy(update={"path": path})
        tests.append(test.model_copy(update={"path": test.path or path, "frame": frame}))
    total = combine(tests) if outcome.ending == "exited" else _cut_short(outcome)
    if total.status != "passed" and not total.output:
        total = total.model_copy(update={"output": _error_lines(outcome.output)[-MAX_OUTPUT:].strip()})
    return TestReport(outcome=total, tests=tuple(tests))


def _error_lines(output: str) -> str:
    """Return the lines in which test runners, interpreters and shells report errors.

    All other output stays private, because the result is posted in public.
    """
    lines: list[str] = []
    in_traceback = False
    for line in output.splitlines():
        if line.startswith(_TRACEBACK):
            in_traceback = True
        elif in_traceback and not line.startswith(" "):
            in_traceback = False  # the exception itself: the last line of a traceback
            lines.append(line)
            continue
        if in_traceback or _REPORT_LINE.match(line):
            lines.append(line)
    return "\n".join(lines)


def _tests(outcome: ProgramResult, java: bool) -> tuple[TestOutcome, ...]:
    tests: tuple[TestOutcome, ...] = ()
    for text in outcome.files.values():
        with suppress(junit.MalformedReport):  # without a readable report, the output is read
            tests += junit.parse(text)
    if tests:
        return tests
    if outcome.ending != "exited" or outcome.exit_code is None:
        return ()
    if java:
        return (console.without_report(outcome.output, outcome.exit_code),)
    return console.read(outcome.output, outcome.exit_code)


def _cut_short(outcome: ProgramResult) -> TestOutcome:
    seconds = f"after {outcome.seconds:.1f} s"
    if outcome.ending == "timeout":
        return TestOutcome(status="timeout", message=f"did not end: stopped {seconds}", seconds=outcome.seconds)
    if outcome.ending == "killed":
        return TestOutcome(status="error", phase="crash", message=f"the test run was killed {seconds}")
    message = f"stopped {seconds} at the limit on {outcome.ending}"
    return TestOutcome(status="error", phase="limit", message=message, seconds=outcome.seconds)


@dataclass(frozen=True)
class Program:
    """A command as it runs inside the sandbox, and the host folders that it needs there."""

    argv: tuple[str, ...]
    readable: tuple[Path, ...]


def operator_program(argv: Sequence[str], workdir: Path, env: Mapping[str, str] | None = None) -> Program:
    """Resolve the operator's command ``argv`` as the operator's shell would.

    Only for commands on local files, for which the operator chose command and folders. A repository's command can
    only name programs inside the sandbox, never a folder of the host.

    Paths into ``workdir`` become paths inside the sandbox. A program in a virtual environment or a Python
    installation brings that along, and so do the folders that PYTHONPATH names in ``env``; any other program is
    only there if it is the system's or lies in BOUNCER_SANDBOX_FOLDERS.
    """
    workdir_path = rf"{re.escape(str(workdir.absolute()))}(?=/|$)"
    inside = tuple(re.sub(workdir_path, WORKDIR, argument) for argument in argv)
    paths = _folders_in(env or {})
    if inside[0] != argv[0] or ("/" in argv[0] and not Path(argv[0]).is_absolute()):
        return Program(inside, paths)
    program = Path(argv[0]) if "/" in argv[0] else _program_named(argv[0])
    if program is None:
        return Program(inside, paths)
    homes = (program.parent.parent, program.resolve().parent.parent)
    parts = tuple(part for home in dict.fromkeys(homes) for part in python_parts(home))
    return Program((str(program), *inside[1:]), (*parts, *paths))


def _program_named(name: str) -> Path | None:
    """Return the program that a shell would start, or the one beside the running interpreter; None without one."""
    folders = map(Path, (*os.get_exec_path(), str(Path(sys.executable).parent)))
    # Shims of version managers need files that are not in the sandbox.
    files = [folder / name for folder in folders if folder.is_absolute() and folder.name != "shims"]
    return next((file for file in files if os.access(file, os.X_OK) and file.is_file()), None)


def _folders_in(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the existing absolute folders in PYTHONPATH, except those that contain the home folder."""
    entries = map(Path, env.get("PYTHONPATH", "").split(os.pathsep))
    return tuple(
        entry
        for entry in entries
        if entry.is_absolute() and entry.exists() and not Path.home().is_relative_to(entry.resolve())
    )
