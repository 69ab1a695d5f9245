"""Fragments of text that models and strangers wrote, made safe to stand in a comment of ours.

``clean`` and ``clean_line`` take secrets out, read what is left as Markdown, and write a small subset of it anew:
paragraphs, lists, quotes, emphasis, code, and links to the repository's own host. Nobody is mentioned, nothing is
referenced, closed, commanded, shown or linked that a template of ours did not ask for, and nothing is left open
that could swallow what follows. All functions take time in proportion to their input. Handlers run inside
``bot.core.redaction.protecting``, so that the operator's secrets are taken out, too.

A zero-width space (U+200B) is what breaks a mention or reference: entities would not do, GitHub looks for mentions
after it has decoded them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.core.redaction import redact
from bot.core.text import cap, seen

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BREAK = "\u200b"

#: Languages that GitHub renders or acts on instead of showing.
ACTIVE_LANGUAGES = frozenset({"mermaid", "geojson", "topojson", "stl", "math", "suggestion"})
#: A URL that may stay a link: nothing in it can be read as anything else.
PLAIN_URL = re.compile(r"https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~/%?=&+,-]*(?:#[A-Za-z][A-Za-z0-9._-]*)?)?")

#: Characters that pass for one of Markdown's or GitHub's own.
_LOOKALIKES = str.maketrans(
    {
        "＠": "@",
        "﹫": "@",
        "＃": "#",
        "﹟": "#",
        "／": "/",
        "＜": "<",
        "﹤": "<",
        "＞": ">",
        "［": "[",
        "］": "]",
        "｀": "`",
    }
)
_TICKS = re.compile(r"`+")
#: A link to one of these leaves a trace on the other side.
_TRACE = re.compile(r"/(?:issues|pull|pulls|discussions|commit)/", re.IGNORECASE)
_TRAILING = ".,;:!?'\"*_)"
_LONGEST_URL = 200
#: A text that grows beyond its limit is cut anew at most so often.
_TRIES = 8
#: A command to a bot, up to its slash; a hidden marker of ours, up to its dashes. Both count in code as well.
COMMAND = re.compile(
    r"^([ \t]*(?:(?:[>*+-]|\d{1,9}[.)])[ \t]+){0,9})/(?=[a-z][\w-]*(?:\s|$))", re.MULTILINE | re.IGNORECASE
)
MARKER = re.compile(r"<!--(?=\s*bouncer)", re.IGNORECASE)
#: What is not itself in running text, each kind once.
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
#: What would open a block at the start of a line: escaped, or behind a number.
_BLOCK_START = re.compile(
    r"(\d{1,9}(?=[.)](?:\s|$))|)(#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|[-=*_](?=[-=*_\s]*$)|\[|[.)](?=\s|$))"
)
#: A table's second line: without it the others are text.
_TABLE_RULE = re.compile(r"[|:\s-]+")
#: Stands before the bracket that opens a link of ours until a line is done; ``visible`` leaves none in text.
_LINK = "\x01["


def host_of(url: str) -> str:
    """Host (and port) of a URL, lower case."""
    return urlsplit(url).netloc.lower()


def visible(text: str) -> str:
    """``text`` as a person sees it: what passes for ``@``, ``#``, ``/``, ``<`` is that."""
    return seen(text).translate(_LOOKALIKES)


def clean(text: str, *, host: str = "", limit: int) -> str:
    """A multi-line Markdown fragment of a model's, harmless, in at most ``limit`` characters.

    Paragraphs, lists, emphasis and code survive; HTML, images, tables and foreign links do not. ``host`` is
    where the repository lives (``repository.host``): plain links into it stay links.
    """
    whole = redact(visible(redact(text))).strip()[: 2 * limit]
    return _within(whole, limit, lambda part: _Writer(host).blocks(iter(_parser().parse(part))))


def clean_line(text: str, *, host: str = "", limit: int = 300) -> str:
    """One line of a model's text for a bullet, a sentence or a heading of a template; never opens a block."""
    whole = " ".join(re.sub(r"`{3,}|~{3,}", " ", redact(visible(redact(text)))[: 4 * limit]).split())
    line = _within(whole, limit, lambda part: _Writer(host).prose(_parser().parseInline(part)[0]))
    # A bullet without a word would underline what stands above it.
    return line or "…"


def code_span(code: str, *, limit: int = 300) -> str:
    """One line as code, for a name or a command in a sentence of a template."""
    out: list[str] = []
    _add_span(out, cap(" ".join(redact(seen(code)).split()), limit))
    return "".join(out)


def fence(code: str, lang: str = "") -> str:
    """``code`` as a fenced block that nothing in it can close; no line of it is a command to another bot."""
    code = COMMAND.sub(rf"\1/{BREAK}", _unmarked(redact(seen(code)))).strip("\n")
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(code)), default=0))
    lang = re.sub(r"[^A-Za-z0-9_+.-]", "", lang)[:20].lower()
    return f"{ticks}{'' if lang in ACTIVE_LANGUAGES else lang}\n{code}\n{ticks}"


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Without definitions no reference is a link. Escapes stay apart from text, so that they can be written again.
    return MarkdownIt("commonmark", {"html": False}).disable(["reference", "text_join"])


