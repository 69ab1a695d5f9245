"""What test runners print: unittest, Django's, javac's complaints, and exceptions and frames in tracebacks.

Pure, and made for text that may be anything. An exit code of 0 is a pass where nothing printed speaks against it.
"""

from __future__ import annotations

import re
from itertools import takewhile

from bot.reproduction.outcome import MAX_OUTPUT, Frame, Phase, TestOutcome
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
_SHOWN = re.compile(r"^E {1,3}(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"
#: The end of a traceback: the exception's own line, the first after the frames that is not indented.
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$")
#: An identifier alone on a line counts as an exception only where it is named like one.
_NAMED_LIKE_ONE = re.compile(
    r"(Error|Exception|Warning|Interrupt|Exit|Failure|Failed|Iteration|Timeout|Skipped|Skip)$"
)


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
        return (_ended("load", "no test was run", output),)
    if exit_code != 0:
        return (_unknown(output, exit_code),)
    skipped = _SKIPPED.search(output)
    if skipped is not None and int(skipped["count"][:9]) >= count:
        return (TestOutcome(status="skipped", output=_tail(output)),)
    return (TestOutcome(status="passed", output=_tail(output)),)


def _block(match: re.Match[str]) -> TestOutcome:
    name, body = match["name"].strip(), _SUMMARY.sub("", match["body"])
    phase = _phase(name, body)
    return _failing(phase, raised(body) or (None, body.strip().rpartition("\n")[2]), body, name)


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
        return _ended("load", "no test was run" + (f": {said[1]}" if said else ""), output)
    if exit_code == 0:
        if _PYTEST_BEGAN.search(output) and not _PYTEST_ENDED.search(output):
            # A test that leaves the process takes the others and the verdict on itself with it.
            return _ended("crash", "the test run ended before its tests did", output)
        return TestOutcome(status="passed", output=_tail(output))
    found = raised(output) or shown_exception(output) or _not_compiled(output)
    if exit_code > 128:
        return _ended("crash", f"the test run died of signal {exit_code - 128}", output)
    if found is None:
        # Nothing was raised that could be read: a runner that does not know its arguments looks like this.
        last = output.strip().rpartition("\n")[2][:500]
        return _ended("load", f"exit code {exit_code}: {last}".rstrip(": "), output)
    # unittest's loader lets through what a module raises on import, but for an ImportError.
    loading = found[0].rpartition(".")[2] in LOAD_ERRORS or "/unittest/loader.py" in output
    return _failing("load" if loading else "call", found, output)


def _not_compiled(output: str) -> tuple[str, str] | None:
    """The complaint about a script that does not even compile: it comes without a traceback's first line."""
    found = _SYNTAX.search(output)
    return None if found is None else (found[1], found[2])


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
    """A path relative to the work folder where it lies inside."""
    return path.removeprefix(f"{WORKDIR}/").removeprefix("./")


def split_exception(text: str) -> tuple[str | None, str]:
    """``ValueError: x`` as (``ValueError``, ``x``).

    pytest leaves the type out where a plain assertion failed: ``assert 1 == 2`` is an AssertionError. Type None
    where the text is no exception's.
    """
    if text.startswith("assert "):
        return "AssertionError", text
    found = _EXCEPTION.fullmatch(text.strip())
    if found is None or not _is_exception(found):
        return None, text
    return found["kind"], found["text"] or ""


def shown_exception(text: str) -> tuple[str, str] | None:
    """Type and message of the exception that pytest marks with ``E``, as for a file that cannot be imported."""
    found = next((each for each in _SHOWN.finditer(text) if _is_exception(each)), None)
    return None if found is None else (found["kind"], found["text"] or "")


def last_frame(text: str) -> Frame | None:
    """The innermost frame of the last traceback in ``text``, in pytest's or Python's own style."""
    found = [*_PYTEST_FRAME.finditer(text), *_NATIVE_FRAME.finditer(text)]
    if not found:
        return None
    last = max(found, key=lambda match: match.start())
    return Frame(path=clean_path(last["path"]), line=int(last["line"][:9]), function=last["function"] or "")


def raised(text: str) -> tuple[str, str] | None:
    """Type and message of the exception that ended the last traceback in ``text``; None where there is none."""
    start = text.rfind(_TRACEBACK)
    if start < 0:
        return None
    lines = text[start:].splitlines()[1:]
    for number, line in enumerate(lines):
        found = _RAISED.match(line)
        if found is not None and _is_exception(found):
            return found["kind"], "\n".join(
                [found["text"] or "", *takewhile(_continues, lines[number + 1 :])]
            ).strip()
    return None


def _is_exception(found: re.Match[str]) -> bool:
    return found["text"] is not None or bool(_NAMED_LIKE_ONE.search(found["kind"]))


def _continues(line: str) -> bool:
    """Whether a line goes on with an exception's message: it is neither empty nor a ruler."""
    return bool(line.strip()) and not re.match(r"[-=_]{8,}", line)


def without_report(output: str, exit_code: int | None) -> TestOutcome:
    """What a run that left no report comes to: the compiler's first complaint, or the last thing that was said."""
    complaint = _COMPLAINT.search(output)
    if complaint is None:
        last = "".join(output.strip().splitlines()[-1:]).strip()[:500]
        return _ended("load", f"no test was run (exit code {exit_code}): {last}".rstrip(": "), output)
    line = int((complaint["line"] or complaint["row"])[:9])
    said = [complaint["message"].strip()]
    # javac tells which symbol on the lines below.
    said += [each.strip() for each in output[complaint.end() :].splitlines()[1:6] if "symbol:" in each]
    return TestOutcome(
        status="error",
        phase="load",
        exception_type="compilation",
        message=f"line {line}: {'; '.join(said)}",
        frame=Frame(path=complaint["path"].removeprefix(f"{WORKDIR}/"), line=line),
        output=_tail(output),
    )
