"""A bug report for reproduction: its text in Markdown, and the facts in it. No I/O."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from textwrap import dedent

from pydantic import Field

from bot.core.frozen import Frozen
from bot.core.text import HTML_COMMENT
from bot.reproduction.protocol import Report

#: Exception names without information.
GENERIC = frozenset({"Error", "Exception", "BaseException", "Throwable", "RuntimeException", "Warning"})

_WORD = re.compile(r"\w+")
_ENDINGS = ("Error", "Exception", "Warning", "Exit", "Interrupt", "Fault", "Failure")
_IRREGULAR = re.compile(r"\b(StopIteration|KeyboardInterrupt|SystemExit|GeneratorExit|DoesNotExist|Http404)\b")
_CRASH = re.compile(
    r"Traceback \(most recent call last\)|\bcrash(?:es|ed)?\b|^[ \t]+at [\w.$]+\(", re.IGNORECASE | re.MULTILINE
)
_CALL = re.compile(r"\b[A-Za-z_]\w*\((?!\))[^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")
_FENCE = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^[ \t]*+\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b")
#: A function in a traceback, and the file in a link to a line of code.
_FRAME = re.compile(r"^[ \t>]*File \"[^\"\n]+\", line \d+, in (\w+)", re.MULTILINE)
_LINKED = re.compile(r"/blob/[\w.-]{1,200}/[\w./-]{0,300}?\b(\w+)\.\w{1,5}#L\d+")
_IDENTIFIER = re.compile(r"\b(?:[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Za-z]\w*_\w+|[A-Za-z_]\w*(?=\())")


class Facts(Frozen):
    """The facts of a report that a failure is compared with."""

    exceptions: frozenset[str] = Field(
        description="names of exception types, without package, without generic ones"
    )
    crash: bool = Field(description="the report is of an exception or a crash, not only of a wrong value")
    names: tuple[str, ...] = Field(
        description="identifiers: of tracebacks and links, dotted ones, others, in order of appearance"
    )
    calls: tuple[str, ...] = Field(description="calls with arguments in its code, without white space")
    text: str


def read_report(title: str, body: str, number: int | None = None) -> Report:
    """Make a report from a tracker's fields; HTML is converted to Markdown."""
    return Report(title=re.sub(r"<[^<>]*>", "", title).strip(), body=to_markdown(body), number=number)


def parse_report(text: str) -> Report:
    """Make a report from one text whose first line is the title, without a leading ``#``."""
    title, _, body = text.lstrip("\ufeff\n\r ").partition("\n")
    return read_report(title.lstrip("#").strip(), body)


def facts(report: Report) -> Facts:
    """Extract the facts that a failure is compared with."""
    text = report.text
    type_names = {word for word in _WORD.findall(text) if "A" <= word[0] <= "Z" and word.endswith(_ENDINGS)}
    exceptions = {*type_names, *_IRREGULAR.findall(text)} - GENERIC
    blocks = (block.strip("\n") for _, block in _FENCE.findall(text))
    code_text = "\n".join((*_INLINE.findall(text), *blocks))
    # The place of the failure comes first: the innermost frame, then linked code.
    places = (*reversed(_FRAME.findall(text)), *_LINKED.findall(text))
    names = (
        *places,
        *_DOTTED.findall(code_text),
        *_IDENTIFIER.findall(text),
        *_DOTTED.findall(text),
        *(code_name for code_name in _INLINE.findall(text) if code_name.isidentifier()),
    )
    return Facts(
        exceptions=frozenset(exceptions),
        crash=bool(exceptions) or bool(_CRASH.search(text)),
        names=tuple(dict.fromkeys(name for name in names if len(name) > 2)),
        calls=tuple(dict.fromkeys(normalise_code(call) for call in _CALL.findall(code_text))),
        text=text,
    )


#: A heading, the text of an empty field of a form, and the words of a sentence about the right behaviour.
_HEADING = re.compile(
    r"^#{1,6}[ \t]+(.*)$|^\*\*(.+?)\*\*:?[ \t]*$|^((?i:expected|actual|observed)\b[^\n:]{0,30}):[ \t]*$",
    re.MULTILINE,
)
_EMPTY = "_No response_"
_EXPECTED = re.compile(r"\b(?:expect(?:s|ed|ation)?|should|must|ought to|instead of|rather than)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+(?=[A-Z`'\"(\[])|\n+")


def framings(report: Report) -> tuple[Report, ...]:
    """Return the report as a whole, with nothing but its example, and with nothing but the expected result.

    A part that the report lacks, or that is all of it, is left out.
    """
    parts = dict.fromkeys(part for part in (_example(report.body), _expected(report.body)) if part)
    others = (report.model_copy(update={"body": part}) for part in parts if part != report.body.strip())
    return (report, *others)