def _within(text: str, limit: int, transform: Callable[[str], str]) -> str:
    """The transformed text, cut *before* it is transformed, so that no escape is torn apart."""
    result = transform(text)
    if len(result) <= limit:
        return result
    # How much a text grows differs along it: guessed by proportion first, then halved between too much and enough.
    best, enough, too_much = "", 0, min(len(text), limit) + 1
    size = min(too_much - 1, len(text) * limit // len(result))
    for _ in range(_TRIES):
        result = transform(cap(text, size))
        if len(result) > limit:
            too_much = size
        else:
            best, enough = result, size
            if len(best) >= limit * 3 // 4 or too_much - enough <= 1:
                break
        size = (enough + too_much) // 2 if enough else size * limit // (len(result) + 1)
    return best


class _Writer:
    """Writes parsed text as Markdown in which only what is written here on purpose means anything."""

    def __init__(self, host: str) -> None:
        self._host = host.lower()
        self._strikes = False

    def blocks(self, tokens: Iterator[Token], closing: str = "") -> str:
        """A whole document, or what a quote or an item of a list holds: up to the token ``closing``."""
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
        """Lines of running text, none of which opens a block."""
        # One tilde is about as much; two can strike out what is between them.
        self._strikes = inline.content.count("~") > 1
        text = self._inline(inline.children or ())
        lines = (line.strip() for line in text.split("\n"))
        return "\n".join(_started(line) for line in lines if line and not _TABLE_RULE.fullmatch(line))

    def _inline(self, tokens: Sequence[Token]) -> str:
        """Emphasis, code and links as they are, and between them text in which nothing is special."""
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
                    # Next to these two it would be an image, or the label of something else.
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
        while found := _SPECIAL.search(text, position):
            before, position = text[position : found.start()], found.end()
            if before.endswith("\\") and found.lastgroup != "broken":
                # It is only a backslash, and must not become an escape of what is written next.
                before += "\\"
            out.append(_bracketed(before) if in_link else before)
            match found.lastgroup:
                case "url" | "code":
                    shown = found[0].rstrip(_TRAILING)
                    position -= len(found[0]) - len(shown)
                    if found.lastgroup == "url" and not in_link and self._own(shown):
                        out.append(f"<{shown}>")
                    else:
                        _add_span(out, cap(shown, _LONGEST_URL))
                case "escaped" if found[0] != "~" or self._strikes:
                    out.append(f"\\{found[0]}")
                case "broken":
                    out.append(f"{found[0]}{BREAK}")
                case _:
                    out.append(found[0])
        out.append(_bracketed(text[position:]) if in_link else text[position:])

    def _own(self, url: str) -> str:
        """``url`` if it may stay a link: a plain one to the repository's host that leaves no trace there."""
        own = PLAIN_URL.fullmatch(url) and self._host and host_of(url) == self._host
        return url if own and not _TRACE.search(url) else ""


def _running(token: Token, address: bool) -> str:
    """A piece of running text as it is written again; ``address`` says that it is a link's own."""
    if token.markup in ("\\*", "\\_", "\\\\"):
        return token.markup
    # An entity may stand for what would have been taken out, or for the end of a line.
    text = visible(token.content).replace("\n", " ") if token.type == "text_special" else token.content
    # In an address a backslash is one, and escapes nothing yet.
    return text.replace("\\", "\\\\") if address else text


def _ends(out: Sequence[str], *ends: str) -> bool:
    return next((piece for piece in reversed(out) if piece), "").endswith(ends)


def _add_span(out: list[str], code: str) -> None:
    """Append a code span; two that touch would make one longer run of backticks, which closes neither."""
    code = _unmarked(code.strip())
    if code:
        runs = {len(run) for run in _TICKS.findall(code)}
        ticks = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
        pad = " " if code[0] == "`" or code[-1] == "`" else ""
        out.append(f"{' ' * _ends(out, '`')}{ticks}{pad}{code}{pad}{ticks}")


def _bracketed(text: str) -> str:
    """Text inside a link, which only the link's own bracket closes."""
    return re.sub(r"(?<!\\)([\[\]])", r"\\\1", text)


def _unmarked(code: str) -> str:
    """Code in which no hidden marker of ours stands."""
    return MARKER.sub(f"<!{BREAK}--", code)


def _indented(text: str, first: str, rest: str) -> str:
    """A block inside a quote or an item of a list."""
    lines = text.split("\n")
    return "\n".join(
        [first + lines[0], *(f"{rest}{line}".rstrip() if not line else rest + line for line in lines[1:])]
    )


def _started(line: str) -> str:
    """``line`` as it is, without being the start of a block or a command to another bot."""
    if line.startswith("/"):
        line = f"/{BREAK}{line[1:]}"
    elif _BLOCK_START.match(line):
        line = _BLOCK_START.sub(r"\1\\\2", line, count=1)
    return line.replace(_LINK, "[")
