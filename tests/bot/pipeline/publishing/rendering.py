"""Renders posted texts as GitHub does, and finds live parts that no template wrote."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

from cmarkgfm import cmark

OPTIONS = (
    cmark.Options.CMARK_OPT_UNSAFE | cmark.Options.CMARK_OPT_FOOTNOTES | cmark.Options.CMARK_OPT_GITHUB_PRE_LANG
)
EXTENSIONS = ["autolink", "table", "strikethrough", "tasklist"]

#: Tags that the allowed subset of Markdown and our templates come to.
TAGS = {
    "p", "ul", "ol", "li", "blockquote", "em", "strong", "code", "pre", "a", "br", "h3", "details", "summary",
    "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
ACTIVE = frozenset({"suggestion", "mermaid", "geojson", "topojson", "stl", "math"})
_TRACE = re.compile(r"/(?:issues|pull|pulls|discussions|commit)/")
_LIVE = {
    "a mention": re.compile(r"@[A-Za-z0-9_-]"),
    "a reference": re.compile(r"#\d|(?<![A-Za-z0-9])gh-\d", re.IGNORECASE),
    "a bare link": re.compile(r"(?:https?|ftp)://[\w.]", re.IGNORECASE),
    "an emoji": re.compile(r":[a-z0-9_+-]{1,40}:"),
    "mathematics": re.compile(r"\$"),
    "a commit": re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{40}(?![0-9a-zA-Z])"),
}
_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:[\w./-]*#\d|gh-\d)", re.IGNORECASE)
_COMMAND = re.compile(
    r"^[ \t]*(?:(?:[>*+-]|\d+[.)])[ \t]+){0,9}/(?:close|bouncer|approve|lgtm|merge|assign)(?=\s|$)", re.MULTILINE
)


class Page(HTMLParser):
    """Tags, links, comments and the text outside code of one rendered text."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.languages: list[str] = []
        self.comments: list[str] = []
        self.text: list[str] = []
        self._code = 0
        self._link = 0
        self.feed(cmark.markdown_to_html_with_extensions(markdown, OPTIONS, EXTENSIONS))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._code += tag in ("code", "pre")
        values = dict(attrs)
        if tag == "a":
            self._link += 1
            self.links.append(values.get("href") or "")
        if tag == "pre":
            self.languages.append(values.get("lang") or "")
        if set(values) - {"href", "lang", "start"}:
            self.tags.append(f"{tag} with {sorted(values)}")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "pre")
        self._link -= tag == "a"

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if not self._code and not self._link:
            self.text.append(data)


def words(markdown: str) -> str:
    """Everything that people can read of a text, code included."""
    html = cmark.markdown_to_html_with_extensions(markdown, OPTIONS, EXTENSIONS)
    return unescape(re.sub(r"<(?!!--)[^>]*>", "", html))


def fault(
    markdown: str, host: str, *, ours: str = "", folds: int | None = 0, suggestions: int = 0, marker: bool = True
) -> str:
    """Return a live part of ``markdown`` that no template wrote; empty if there is none.

    ``ours`` is a template's word that would count as a reference; ``folds`` is how many folds it has.
    """
    page = Page(markdown)
    if problem := dangerous(page, markdown, host, suggestions, marker):
        return problem
    if foreign := [tag for tag in page.tags if tag not in TAGS]:
        return f"tags {foreign}"
    if traces := [link for link in page.links if _TRACE.search(link)]:
        return f"traces {traces}"
    if folds is not None and page.tags.count("details") != folds:
        return f"{page.tags.count('details')} folds"
    for node in page.text:
        for element, pattern in _LIVE.items():
            if pattern.search(node.replace(ours, "") if ours else node):
                return f"{element} in {node!r}"
    return ""


def dangerous(page: Page, markdown: str, host: str, suggestions: int = 0, marker: bool = True) -> str:
    """Return a part that is not allowed even in a body that a feature did not clean."""
    if {"img", "script", "style", "iframe"} & set(page.tags):
        return f"tags {page.tags}"
    if links := [
        link for link in page.links if not f"{link}/".startswith((f"https://{host}/", f"http://{host}/"))
    ]:
        return f"links {links}"
    if len([language for language in page.languages if language.lower() in ACTIVE]) != suggestions:
        return f"blocks {page.languages}"
    if len(page.comments) != marker or (marker and not markdown.endswith(f"<!--{page.comments[0]}-->")):
        return f"hidden {page.comments}"
    if len(re.findall(r"<!--\s*bouncer", markdown)) > marker:
        return "a marker that we did not write"
    for node in page.text:
        if re.search(r"@[A-Za-z0-9_-]", node) or _CLOSES.search(node):
            return f"a mention or a closing keyword in {node!r}"
    return "a command" if _COMMAND.search(markdown) else ""
