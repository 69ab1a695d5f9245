"""Make text of models and users safe to post in a comment.

``clean`` and ``clean_line`` remove secrets, parse the rest as Markdown, and write a small subset of it again:
paragraphs, lists, quotes, emphasis, code, and links to the repository's own host. The result mentions no user,
references and closes no issue, holds no command, image or foreign link, and leaves no block open. All functions
take time in proportion to their input. Handlers run inside ``bot.core.redaction.protecting``, so that the
operator's secrets are removed, too.

A zero-width space (U+200B) breaks a mention or reference. Entities would not: GitHub looks for mentions after it
has decoded them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.core.redaction import redact
from bot.core.text import cap, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BREAK = "\u200b"

#: Languages that GitHub renders or acts on instead of showing.
ACTIVE_LANGUAGES = frozenset({"mermaid", "geojson", "topojson", "stl", "math", "suggestion"})
#: A URL that may stay a link: nothing in it can be parsed as Markdown.
PLAIN_URL = re.compile(r"https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~/%?=&+,-]*(?:#[A-Za-z][A-Za-z0-9._-]*)?)?")

#: Characters that look like one of Markdown's or GitHub's own.
_LOOKALIKES = str.maketrans("＠﹫＃﹟／＜﹤＞［］｀", "@@##/<<>[]`")
_TICKS = re.compile(r"`+")
#: A link to one of these makes GitHub add a reference to the linked page.
_TRACE = re.compile(r"/(?:issues|pull|pulls|discussions|commit)/", re.IGNORECASE)
_TRAILING = ".,;:!?'\"*_)"
_LONGEST_URL = 200
#: A command to a bot, up to its slash; a hidden marker of ours, up to its dashes. Both count in code as well.
COMMAND = re.compile(
    r"^([ \t]*(?:(?:[>*+-]|\d{1,9}[.)])[ \t]+){0,9})/(?=[a-z][\w-]*(?:\s|$))", re.MULTILINE | re.IGNORECASE
)
MARKER = re.compile(r"<!--(?=\s*bouncer)", re.IGNORECASE)
#: Characters with a meaning in running text, one group for each treatment.
_SPECIAL = re.compile(
    r"""
      (?P<kept>\\[\\*_])                                        # escaped by the author, and still so
    | (?P<url>(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|www\.|mailto:|xmpp:)[^\s<>`\[\]|\\]*)
    | (?P<code>\$[^\s`\\]*|(?<![0-9A-Za-z])[0-9a-f]{40}(?![0-9A-Za-z]))     # mathematics; a commit
    | (?P<escaped>[`~]|&(?=\#?\w{1,32};)|(?<=!)\[|\[(?=\^)|\](?=[(\[:])|\\\Z)
    | (?P<broken>@(?!\s)|\#(?=\d)|(?<![A-Za-z0-9])gh-(?=\d)|:(?=//|(?:\\?_|[a-z0-9+-]){1,50}:)|<(?=[A-Za-z/!?]|\Z))
    """,
    re.VERBOSE | re.IGNORECASE,
)
#: Starts of a line that would open a block: escaped, or after a number.
_BLOCK_START = re.compile(
    r"(\d{1,9}(?=[.)](?:\s|$))|)(#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|[-=*_](?=[-=*_\s]*$)|\[|[.)](?=\s|$))"
)
#: A table's second line: without it the others are text.
_TABLE_RULE = re.compile(r"[|:\s-]+")
#: Marks the bracket that opens a link of ours until a line is done; ``replace_lookalikes`` leaves none in text.
_LINK = "\x01["


def host_of(url: str) -> str:
    """Host (and port) of a URL, lower case."""
    return urlsplit(url).netloc.lower()


def replace_lookalikes(text: str) -> str:
    """Return the visible text, with characters that look like ``@``, ``#``, ``/`` or ``<`` replaced by these."""
    return visible(text).translate(_LOOKALIKES)


def clean(text: str, *, host: str = "", limit: int) -> str:
    """Return a harmless version of a model's multi-line Markdown, in at most ``limit`` characters.

    Paragraphs, lists, emphasis and code stay; HTML, images, tables and foreign links do not. Plain links to
    ``host`` (``repository.host``) stay links.
    """
    whole = redact(replace_lookalikes(redact(text))).strip()[: 2 * limit]
    return _within(whole, limit, lambda part: _Writer(host).blocks(iter(_parser().parse(part))))


def clean_line(text: str, *, host: str = "", limit: int = 300) -> str:
    """Return one harmless line of a model's text for a bullet, a sentence or a heading; it never opens a block."""
    whole = " ".join(re.sub(r"`{3,}|~{3,}", " ", redact(replace_lookalikes(redact(text)))[: 4 * limit]).split())
    line = _within(whole, limit, lambda part: _Writer(host).prose(_parser().parseInline(part)[0]))
    # An empty bullet would turn the line above it into a heading.
    return line or "…"


def code_span(code: str, *, limit: int = 300) -> str:
    """Return one line as a code span, for a name or a command in a sentence."""
    out: list[str] = []
    _add_span(out, cap(" ".join(redact(visible(code)).split()), limit))
    return "".join(out)


def fence(code: str, lang: str = "") -> str:
    """Return ``code`` as a fenced block that its content cannot close, with no line that commands another bot."""
    code = COMMAND.sub(rf"\1/{BREAK}", _unmarked(redact(visible(code)))).strip("\n")
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(code)), default=0))
    lang = re.sub(r"[^A-Za-z0-9_+.-]", "", lang)[:20].lower()
    return f"{ticks}{'' if lang in ACTIVE_LANGUAGES else lang}\n{code}\n{ticks}"