def _example(body: str) -> str:
    """Return the code blocks; without any, the sentences with a call in them."""
    blocks = [dedent(match[0]).strip() for match in _FENCE.finditer(body)]
    if blocks:
        return "\n\n".join(blocks)
    return "\n".join(line for line in _sentences(body) if any(map(_CALL.search, _INLINE.findall(line))))


def _expected(body: str) -> str:
    """Return the section on the expected result; without one, the sentences that say what should happen."""
    # A comment in code is no heading.
    headings = list(_HEADING.finditer(_FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), body)))
    ends = [*(heading.start() for heading in headings[1:]), len(body)]
    for heading, end in zip(headings, ends, strict=False):
        section = body[heading.end() : end].strip()
        is_filled = HTML_COMMENT.sub("", section).replace(_EMPTY, "").strip()
        if is_filled and "expect" in (heading[1] or heading[2] or heading[3]).lower():
            return section
    prose = _HEADING.sub("", HTML_COMMENT.sub("", _FENCE.sub("", body)))
    return "\n".join(line for line in _sentences(prose) if _EXPECTED.search(line))


def _sentences(text: str) -> list[str]:
    return [line.strip() for line in _SENTENCE.split(text) if line.strip()]


def normalise_code(code: str) -> str:
    """Normalise the white space and quotation marks of code."""
    return re.sub(r"\s+", "", code).replace('"', "'")


_HTML = re.compile(r"\s*<(?:!doctype|html|body|div|p|pre|ul|ol|h[1-6]|table|blockquote)\b", re.IGNORECASE)
#: Comments, declarations and instructions, removed because the parser is slow on unterminated ones.
_NOT_TEXT = re.compile(r"<!--.*?(?:-->|\Z)|<[!?][^>]*(?:>|\Z)", re.DOTALL)
_SILENT = frozenset({"script", "style", "head", "svg", "button", "template"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "table", "tr", "blockquote", "dl", "dd", "dt", "details", "summary"}
)
_MARKS = {"code": "`", "tt": "`", "strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~"}


def to_markdown(text: str) -> str:
    """Convert HTML to Markdown; return any other text with unified line ends.

    Code keeps its layout inside fences; links keep their target; scripts, styles and images are dropped.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not _HTML.match(text):
        return text.strip()
    converter = _Converter()
    # Replace by a space: joined remains could form a new comment.
    converter.feed(_NOT_TEXT.sub(" ", text))
    converter.close()
    return converter.result()


class _Converter(HTMLParser):
    """Convert a stream of tags to Markdown; unbalanced tags lose layout, never text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._pre: list[str] | None = None
        self._pre_depth = 0
        self._silent = 0
        self._lists: list[str] = []
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag == "pre":
            self._pre_depth += 1
            self._pre = [] if self._pre is None else self._pre
        elif tag == "br":
            self._write("\n")
        elif self._pre is None:
            self._open(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "pre":
            self._pre_depth = max(0, self._pre_depth - 1)
            if self._pre_depth == 0:
                self._end_pre()
        elif self._pre is None:
            self._close(tag)

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        self._write(data if self._pre is not None else re.sub(r"\s+", " ", data))

    def result(self) -> str:
        """Return the Markdown, with at most one blank line in a row outside of fences."""
        self._end_pre()
        pieces = re.split(r"(```.*?```)", "".join(self._parts), flags=re.DOTALL)
        for index in range(0, len(pieces), 2):
            lines = (re.sub(r" +", " ", line).rstrip() for line in pieces[index].split("\n"))
            pieces[index] = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
        return "".join(pieces).strip()

    def _open(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag in _BLOCKS:
            self._write("\n\n")
        elif re.fullmatch(r"h[1-6]", tag):
            self._write("\n\n" + "#" * int(tag[1]) + " ")
        elif tag in ("ul", "ol"):
            self._lists.append("-" if tag == "ul" else "1.")
            self._write("\n")
        elif tag == "li":
            self._write(
                "\n" + "  " * min(len(self._lists) - 1, 20) + (self._lists[-1] if self._lists else "-") + " "
            )
        elif tag == "a":
            self._links.append(attributes.get("href") or "")
            self._write("[" if self._links[-1] else "")
        elif tag in ("td", "th"):
            self._write(" | ")
        elif tag in _MARKS:
            self._write(_MARKS[tag])

    def _close(self, tag: str) -> None:
        if tag in _BLOCKS or re.fullmatch(r"h[1-6]", tag):
            self._write("\n\n")
        elif tag in ("ul", "ol"):
            self._lists = self._lists[:-1]
            self._write("\n")
        elif tag == "a" and self._links:
            target = self._links.pop()
            self._write(f"]({target})" if target else "")
        elif tag in _MARKS:
            self._write(_MARKS[tag])

    def _write(self, text: str) -> None:
        (self._parts if self._pre is None else self._pre).append(text)

    def _end_pre(self) -> None:
        if self._pre is None:
            return
        code = "".join(self._pre).strip("\n")
        self._pre, self._pre_depth = None, 0
        self._parts.append(f"\n\n```\n{code}\n```\n\n")
