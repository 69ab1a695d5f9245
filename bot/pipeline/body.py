"""The texts that are sent: their last check (limits, secrets, live Markdown), hidden marker, and HTML. Pure.

Fragments were made safe when a template inserted them (``bot.core.markdown``). Here the finished text is parsed as
GitHub parses it, and each token has to be one that our templates write. If one is not, nothing is repaired: the
whole text is then treated as untrusted.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from pydantic import Field

from bot.core.actions import InlineComment, Task
from bot.core.frozen import Frozen
from bot.core.markdown import (
    ACTIVE_LANGUAGES,
    BREAK,
    COMMAND,
    MARKER,
    PLAIN_URL,
    clean,
    clean_line,
    fence,
    host_of,
    replace_lookalikes,
)
from bot.core.redaction import leaks, protecting, redact
from bot.core.text import cap, visible
from bot.pipeline.protected_paths import protection

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

#: GitHub's limits, characters.
MAX_BODY = 65_536
MAX_CHECK = 65_535
MAX_TITLE = 250

#: Lines by which a suggestion may be longer than what it replaces: more is not read before it is applied.
MAX_GROWTH = 3

#: Replaces a text from which a secret could not be removed.
WITHHELD = "This text is withheld: a secret of this bot's operator could be read in it."

#: The hidden line at the end of our texts, by which they are recognised.
_MARKER_LINE = re.compile(
    r"<!-- bouncer:(?P<task>[a-z]+):v1(?: (?P<extra>[A-Za-z0-9_.:-]+))?"
    r"(?: sig=(?P<signature>[0-9a-f]{32}))? -->\s*\Z"
)
_NO_FINGERPRINT = re.compile(r"[^A-Za-z0-9_.:-]")
_STRAY_BREAK = re.compile(rf"(?<![@#:</!])(?<!gh-){BREAK}+", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)

#: Our parser takes these for blanks around a block, GitHub's for letters.
_WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")
_NAMES = (
    r"@[A-Za-z0-9_.-]"
    r"|\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s{1,3}(?:[\w./-]{0,100}#\d|gh-\d)"
)
_OPEN_TAG = r"<[A-Za-z/!?]"
#: Live text outside of code and our own links: a mention, a tag, a closing keyword, a link that GitHub would make.
_LIVE = re.compile(rf"{_NAMES}|{_OPEN_TAG}|://|(?<![A-Za-z0-9])www\.", re.IGNORECASE)
_NAME = re.compile(_NAMES, re.IGNORECASE)
_TAG_START = re.compile(_OPEN_TAG)
#: The tags that templates write.
_TAG = re.compile(r"</?(?:details|summary|sub|sup|br|code|b|i|em|strong|kbd)\s*/?>|<details open>")
_ANY_TAG = re.compile(r"<[^>]*>")
#: A hidden marker.
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
#: The start of the definition of a link or a footnote.
_DEFINITION = re.compile(r"^[ \t]*\[(?:[^\[\]\\]|\\.)*\]:", re.MULTILINE | re.DOTALL)
#: Tokens of the blocks that templates write.
_BLOCKS = frozenset(
    f"{kind}_{end}"
    for kind in (
        "paragraph", "heading", "bullet_list", "ordered_list", "list_item", "blockquote",
        "table", "thead", "tbody", "tr", "th", "td",
    )
    for end in ("open", "close")
)  # fmt: skip
#: A bar that ends a cell for GitHub and not for our parser, or the reverse.
_UNCLEAR_BAR = re.compile(r"\\\\\|")
_SPANS = frozenset(
    {"em_open", "em_close", "strong_open", "strong_close", "softbreak", "hardbreak", "code_inline", "link_close"}
)


class Seal(Frozen):
    """Writes and reads the hidden markers of one issue or pull request.

    If other programs share our account, a marker is signed with ``key``: it counts only in the repository, on the
    number and for the task that it was written for. The text above it is not covered, because maintainers edit
    our comments; copying a marker within its subject gains nothing, because the oldest comment counts.
    """

    repository: str = ""
    number: int = 0
    key: bytes = Field(b"", repr=False)

    def marker(self, task: Task, extra: str = "") -> str:
        """Return the hidden line at the end of our texts."""
        signature = f" sig={self._signature(task, extra)}" if self.key else ""
        return f"<!-- bouncer:{task}:v1{f' {extra}' if extra else ''}{signature} -->"

    def read(self, body: str) -> tuple[str, str] | None:
        """Return (task, extra) of the marker that a body ends with; None if its signature is not ours."""
        match = _MARKER_LINE.search(body.rstrip())
        if match is None:
            return None
        task, extra = match["task"], match["extra"] or ""
        if self.key and not hmac.compare_digest(self._signature(task, extra), match["signature"] or ""):
            return None
        return task, extra

    def _signature(self, task: str, extra: str) -> str:
        signed = f"bouncer marker v1\n{self.repository.lower()}#{self.number}\n{task}\n{extra}"
        return hmac.new(self.key, signed.encode(), hashlib.sha256).hexdigest()[:32]


#: Markers of an account that is ours alone.
UNSIGNED = Seal()


def without_marker(body: str) -> str:
    return _MARKER_LINE.sub("", body.rstrip()).rstrip()


class Rules(Frozen):
    """The links that texts may have, and the secrets that they must not hold."""

    host: str = ""
    secrets: tuple[str, ...] = Field((), repr=False)
    about_url: str = Field("", description="the operator's page about the bot, the only link elsewhere")

    def text(self, body: str, limit: int) -> str:
        """Return a body without a marker, as its template wrote it; as untrusted text if it is not harmless."""
        with protecting(self.secrets):
            body = _cut(_revealed(body), limit)
            own_link, allowed_link = f"]({self.about_url})", f"](https://{self.host}/)"
            if not harmless(body.replace(own_link, allowed_link) if self.about_url else body, self.host):
                body = redact(clean(body, host=self.host, limit=limit))
        # Checked again as GitHub shows it: that is what people read.
        return WITHHELD if self.leaks(body) or self.leaks(visible_text(body)) else body

    def leaks(self, text: str) -> bool:
        """Return True if one of the operator's secrets can be read in ``text``."""
        return leaks(text, self.secrets)

    def title(self, text: str) -> str:
        with protecting(self.secrets):
            line = cap(" ".join(_revealed(text, replace_lookalikes).split()), MAX_TITLE)
            line = clean_line(line, limit=MAX_TITLE) if _LIVE.search(line) else line
        return WITHHELD if self.leaks(line) or self.leaks(visible_text(line)) else line

    def marked(self, body: str, task: Task, extra: str = "", seal: Seal = UNSIGNED) -> str:
        """Return a body with its hidden marker, by which it can be recognised."""
        marker = seal.marker(task, extra)
        text = self.text(body, MAX_BODY - len(marker) - 2)
        return f"{text}\n\n{marker}" if text else marker

    def inline(self, comment: InlineComment, seal: Seal = UNSIGNED) -> InlineComment:
        """Return a review comment with its suggestion as a block and its fingerprint as a marker.

        A suggestion can be applied with one click, so it is sent unchanged or not at all.
        """
        body = self.text(comment.body, MAX_BODY // 2)
        new = comment.suggestion
        if new is not None and self._may_be_applied(new, comment):
            ticks = fence(new).partition("\n")[0]
            body += f"\n\n{ticks}suggestion\n{new}\n{ticks}"
        marker = seal.marker("review", _NO_FINGERPRINT.sub("", comment.fingerprint)[:100])
        return comment.model_copy(update={"body": f"{body}\n\n{marker}", "suggestion": None})

    def _may_be_applied(self, code: str, comment: InlineComment) -> bool:
        replaced_lines = comment.line - (comment.start_line or comment.line) + 1
        return (
            comment.side == "RIGHT"
            and code.count("\n") + 1 - replaced_lines <= MAX_GROWTH
            and not protection(comment.path)
            and len(code) <= MAX_BODY // 4
            and visible(code) == code
            and redact(code, self.secrets) == code
            and not self.leaks(code)
            and COMMAND.search(code) is None
            and MARKER.search(code) is None
        )


def _revealed(text: str, show: Callable[[str], str] = visible) -> str:
    """Return a text without secrets and hidden characters; breaks stay where ``clean`` puts them."""
    parts = map(show, redact(text).split(BREAK))
    return redact(_STRAY_BREAK.sub("", BREAK.join(parts)))


def _cut(body: str, limit: int) -> str:
    """Cut ``body`` to ``limit``, and close a fence or fold that the cut left open."""
    if len(body) <= limit:
        return body
    cut = cap(body, limit - 80)
    fences = _FENCE.findall(cut)
    folds = max(0, cut.count("<details") - cut.count("</details>"))
    return cut + f"\n{fences[-1][:40]}" * (len(fences) % 2) + "\n\n</details>" * min(folds, 2)


def harmless(body: str, host: str) -> bool:
    """Return True if ``body`` has no mention, closing keyword, command or image, and links to ``host`` only.

    ``#12`` is allowed: templates name their issue.
    """
    if COMMAND.search(body) or MARKER.search(body):
        return False
    for text in {body, _WIDE_BLANK.sub("\ufffd", body)}:
        lines = text.split("\n")
        if not all(_allowed(token, host) and _ends_as_on_github(token, lines) for token in _parser().parse(text)):
            return False
    return True


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Without references, a definition stays visible text.
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).disable("reference")
    # GitHub's parser makes a link of any address. ``_text_allowed`` decides about it.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _ends_as_on_github(token: Token, lines: list[str]) -> bool:
    """Return True if GitHub ends a fence or the cells of a table where our parser does.

    Otherwise a fence could swallow our hidden marker, and a cell could become two.
    """
    if token.type == "table_open" and token.map is not None:
        return not any(_UNCLEAR_BAR.search(line) for line in lines[slice(*token.map)])
    if token.type != "fence" or token.map is None:
        return True
    first, end = token.map
    last = lines[end - 1].rstrip()
    mark = last.lstrip(" >")
    before = last[: len(last) - len(mark)]
    if token.level == 0 and (len(before) > 3 or before.strip(" ")):
        return False
    return end - 1 > first and set(mark) == {token.markup[0]} and len(mark) >= len(token.markup)


