"""What test runners print that write no report: unittest, Django's, and anything that ends in a traceback.

Pure. An exit code of 0 is a pass where nothing printed speaks against it.
"""

from __future__ import annotations

import re

from bot.reproduce.outcome import Phase, TestOutcome
from bot.reproduce.tracebacks import last_frame, raised, shown_exception

_MAX_OUTPUT = 20_000
_RULER = "=" * 70
#: One failing test as unittest prints it: a ruler, ``FAIL: test_x (a.b.TestC)``, a thinner ruler, a traceback.
_BLOCK = re.compile(
    rf"^{_RULER}\r?\n(?P<kind>FAIL|ERROR): (?P<name>.+?)\r?\n(?P<body>.*?)(?=^{_RULER}|\Z)",
    re.DOTALL | re.MULTILINE,
)
_RAN = re.compile(r"^Ran (?P<count>\d+) tests? in ", re.MULTILINE)
_SKIPPED = re.compile(r"^(?:OK|FAILED) \(.*?skipped=(?P<count>\d+)", re.MULTILINE)
_SUMMARY = re.compile(r"^-{70}\r?\nRan \d+ tests? in .*", re.DOTALL | re.MULTILINE)
_LOADING = re.compile(
    r"unittest\.loader\.(_FailedTest|ModuleImportFailure|ModuleSkipped)|^Failed to import test module",
    re.MULTILINE,
)
_FIXTURE = re.compile(r"^(setUp|tearDown)(Class|Module) \(")
#: Exceptions that a file raises while it is loaded, not while its tests run.
LOAD_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "TabError"})
_SYNTAX = re.compile(r"^(SyntaxError|IndentationError|TabError): (.*)$", re.MULTILINE)
_REFUSED = re.compile(r"^ERROR: (.{1,500})", re.MULTILINE)
_PYTEST_BEGAN = re.compile(r"^=+ test session starts =+\r?$", re.MULTILINE)
_PYTEST_ENDED = re.compile(r"^=+ .{1,500} in [0-9.]+s.{0,100} =+\r?$", re.MULTILINE)
_NOTHING_RAN = re.compile(r"^(NO TESTS RAN|no tests ran|collected 0 items)\b", re.MULTILINE)


def read(output: str, exit_code: int) -> tuple[TestOutcome, ...]:
    """The tests that ``output`` tells of: failing ones by name, passing ones as one without a name."""
    blocks = tuple(_block(match) for match in _BLOCK.finditer(output))
    ran = _RAN.search(output)
    if ran is None and not blocks:
        return (_unknown(output, exit_code),)
    count = int(ran["count"][:9]) if ran is not None else 0
    if blocks:
        return blocks
    if count == 0 or _NOTHING_RAN.search(output):
        return (_ended("error", "load", "no test was run", output),)
    if exit_code != 0:
        return (_unknown(output, exit_code),)
    skipped = _SKIPPED.search(output)
    if skipped is not None and int(skipped["count"][:9]) >= count:
        return (TestOutcome(status="skipped", output=_tail(output)),)
    return (TestOutcome(status="passed", output=_tail(output)),)


def _block(match: re.Match[str]) -> TestOutcome:
    name, body = match["name"].strip(), _SUMMARY.sub("", match["body"])
    phase = _phase(name, body)
    kind, message = raised(body) or (None, body.strip().rpartition("\n")[2])
    return TestOutcome(
        status="failed" if phase == "call" else "error",
        phase=phase,
        exception_type=kind,
        message=message,
        frame=last_frame(body),
        output=_tail(body),
        name=name,
    )


def _phase(name: str, body: str) -> Phase:
    if _LOADING.search(f"{name}\n{body}"):
        return "load"
    fixture = _FIXTURE.match(name)
    if fixture is None:
        return "call"
    return "setup" if fixture[1] == "setUp" else "teardown"


def _unknown(output: str, exit_code: int) -> TestOutcome:
    """A runner whose output says nothing about single tests."""
    if _NOTHING_RAN.search(output):
        said = _REFUSED.search(output)
        return _ended("error", "load", "no test was run" + (f": {said[1]}" if said else ""), output)
    if exit_code == 0:
        if _PYTEST_BEGAN.search(output) and not _PYTEST_ENDED.search(output):
            # A test that leaves the process takes the others and the verdict on itself with it.
            return _ended("error", "crash", "the test run ended before its tests did", output)
        return TestOutcome(status="passed", output=_tail(output))
    found = raised(output) or shown_exception(output) or _not_compiled(output)
    if exit_code > 128:
        return _ended("error", "crash", f"the test run died of signal {exit_code - 128}", output)
    if found is None:
        # Nothing was raised that could be read: a runner that does not know its arguments looks like this.
        last = output.strip().rpartition("\n")[2][:500]
        return _ended("error", "load", f"exit code {exit_code}: {last}".rstrip(": "), output)
    kind, message = found
    # unittest's loader lets through what a module raises on import, but for an ImportError.
    loading = kind.rpartition(".")[2] in LOAD_ERRORS or "/unittest/loader.py" in output
    phase: Phase = "load" if loading else "call"
    return TestOutcome(
        status="error" if phase == "load" else "failed",
        phase=phase,
        exception_type=kind,
        message=message,
        frame=last_frame(output),
        output=_tail(output),
    )


def _not_compiled(output: str) -> tuple[str, str] | None:
    """The complaint about a script that does not even compile: it comes without a traceback's first line."""
    found = _SYNTAX.search(output)
    return None if found is None else (found[1], found[2])


def _ended(status: str, phase: Phase, message: str, output: str) -> TestOutcome:
    return TestOutcome.model_validate(
        {"status": status, "phase": phase, "message": message, "output": _tail(output)}
    )


def _tail(output: str) -> str:
    return output[-_MAX_OUTPUT:].strip()
