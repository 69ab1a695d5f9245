"""Our texts as GitHub shows them: HTML for pages of our own, and the characters that people read."""

from __future__ import annotations

import re
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

#: The tags that templates write.
TAG = re.compile(r"</?(?:details|summary|sub|sup|br|code|b|i|em|strong|kbd)\s*/?>|<details open>")
_ANY_TAG = re.compile(r"<[^>]*>")
#: A hidden marker.
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)


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
        tags = TAG.findall(content)
        between = [escape(part, quote=False) for part in TAG.split(content)]
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