def _allowed(token: Token, host: str) -> bool:
    match token.type:
        case "inline":
            special = _DEFINITION.search(token.content) or _has_table_rule(token.content)
            return not special and _text_allowed(token.children or (), host)
        case "fence":
            return (token.info.split() or [""])[0].lower() not in ACTIVE_LANGUAGES and "<!--" not in token.info
        case "html_block":
            return _html_allowed(token.content)
    return token.type in _BLOCKS


def _has_table_rule(text: str) -> bool:
    """Return True if a line makes a table of the one above. GitHub needs no bar for that, and ends open spans."""
    lines = ("".join(line.split()) for line in text.split("\n"))
    return any(set(line) <= {"|", ":", "-"} and "-" in line and line.strip("-") for line in lines)


def _text_allowed(tokens: Iterable[Token], host: str) -> bool:
    text: list[str] = []
    autolink = False
    for token in tokens:
        match token.type:
            case "text":
                text.append("" if autolink else token.content)
                continue
            case "html_inline":
                if not _html_allowed(token.content):
                    return False
            case "link_open":
                url = str(token.attrs["href"])
                if PLAIN_URL.fullmatch(url) is None or host_of(url) != host:
                    return False
            case kind if kind not in _SPANS:
                return False
        # The text of an autolink is its address.
        autolink = token.type == "link_open" and token.markup == "autolink"
        # The number after a closing keyword may be on the next line.
        text.append("\n" if token.type in ("softbreak", "hardbreak") else "\0")
    return _LIVE.search("".join(text)) is None


