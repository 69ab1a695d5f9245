"""A bug report as reproduction sees it: its text in Markdown and the hard facts in it. No I/O."""

from __future__ import annotations

import re

from pydantic import Field

from bot.core.frozen import Frozen
from bot.reproduce.markdown import to_markdown

#: Names that say "something went wrong" and nothing more.
GENERIC = frozenset({"Error", "Exception", "BaseException", "Throwable", "RuntimeException", "Warning"})

_WORD = re.compile(r"\w+")
_ENDINGS = ("Error", "Exception", "Warning", "Exit", "Interrupt", "Fault", "Failure")
_KNOWN_ODD = re.compile(r"\b(StopIteration|KeyboardInterrupt|SystemExit|GeneratorExit|DoesNotExist|Http404)\b")
_CRASH = re.compile(
    r"Traceback \(most recent call last\)|\bcrash(?:es|ed)?\b|^[ \t]+at [\w.$]+\(", re.IGNORECASE | re.MULTILINE
)
_CALL = re.compile(r"\b[A-Za-z_]\w*\((?!\))[^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")
_FENCE = re.compile(r"^(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b")
#: A function in a traceback, and the file that a link to a line of code names.
_FRAME = re.compile(r"^[ \t>]*File \"[^\"\n]+\", line \d+, in (\w+)", re.MULTILINE)
_LINKED = re.compile(r"/blob/[\w.-]+/[\w./-]*?(\w+)\.\w{1,5}#L\d+")
_IDENTIFIER = re.compile(r"\b(?:[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Za-z]\w*_\w+|[A-Za-z_]\w*(?=\())")


class Report(Frozen):
    """What somebody reported."""

    title: str
    body: str = Field("", description="Markdown")
    number: int | None = Field(None, description="the issue's number; None for a report from elsewhere")

    @property
    def text(self) -> str:
        """Title and body."""
        return f"{self.title}\n\n{self.body}".strip()


class Facts(Frozen):
    """What a failure can be held against."""

    exceptions: frozenset[str] = Field(
        description="names of exception types, without package, generic ones left out"
    )
    crash: bool = Field(description="the report tells of an exception or a crash, not of a wrong value only")
    names: tuple[str, ...] = Field(
        description="identifiers: of tracebacks and links, dotted ones, others, in order of appearance"
    )
    code: tuple[str, ...] = Field(description="fenced code blocks")
    calls: tuple[str, ...] = Field(description="calls with arguments that its code shows, without white space")
    text: str


def read_report(title: str, body: str, number: int | None = None) -> Report:
    """A report from a tracker's fields; HTML is brought into Markdown."""
    return Report(title=re.sub(r"<[^<>]*>", "", title).strip(), body=to_markdown(body), number=number)


def parse_report(text: str) -> Report:
    """A report from one text whose first line is the title, a leading ``#`` and the like taken off."""
    title, _, body = text.lstrip("\ufeff\n\r ").partition("\n")
    return read_report(title.lstrip("#").strip(), body)


def facts(report: Report) -> Facts:
    """Extract what a failure can be held against."""
    text = report.text
    named = {word for word in _WORD.findall(text) if "A" <= word[0] <= "Z" and word.endswith(_ENDINGS)}
    found = {*named, *_KNOWN_ODD.findall(text)} - GENERIC
    code = tuple(block.strip("\n") for _, block in _FENCE.findall(text))
    marked = "\n".join((*_INLINE.findall(text), *code))
    # Where it went wrong comes first: the innermost frame, then the code that was pointed to.
    places = (*reversed(_FRAME.findall(text)), *_LINKED.findall(text))
    names = (
        *places,
        *_DOTTED.findall(marked),
        *_IDENTIFIER.findall(text),
        *_DOTTED.findall(text),
        *_words(_INLINE, text),
    )
    return Facts(
        exceptions=frozenset(found),
        crash=bool(found) or bool(_CRASH.search(text)),
        names=tuple(dict.fromkeys(name for name in names if len(name) > 2)),
        code=code,
        calls=tuple(dict.fromkeys(squeezed(call) for call in _CALL.findall(marked))),
        text=text,
    )


def squeezed(code: str) -> str:
    """Code without what two people write differently: white space, and which quotation marks they use."""
    return re.sub(r"\s+", "", code).replace('"', "'")


def _words(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """Inline code that is a single plain name."""
    return tuple(found for found in pattern.findall(text) if found.isidentifier())