def details(title: str, text: str) -> str:
    """Return a text that GitHub folds away behind a title, which is HTML."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Without definitions no reference is a link. Escapes stay apart from text, so that they can be written again.
    return MarkdownIt("commonmark", {"html": False}).disable(["reference", "text_join"])


def _within(text: str, limit: int, transform: Callable[[str], str]) -> str:
    """Return the transformed text, cut *before* it is transformed, so that no escape is split."""
    result, size = transform(text), len(text)
    while len(result) > limit:
        # By proportion; a text does not grow evenly, so an attempt takes off a tenth at least.
        size = min(size * limit // len(result), size * 9 // 10)
        result = transform(cap(text, size))
    return result


class _Writer:
    """Writes parsed text as Markdown with only the markup that this class adds."""

    def __init__(self, host: str) -> None:
        self._host = host.lower()
        self._strikes = False

    def blocks(self, tokens: Iterator[Token], closing: str = "") -> str:
        """Write a whole document, or the content of a quote or a list item up to the token ``closing``."""
        text, tight = "", False
        for token in tokens:
            if token.type == closing:
                break
            block = self._block(token, tokens)
            if block:
                text += ("\n" if tight else "\n\n") * bool(text) + block
                tight = token.hidden
        return text

    def _block(self, token: Token, tokens: Iterator[Token]) -> str:
        match token.type:
            case "inline":
                return self.prose(token)
            case "fence" | "code_block":
                return fence(token.content, (token.info.split() or [""])[0])
            case "heading_open":
                heading = self.prose(next(tokens))
                return heading if "*" in heading or not heading else f"**{heading}**"
            case "paragraph_open":
                return self.prose(next(tokens))
            case "blockquote_open":
                quoted = self.blocks(tokens, "blockquote_close")
                return _indented(quoted, "> ", "> ") if quoted else ""
            case "bullet_list_open" | "ordered_list_open":
                return self._list(tokens, token.type.replace("open", "close"))
        return ""

    def _list(self, tokens: Iterator[Token], closing: str) -> str:
        items: list[str] = []
        for token in tokens:
            if token.type == closing:
                break
            body = self.blocks(tokens, "list_item_close")
            mark = f"{token.info}. " if token.info else "- "
            if body:
                items.append(_indented(body, mark, " " * len(mark)))
        return ("\n\n" if any("\n\n" in item for item in items) else "\n").join(items)

    def prose(self, inline: Token) -> str:
        """Write lines of running text, none of which opens a block."""
        # One tilde means "about"; two can strike out the text between them.
        self._strikes = inline.content.count("~") > 1
        text = self._inline(inline.children or ())
        lines = (line.strip() for line in text.split("\n"))
        return "\n".join(_escape_block_start(line) for line in lines if line and not _TABLE_RULE.fullmatch(line))

    def _inline(self, tokens: Sequence[Token]) -> str:
        """Write emphasis, code and links as they are, and escape the text between them."""
        out: list[str] = []
        text, link, address = "", "", False
        for token in [*tokens, None]:
            if token is not None and token.type in ("text", "text_special"):
                text += _running(token, address)
                continue
            shows_itself = token is not None and token.markup == "autolink"
            address = shows_itself and token is not None and token.type == "link_open"
            if token is not None and token.type.startswith("link"):
                if token.type == "link_open":
                    link = self._own(str(token.attrs["href"]))
                if not link:
                    continue
            inside = bool(link) and not shows_itself and (token is None or token.type != "link_open")
            self._plain(text, out, inside)
            text = ""
            if token is None:
                break
            match token.type:
                case "link_open" if not shows_itself:
                    # After these two it would be an image or a label.
                    out.append(" " * _ends(out, "!", "]") + _LINK)
                case "link_close":
                    out.append("" if shows_itself else f"]({link})")
                    link = ""
                case "code_inline":
                    _add_span(out, token.content)
                case "softbreak" | "hardbreak":
                    out.append("\n")
                case "em_open" | "em_close" | "strong_open" | "strong_close":
                    out.append(token.markup)
                case "image":
                    out.append(" ")
        return "".join(out)

    def _plain(self, text: str, out: list[str], in_link: bool) -> None:
        """Append running text to ``out``."""
        position = 0
        while match := _SPECIAL.search(text, position):
            before, position = text[position : match.start()], match.end()
            if before.endswith("\\") and match.lastgroup != "broken":
                # A plain backslash must not escape the next character.
                before += "\\"
            out.append(_bracketed(before) if in_link else before)
            match match.lastgroup:
                case "url" | "code":
                    token = match[0].rstrip(_TRAILING)
                    position -= len(match[0]) - len(token)
                    if match.lastgroup == "url" and not in_link and self._own(token):
                        out.append(f"<{token}>")
                    else:
                        _add_span(out, cap(token, _LONGEST_URL))
                case "escaped" if match[0] != "~" or self._strikes:
                    out.append(f"\\{match[0]}")
                case "broken":
                    out.append(f"{match[0]}{BREAK}")
                case _:
                    out.append(match[0])
        out.append(_bracketed(text[position:]) if in_link else text[position:])

    def _own(self, url: str) -> str:
        """Return ``url`` if it is a plain one to the repository's host that adds no reference there."""
        own = PLAIN_URL.fullmatch(url) and self._host and host_of(url) == self._host
        return url if own and not _TRACE.search(url) else ""


