"""Read the output of test runners: unittest, Django, javac's errors, exceptions and frames in tracebacks.

Pure; accepts any text. An exit code of 0 is a pass unless the output says otherwise.
"""

from __future__ import annotations

import re
from itertools import takewhile

from bot.reproduction.protocol import MAX_OUTPUT, Frame, Phase, TestOutcome
from bot.sandbox.protocol import WORKDIR

#: javac's own lines, and Maven's: ``[ERROR] /repo/A.java:[3,5] cannot find symbol``.
_COMPLAINT = re.compile(
    r"^(?:\[ERROR\]\s+)?(?P<path>\S+\.java):(?:(?P<line>\d+): error:|\[(?P<row>\d+),\d+\])\s*(?P<message>.+)$",
    re.MULTILINE,
)
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
_EXCEPTION = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)(?:: ?(?P<text>.*))?", re.DOTALL)
#: pytest's short style: ``src/a.py:3: in f``; its long style: ``src/a.py:3: ValueError``.
_PYTEST_FRAME = re.compile(
    r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+): (?:in (?P<function>\S+)|[\w.]*)\s*$", re.MULTILINE
)
_NATIVE_FRAME = re.compile(
    r'^E?[ \t]+File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?', re.MULTILINE
)
_PYTEST_EXCEPTION = re.compile(r"^E {1,3}(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"
#: The end of a traceback: the exception's own line, the first after the frames that is not indented.
_TRACEBACK_END = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$")
_RULER_LINE = re.compile(r"[-=_]{8,}")
#: An identifier alone on a line counts as an exception only if it is named like one.
_NAMED_LIKE_ONE = re.compile(
    r"(Error|Exception|Warning|Interrupt|Exit|Failure|Failed|Iteration|Timeout|Skipped|Skip)$"
)


def read(output: str, exit_code: int) -> tuple[TestOutcome, ...]:
    """Return the tests in ``output``: failing ones by name, passing ones as one without a name."""
    blocks = []
    for match in _BLOCK.finditer(output):
        name, body = match["name"].strip(), _SUMMARY.sub("", match["body"])
        exception = raised(body) or (None, body.strip().rpartition("\n")[2])
        blocks.append(_failing(_phase(name, body), exception, body, name))
    if blocks:
        return tuple(blocks)
    summary = _RAN.search(output)
    if summary is None:
        return (_unknown(output, exit_code),)
    count = int(summary["count"][:9])
    if count == 0 or _NOTHING_RAN.search(output):
        return (_ended("load", "no test was run", output),)
    if exit_code != 0:
        return (_unknown(output, exit_code),)
    skipped = _SKIPPED.search(output)
    if skipped is not None and int(skipped["count"][:9]) >= count:
        return (TestOutcome(status="skipped", output=_tail(output)),)
    return (TestOutcome(status="passed", output=_tail(output)),)


def _phase(name: str, body: str) -> Phase:
    if _LOADING.search(f"{name}\n{body}"):
        return "load"
    fixture = _FIXTURE.match(name)
    if fixture is None:
        return "call"
    return "setup" if fixture[1] == "setUp" else "teardown"


def _unknown(output: str, exit_code: int) -> TestOutcome:
    """Interpret output that does not mention single tests."""
    if _NOTHING_RAN.search(output):
        refusal = _REFUSED.search(output)
        return _ended("load", "no test was run" + (f": {refusal[1]}" if refusal else ""), output)
    if exit_code <= 128 and _PYTEST_BEGAN.search(output) and not _PYTEST_ENDED.search(output):
        # A test that exits the process ends the other tests too, and hides its own result.
        return _ended("crash", "the test run ended before its tests did", output)
    if exit_code == 0:
        return TestOutcome(status="passed", output=_tail(output))
    exception = raised(output) or shown_exception(output)
    if exception is None and (syntax_error := _SYNTAX.search(output)):
        # A script that does not compile has no traceback header.
        exception = syntax_error[1], syntax_error[2]
    if exit_code > 128:
        return _ended("crash", f"the test run died of signal {exit_code - 128}", output)
    if exception is None:
        # No exception in the output: for example a runner that rejects its arguments.
        last = output.strip().rpartition("\n")[2][:500]
        return _ended("load", f"exit code {exit_code}: {last}".rstrip(": "), output)
    # unittest's loader passes on exceptions of an import, except ImportError.
    loading = exception[0].rpartition(".")[2] in LOAD_ERRORS or "/unittest/loader.py" in output
    return _failing("load" if loading else "call", exception, output)


def _failing(phase: Phase, exception: tuple[str | None, str], output: str, name: str = "") -> TestOutcome:
    return TestOutcome(
        status="failed" if phase == "call" else "error",
        phase=phase,
        exception_type=exception[0],
        message=exception[1],
        frame=last_frame(output),
        output=_tail(output),
        name=name,
    )


def _ended(phase: Phase, message: str, output: str) -> TestOutcome:
    return TestOutcome(status="error", phase=phase, message=message, output=_tail(output))


def _tail(output: str) -> str:
    return output[-MAX_OUTPUT:].strip()


def clean_path(path: str) -> str:
    """Make a path relative to the work folder if it is inside."""
    return path.removeprefix(f"{WORKDIR}/").removeprefix("./")


def split_exception(text: str) -> tuple[str | None, str]:
    """Split ``ValueError: x`` into (``ValueError``, ``x``). The type is None if the text is not an exception's.

    pytest omits the type of a plain assertion: ``assert 1 == 2`` is an AssertionError.
    """
    if text.startswith("assert "):
        return "AssertionError", text
    match = _EXCEPTION.fullmatch(text.strip())
    if match is None or not _is_exception(match):
        return None, text
    return match["kind"], match["text"] or ""


def shown_exception(text: str) -> tuple[str, str] | None:
    """Return type and message of the exception that pytest marks with ``E``, for example for a failed import."""
    match = next((candidate for candidate in _PYTEST_EXCEPTION.finditer(text) if _is_exception(candidate)), None)
    return None if match is None else (match["kind"], match["text"] or "")


def last_frame(text: str) -> Frame | None:
    """Return the innermost frame of the last traceback in ``text``, in pytest's or Python's own style."""
    frames = [*_PYTEST_FRAME.finditer(text), *_NATIVE_FRAME.finditer(text)]
    if not frames:
        return None
    last = max(frames, key=lambda frame: frame.start())
    return Frame(path=clean_path(last["path"]), line=int(last["line"][:9]), function=last["function"] or "")


def raised(text: str) -> tuple[str, str] | None:
    """Return type and message of the exception of the last traceback in ``text``, or None."""
    start = text.rfind(_TRACEBACK)
    if start < 0:
        return None
    lines = text[start:].splitlines()[1:]
    for number, line in enumerate(lines):
        match = _TRACEBACK_END.match(line)
        if match is not None and _is_exception(match):
            # Neither an empty line nor a ruler continues the message.
            following = takewhile(lambda row: row.strip() and not _RULER_LINE.match(row), lines[number + 1 :])
            return match["kind"], "\n".join([match["text"] or "", *following]).strip()
    return None


def _is_exception(match: re.Match[str]) -> bool:
    return match["text"] is not None or bool(_NAMED_LIKE_ONE.search(match["kind"]))


def without_report(output: str, exit_code: int | None) -> TestOutcome:
    """Return the outcome of a run without a report: the compiler's first error, or the last line of output."""
    complaint = _COMPLAINT.search(output)
    if complaint is None:
        last = "".join(output.strip().splitlines()[-1:]).strip()[:500]
        return _ended("load", f"no test was run (exit code {exit_code}): {last}".rstrip(": "), output)
    line = int((complaint["line"] or complaint["row"])[:9])
    sentences = [complaint["message"].strip()]
    # javac names the symbol on the following lines.
    sentences += [row.strip() for row in output[complaint.end() :].splitlines()[1:6] if "symbol:" in row]
    return TestOutcome(
        status="error",
        phase="load",
        exception_type="compilation",
        message=f"line {line}: {'; '.join(sentences)}",
        frame=Frame(path=complaint["path"].removeprefix(f"{WORKDIR}/"), line=line),
        output=_tail(output),
    )
