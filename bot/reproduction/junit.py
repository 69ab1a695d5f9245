"""Read JUnit XML of pytest and of Java's runners. It is untrusted: the tested program may have written it.

A document type is refused, so that no entity is expanded; depth, length and the number of tests are capped.
"""

from __future__ import annotations

import re
from typing import Any
from xml.sax import SAXException
from xml.sax.handler import ContentHandler

from defusedxml import DefusedXmlException
from defusedxml.expatreader import create_parser

from bot.reproduction.console import clean_path, last_frame, shown_exception, split_exception
from bot.reproduction.outcome import MAX_OUTPUT, Frame, Phase, Status, TestOutcome

#: Characters of one report; a run of ten thousand failing tests stays below.
MAX_LENGTH = 16 << 20
_MAX_TESTS = 20_000
_MAX_DEPTH = 20
_RESULTS = frozenset({"failure", "error", "skipped"})
_FIXTURE = re.compile(r'^failed on (setup|teardown) with "(.*)"\s*$', re.DOTALL)


class MalformedReport(ValueError):
    """The text is not a JUnit report within the limits."""


def parse(text: str) -> tuple[TestOutcome, ...]:
    """Return every test in a report, in order. Raises MalformedReport."""
    if len(text) > MAX_LENGTH:
        raise MalformedReport(f"over {MAX_LENGTH} characters")
    reader, parser = _Reader(), create_parser(forbid_dtd=True)
    parser.setContentHandler(reader)
    try:
        parser.feed(text.encode("utf-8", "replace"))
        parser.close()
    except DefusedXmlException as error:
        raise MalformedReport("it declares a document type") from error
    except SAXException as error:
        raise MalformedReport(str(error)) from error
    return tuple(reader.tests)


class _Reader(ContentHandler):
    """Collects test cases while the document streams by."""

    def __init__(self) -> None:
        super().__init__()
        self.tests: list[TestOutcome] = []
        self._depth = 0
        self._case: dict[str, str] | None = None
        self._results: dict[str, tuple[dict[str, str], str]] = {}
        self._open: str | None = None
        self._text: list[str] = []

    def startElement(self, name: str, attrs: Any) -> None:
        attributes = dict(attrs)
        self._depth += 1
        if self._depth > _MAX_DEPTH or len(self.tests) >= _MAX_TESTS:
            raise MalformedReport("nested too deeply, or too many tests")
        if name == "testcase":
            self._case, self._results, self._open = attributes, {}, None
        elif name in _RESULTS and self._case is not None:
            self._open, self._text = name, []
            self._results[name] = (attributes, "")

    def characters(self, content: str) -> None:
        if self._open is not None:
            self._text.append(content)

    def endElement(self, name: str) -> None:
        self._depth -= 1
        if name == self._open:
            self._results[name] = (self._results[name][0], "".join(self._text))
            self._open = None
        elif name == "testcase" and self._case is not None:
            self.tests.append(_outcome(self._case, self._results))
            self._case = None


def _outcome(case: dict[str, str], results: dict[str, tuple[dict[str, str], str]]) -> TestOutcome:
    path = clean_path(case.get("file", ""))
    base = TestOutcome(status="passed", name=_name(case), path=path, seconds=_seconds(case))
    for kind, status in _STATUSES:
        if kind in results:
            attributes, text = results[kind]
            message = attributes.get("message", "")
            if status == "skipped":
                return base.model_copy(update={"status": status, "message": message})
            if kind_of := attributes.get("type", ""):
                # Java's runners name the exception in an attribute, pytest in the message.
                return base.model_copy(update=_thrown(status, kind_of, message, text))
            return base.model_copy(update=_failed(status, message, text))
    return base


_JAVA_FRAME = re.compile(
    r"^\s*at (?:[\w.$]+/)?(?P<method>[\w.$<>]+)\((?P<file>\w+\.java):(?P<line>\d+)\)", re.MULTILINE
)
_LIBRARY = re.compile(r"(?:java|javax|jdk|sun|org\.junit|junit|org\.opentest4j|org\.hamcrest|org\.assertj)\.")


def _thrown(status: Status, kind: str, message: str, text: str) -> dict[str, object]:
    """Read a failure in a report of surefire, Gradle or the console launcher."""
    frames = [frame for frame in _JAVA_FRAME.finditer(text) if not _LIBRARY.match(frame["method"])]
    place = frames[0] if frames else None
    loading = "initializationError" in text[:200] or kind.endswith(("JUnitException", "ClassNotFoundException"))
    return {
        "status": status,
        "phase": "load" if status == "error" and loading and not frames else "call",
        "exception_type": kind,
        "message": message.removeprefix(f"{kind}: ")[:MAX_OUTPUT],
        "frame": place
        and Frame(path=place["file"], line=int(place["line"][:9]), function=place["method"].rpartition(".")[2]),
        "output": text[:MAX_OUTPUT].strip(),
    }


_STATUSES: tuple[tuple[str, Status], ...] = (("failure", "failed"), ("error", "error"), ("skipped", "skipped"))


def _failed(status: Status, message: str, text: str) -> dict[str, object]:
    phase, message = _phase(status, message)
    kind, message = (shown_exception(text) or (None, message)) if phase == "load" else split_exception(message)
    return {
        "status": status,
        "phase": phase,
        "exception_type": kind,
        "message": message[:MAX_OUTPUT],
        "frame": last_frame(text),
        "output": text[-MAX_OUTPUT:].strip(),
    }


def _phase(status: Status, message: str) -> tuple[Phase, str]:
    if status == "failed":
        return "call", message
    fixture = _FIXTURE.match(message)
    if fixture is None:
        return "load", message
    return ("setup" if fixture[1] == "setup" else "teardown"), fixture[2]


def _name(case: dict[str, str]) -> str:
    name = case.get("name", "").removesuffix("()")  # JUnit 5 writes the method with its parameters
    return ".".join(part for part in (case.get("classname", ""), name) if part)


def _seconds(case: dict[str, str]) -> float:
    try:
        return min(1e6, max(0.0, float(case.get("time", "0"))))
    except ValueError:
        return 0.0
