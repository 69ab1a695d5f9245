"""The interface of running and drafting a repository's tests: the command, outcomes of tests, and drafted tests.

A command has its tests in the notation of its runner (see ``notation``). Outcomes do not depend on the runner.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal, Protocol

from pydantic import Field

from bot.core.actions import Usage
from bot.core.config import ReproduceConfig
from bot.core.errors import UserError
from bot.core.frozen import Frozen
from bot.core.subjects import Repository
from bot.models.protocol import Model, Templates

#: ``pytest``: ``a/test_b.py::TestC::test_d``. ``dotted``: ``a.test_b.TestC.test_d``, from the runner's own folder
#: (unittest, Django). ``files``: paths only, for an unknown runner. The others are Java's:
#: ``console`` is JUnit's launcher, whose ``{tests}`` becomes its own selecting options.
Naming = Literal["pytest", "dotted", "files", "maven", "gradle", "console"]

#: Programs of Django's test runner.
DJANGO = ("runtests.py", "manage.py")


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
        argv = tuple(shlex.split(text))
        if not argv:
            raise ValueError("it is empty")
        return cls(argv=argv)

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
        return "dotted" if programs & {"unittest", *DJANGO} else "files"

    @property
    def runs_java(self) -> bool:
        """True if its runner is one of Java's."""
        return self.naming in ("maven", "gradle", "console")


#: Characters of a run's output that are kept.
MAX_OUTPUT = 20_000

Status = Literal["passed", "failed", "error", "skipped", "timeout"]

#: The phase in which a test that did not pass ended. ``load``: it could not be compiled, imported or found.
#: ``setup`` and ``teardown``: in a fixture. ``call``: in the test itself. ``limit``: a limit of the sandbox other
#: than time. ``crash``: the interpreter died.
Phase = Literal["load", "setup", "call", "teardown", "limit", "crash"]


class Frame(Frozen):
    """A place in the code that a traceback names."""

    path: str = Field(description="relative to the work folder if it lies inside")
    line: int = Field(ge=0, description="from 1; 0 if unknown")
    function: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + (f" in {self.function}" if self.function else "")


class TestOutcome(Frozen):
    """The outcome of one test, or of several together."""

    __test__: ClassVar[bool] = False  # not a test itself, for pytest

    status: Status
    phase: Phase | None = Field(None, description="None if it passed or was skipped, and for a timeout")
    exception_type: str | None = Field(None, description="as printed, with or without its module")
    message: str = Field("", description="the exception's text, or why there is no result")
    frame: Frame | None = Field(None, description="where the exception was raised")
    output: str = Field("", description="traceback, or the output if there is none; cut")
    name: str = Field("", description="the test as its runner names it; empty for several tests as one")
    path: str = Field("", description="its file relative to the work folder; empty if unknown")
    seconds: float = Field(0.0, ge=0)

    @property
    def fails(self) -> bool:
        """True if it ran and did not pass. False if it was skipped, could not be loaded, or broke in teardown."""
        if self.status == "error":
            return self.phase in ("setup", "call", "limit", "crash")
        return self.status in ("failed", "timeout")

    @property
    def kind(self) -> str:
        """The exception's name without package, as in a report; without an exception, the way it ended."""
        if self.exception_type:
            return re.split(r"[.$]", self.exception_type)[-1]
        if self.status == "timeout":
            return "timeout"
        return self.phase if self.phase in ("crash", "limit") else ""

    @property
    def in_test(self) -> bool:
        """True if the test's own lines raised the exception, not code that they called."""
        return self.frame is not None and bool(self.path) and self.frame.path == self.path


class TestReport(Frozen):
    """One run of a test command: its tests, and their combined outcome.

    A pass is reported by the process of the code under test, which could have forged it.
    """

    __test__: ClassVar[bool] = False

    outcome: TestOutcome
    tests: tuple[TestOutcome, ...] = ()


_ORDER: tuple[Status, ...] = ("failed", "timeout", "error", "passed", "skipped")


def combine(tests: Sequence[TestOutcome]) -> TestOutcome:
    """Combine outcomes: the first of the worst status. No test at all is an error."""
    if not tests:
        return TestOutcome(status="error", phase="load", message="no test was run")
    return min(tests, key=lambda test: _ORDER.index(test.status))


class Execution(Frozen):
    """Two runs of a test on the same files."""

    first: TestReport
    second: TestReport

    @property
    def outcome(self) -> TestOutcome:
        return self.first.outcome

    @property
    def flaky(self) -> bool:
        return essence(self.first) != essence(self.second)


def essence(report: TestReport) -> tuple[object, ...]:
    """Return a key that is equal for two runs of the same tests on the same files unless they are flaky."""
    return tuple(sorted((test.name, test.status, test.exception_type or "") for test in report.tests)) or (
        report.outcome.status,
        report.outcome.exception_type,
    )


class SetupFailed(UserError):
    """A set-up command of the repository failed; the message has the command and the installers' errors."""


class Report(Frozen):
    """A bug report."""

    title: str
    body: str = Field("", description="Markdown")
    number: int | None = Field(None, description="the issue's number; None for a report from another tracker")

    @property
    def text(self) -> str:
        return f"{self.title}\n\n{self.body}".strip()


#: Returns the report of an issue by its number, or None if it cannot be read.
Fetch = Callable[[int], Report | None]


@dataclass(frozen=True)
class Author:
    """The model that drafts, its prompts, and the subject under which questions are recorded."""

    model: Model
    prompts: Templates
    subject: str = ""