def _running(token: Token, address: bool) -> str:
    """Write a piece of running text; ``address``: it is the text of an autolink."""
    if token.markup in ("\\*", "\\_", "\\\\"):
        return token.markup
    # An entity may stand for an invisible character or for a line end.
    text = replace_lookalikes(token.content).replace("\n", " ") if token.type == "text_special" else token.content
    # In an address a backslash escapes nothing.
    return text.replace("\\", "\\\\") if address else text


def _ends(out: Sequence[str], *ends: str) -> bool:
    return next((piece for piece in reversed(out) if piece), "").endswith(ends)


def _add_span(out: list[str], code: str) -> None:
    """Append a code span, apart from one before it: touching backticks would close neither."""
    code = _unmarked(code.strip())
    if code:
        runs = {len(run) for run in _TICKS.findall(code)}
        ticks = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
        pad = " " if code[0] == "`" or code[-1] == "`" else ""
        out.append(f"{' ' * _ends(out, '`')}{ticks}{pad}{code}{pad}{ticks}")


def _bracketed(text: str) -> str:
    """Escape brackets in the text of a link."""
    return re.sub(r"(?<!\\)([\[\]])", r"\\\1", text)


def _unmarked(code: str) -> str:
    """Break hidden markers of ours in code."""
    return MARKER.sub(f"<!{BREAK}--", code)


def _indented(text: str, first: str, later: str) -> str:
    """Indent a block for a quote or a list item."""
    lines = text.split("\n")
    return "\n".join(
        [first + lines[0], *(f"{later}{line}".rstrip() if not line else later + line for line in lines[1:])]
    )


def _escape_block_start(line: str) -> str:
    """Escape the start of a line that would open a block or be a command to another bot."""
    if line.startswith("/"):
        line = f"/{BREAK}{line[1:]}"
    elif _BLOCK_START.match(line):
        line = _BLOCK_START.sub(r"\1\\\2", line, count=1)
    return line.replace(_LINK, "[")