def _html_allowed(source: str) -> bool:
    """Return True if the HTML contains only allowed tags and inert text."""
    text = _TAG.sub("\0", source)
    return not (_TAG_START.search(text) or _NAME.search(unescape(text)))


def visible_text(body: str) -> str:
    """Return the text of a body as GitHub shows it, without tags and with decoded entities."""
    return unescape(_ANY_TAG.sub("", _renderer().render(body)))


def as_html(body: str) -> Markup:
    """Render a body for a page of our own as GitHub does: only the templates' tags, no images, no scripts."""
    return Markup(_renderer().render(body))  # noqa: S704 - every other tag is escaped below


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    def html(_self: Any, tokens: list[Token], index: int, _options: Any, _env: Any) -> str:
        content = _COMMENT.sub("", tokens[index].content)
        tags = _TAG.findall(content)
        between = [escape(part, quote=False) for part in _TAG.split(content)]
        return "".join(part + tag for part, tag in zip(between, [*tags, ""], strict=True))

    def image(_self: Any, tokens: list[Token], index: int, _options: Any, _env: Any) -> str:
        return escape(tokens[index].content, quote=False)

    def link(self: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
        tokens[index].attrSet("rel", "noreferrer nofollow")
        return str(self.renderToken(tokens, index, options, env))

    # GitHub shows each line break in comments.
    reader = MarkdownIt("commonmark", {"html": True, "breaks": True}).enable(["table", "strikethrough"])
    for name, rule in (("html_inline", html), ("html_block", html), ("image", image), ("link_open", link)):
        reader.add_render_rule(name, rule)
    return reader