class Options(Frozen):
    """A maintainer's options for one reproduction."""

    samples: int = 10
    threshold: int = 1
    pick: bool = False
    match: bool = True
    """Suggest only failures that match the report; False: select by agreement alone, as LIBRO."""
    seconds: float = 1800.0
    probe: bool = Field(True, description="check first that tests can be run here at all")
    turn: bool = Field(True, description="invert drafts that pass")
    repair: bool = Field(True, description="let the model repair drafts that cannot be used")
    framed: bool = Field(True, description="show the whole report, its example and the expected result in turn")
    repairs: int = Field(3, description="how often a draft is repaired, with the output of its run")
    patches: int = Field(2, description="drafted repairs of the bug; tests that pass with one rank first")

    @classmethod
    def configured(cls, config: ReproduceConfig) -> Options:
        """Return what bouncer.yml asks for."""
        names = {"samples", "threshold", "pick", "repairs", "patches"}
        return cls(**config.model_dump(include=names))


#: ``reported``: the failure is the reported one. ``plausible``: a wrong result or a missing exception that does
#: not contradict the report. ``other``: it fails for another reason.
Grade = Literal["other", "plausible", "reported"]

#: ``unusable``: the draft cannot be put into a file or loaded. The others are its result on the present code.
Fate = Literal["unusable", "passed", "failed", "skipped", "not run"]

#: The three states that people see.
State = Literal["reproduced", "not reproduced", "not run"]


class Injected(Frozen):
    """A file with a drafted test in it."""

    content: str = Field(description="the whole test file with the test in it")
    name: str = Field(description="the test within its file, as the runner names it: ``TestA::test_b``")
    code: str = Field(description="what was added, for people to read")


class Candidate(Injected):
    """A draft in a test file, ready to run."""

    number: int = Field(description="which draft; unique among the drafts of a report")
    draft: str = Field(description="as the model wrote it")
    path: str = Field(description="the test file, relative to the repository")
    new_file: bool
    syntax: str = Field(description="normal form: equal for tests written alike")
    tokens: int = Field(ge=0, description="length of what was added, lexical tokens")

    @property
    def target(self) -> Target:
        return Target(path=self.path, name=self.name)


class Attempt(Frozen):
    """One draft and its result."""

    number: int
    fate: Fate
    why: str = Field("", description="reason for the fate in one sentence; empty if it failed as reported")
    repaired: bool = False
    fault: Literal["", "environment", "interface"] = Field(
        "", description="the reason that the model gives for not repairing it"
    )
    inverted: bool = Field(False, description="it passed as drafted, and its last assertion was inverted")
    flaky: bool = False
    outcome: TestOutcome | None = Field(None, description="None if it was never run")
    candidate: Candidate | None = Field(None, description="None if it could not be put into a file")


class OfferedTest(Frozen):
    """A test that fails as reported, to be offered to people."""

    candidate: Candidate
    outcome: TestOutcome
    agreeing: int = Field(ge=1, description="drafts that fail in the same way, this one included")
    grade: Grade
    command: str = Field("", description="the command line that runs this test alone")
    repairs: int = Field(0, ge=0, description="drafted repairs of the bug with which it passes")


class Reproduction(Frozen):
    """The result for one report."""

    state: State
    reason: str = Field("", description="one sentence; why no test is offered, if none is")
    environment: bool = Field(False, description="not one test can be run here; no model was asked")
    abstained: Literal["", "environment", "interface"] = Field(
        "", description="why no test can be drafted, if its author says so; the details are in the reason"
    )
    tests: tuple[OfferedTest, ...] = Field((), description="best first; never empty if ``state`` is reproduced")
    attempts: tuple[Attempt, ...] = ()
    drafts: int = Field(0, ge=0, description="drafts that the model gave")
    failures: tuple[str, ...] = Field((), description="error codes of questions that the model did not answer")
    sandbox: str = Field("", description="the runner; empty if nothing was run")
    usage: Usage = Usage()
    model: str = ""

    @property
    def best(self) -> OfferedTest | None:
        return self.tests[0] if self.tests else None


class Harness(Protocol):
    """The way to run a repository's tests on a checkout, which is never changed."""

    @property
    def command(self) -> TestCommand: ...

    @property
    def sandbox_name(self) -> str:
        """The runner, as recorded in evidence."""
        ...

    def run(self, workdir: Path, targets: Sequence[Target], files: Mapping[str, str]) -> TestReport:
        """Run ``targets`` on a copy of ``workdir`` with ``files`` (path -> text) on top.

        Raises SandboxError only if the sandbox itself fails; every result of the tests is a report.
        """
        ...

    def output(self, argv: Sequence[str], workdir: Path) -> str:
        """Return what a program prints in the environment of the tests, on a copy of ``workdir``."""
        ...

    def reproduce(
        self, workdir: Path, report: Report, author: Author, options: Options, fetch: Fetch | None = None
    ) -> Reproduction:
        """Draft tests for ``report``, run them on a copy of ``workdir``, and choose.

        Examples are the repository's own if ``fetch`` can read its issues. Raises ModelError if the model gave no
        draft at all, BudgetExceeded if the budget ended before a reproducing test was found, TransientError if a
        later try may succeed, SandboxError if the sandbox fails.
        """
        ...


def run_twice(harness: Harness, workdir: Path, target: Target, files: Mapping[str, str]) -> Execution:
    """Run a test twice, to detect a flaky one."""
    first, second = (harness.run(workdir, [target], files) for _ in range(2))
    return Execution(first=first, second=second)


class Harnesses(Protocol):
    """Makes harnesses for checkouts."""

    def prepared(
        self, checkout: Path, command: TestCommand, repository: Repository, config: ReproduceConfig
    ) -> AbstractContextManager[Harness]:
        """Return a harness for a checkout of the default branch, or of a base on it, after its set-up.

        Raises SandboxError if the sandbox fails, SetupFailed if a set-up command fails.
        """
        ...
