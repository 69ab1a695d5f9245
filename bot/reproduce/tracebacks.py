"""Exceptions and frames in what Python and pytest print. Pure, and made for text that may be anything."""

from __future__ import annotations

import re

from bot.reproduce.outcome import Frame
from bot.sandbox.protocol import WORKDIR

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
    if found is None or (found["text"] is None and not _NAMED_LIKE_ONE.search(found["kind"])):
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
            return found["kind"], "\n".join([found["text"] or "", *_continued(lines[number + 1 :])]).strip()
    return None


def _is_exception(found: re.Match[str]) -> bool:
    return found["text"] is not None or bool(_NAMED_LIKE_ONE.search(found["kind"]))


def _continued(lines: list[str]) -> list[str]:
    """The further lines of an exception's message: up to an empty line or a ruler."""
    kept: list[str] = []
    for line in lines:
        if not line.strip() or re.match(r"[-=_]{8,}", line):
            break
        kept.append(line)
    return kept
