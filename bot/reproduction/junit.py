"""Read JUnit XML of pytest and of Java's runners. It is untrusted: the tested program may have written it.

A document type is refused, so that no entity is expanded; depth, length and the number of tests are capped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from xml.etree.ElementTree import Element

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, iterparse

from bot.reproduction.console import clean_path, last_frame, shown_exception, split_exception
from bot.reproduction.protocol import MAX_OUTPUT, Frame, Phase, Status, TestOutcome

#: Characters of one report; a run of ten thousand failing tests stays below.
MAX_LENGTH = 16 << 20
_MAX_TESTS = 20_000
_MAX_DEPTH = 20
_STATUSES: Mapping[str, Status] = {"failure": "failed", "error": "error", "skipped": "skipped"}
#: pytest fails an asynchronous test if no plugin runs it.
_NO_PLUGIN = "async def functions are not natively supported."
_FIXTURE = re.compile(r'^failed on (setup|teardown) with "(.*)"\s*$', re.DOTALL)


class MalformedReport(ValueError):
    """The text is not a JUnit report within the limits."""


def parse(text: str) -> tuple[TestOutcome, ...]:
    """Return every test in a report, in order. Raises MalformedReport."""
    if len(text) > MAX_LENGTH:
        raise MalformedReport(f"over {MAX_LENGTH} characters")
    try:
        return tuple(_tests(BytesIO(text.encode("utf-8", "replace"))))
    except DefusedXmlException as error:
        raise MalformedReport("it declares a document type") from error
    except (ParseError, LookupError, ValueError) as error:  # the last two: an encoding that cannot be read
        raise MalformedReport(str(error)) from error


def _tests(stream: BytesIO) -> Iterator[TestOutcome]:
    count = 0
    case: dict[str, str] | None = None
    results: dict[str, tuple[dict[str, str], str]] = {}
    ancestors: list[Element] = []
    for event, element in iterparse(stream, events=("start", "end"), forbid_dtd=True):
        if event == "start":
            ancestors.append(element)
            if len(ancestors) > _MAX_DEPTH or count >= _MAX_TESTS:
                raise MalformedReport("nested too deeply, or too many tests")
            if element.tag == "testcase":
                case, results = element.attrib, {}
            continue
        ancestors.pop()
        if case is not None and element.tag in _STATUSES:
            results[element.tag] = (element.attrib, element.text or "")
        elif case is not None and element.tag == "testcase":
            yield _outcome(case, results)
            case, count = None, count + 1
        if ancestors:
            del ancestors[-1][:]  # the tree of a large report is not kept in memory


def _outcome(case: dict[str, str], results: dict[str, tuple[dict[str, str], str]]) -> TestOutcome:
    method = case.get("name", "").removesuffix("()")  # JUnit 5 writes the method with its parameters
    name = ".".join(part for part in (case.get("classname", ""), method) if part)
    path = clean_path(case.get("file", ""))
    base = TestOutcome(status="passed", name=name, path=path, seconds=_seconds(case))
    for tag, status in _STATUSES.items():
        if tag in results:
            attributes, text = results[tag]
            message = attributes.get("message", "")
            if status == "skipped":
                return base.model_copy(update={"status": status, "message": message})
            if exception := attributes.get("type", ""):
                # Java's runners name the exception in an attribute, pytest in the message.
                return base.model_copy(update=_java_failure(status, exception, message, text))
            return base.model_copy(update=_pytest_failure(status, message, text))
    return base


_JAVA_FRAME = re.compile(
    r"^\s*at (?:[\w.$]+/)?(?P<method>[\w.$<>]+)\((?P<file>\w+\.java):(?P<line>\d+)\)", re.MULTILINE
)
_LIBRARY = re.compile(r"(?:java|javax|jdk|sun|org\.junit|junit|org\.opentest4j|org\.hamcrest|org\.assertj)\.")


def _java_failure(status: Status, exception: str, message: str, text: str) -> dict[str, object]:
    """Read a failure in a report of surefire, Gradle or the console launcher."""
    frames = [frame for frame in _JAVA_FRAME.finditer(text) if not _LIBRARY.match(frame["method"])]
    place = frames[0] if frames else None
    loading = "initializationError" in text[:200] or exception.endswith(
        ("JUnitException", "ClassNotFoundException")
    )
    return {
        "status": status,
        "phase": "load" if status == "error" and loading and not frames else "call",
        "exception_type": exception,
        "message": message.removeprefix(f"{exception}: ")[:MAX_OUTPUT],
        "frame": place
        and Frame(path=place["file"], line=int(place["line"][:9]), function=place["method"].rpartition(".")[2]),
        "output": text[:MAX_OUTPUT].strip(),
    }


def _pytest_failure(status: Status, message: str, text: str) -> dict[str, object]:
    phase: Phase = "call"
    if status == "error":
        fixture = _FIXTURE.match(message)
        phase = "load" if fixture is None else "setup" if fixture[1] == "setup" else "teardown"
        message = message if fixture is None else fixture[2]
    exception, message = (
        (shown_exception(text) or (None, message)) if phase == "load" else split_exception(message)
    )
    if message.startswith(_NO_PLUGIN):
        status, phase = "error", "load"
    return {
        "status": status,
        "phase": phase,
        "exception_type": exception,
        "message": message[:MAX_OUTPUT],
        "frame": last_frame(text),
        "output": text[-MAX_OUTPUT:].strip(),
    }


def _seconds(case: dict[str, str]) -> float:
    try:
        return min(1e6, max(0.0, float(case.get("time", "0"))))
    except ValueError:
        return 0.0
