"""Text that models and strangers wrote, made safe to post as GitHub Markdown.

``clean`` and ``clean_line`` are for fragments that handlers put into their own templates: nobody is
mentioned, nothing is referenced, closed, commanded, shown or linked that the template did not ask for. ``net``
goes over a whole body once more just before it is written. What a fragment holds as code stays code, in
fences of our own making, so that a forgotten fence cannot swallow what follows it.

All functions are pure. A zero-width space (U+200B) is what breaks a mention or reference: entities would
not do, GitHub looks for mentions after it has decoded them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from urllib.parse import urlsplit

from bot.redaction import redact

__all__ = ["cap", "clean", "clean_line", "fence", "host_of", "net", "redact", "visible"]

BREAK = "\u200b"

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
#: Invisible without being format characters: Hangul fillers, joiners, variation selectors.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([^`\n]*)$")
_TICKS = re.compile(r"`+")
_URL = r"(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|www\.|mailto:|xmpp:)[^\s<>`\[\]|\\]*"
_TOKEN = re.compile(
    rf"!\[(?P<alt>[^\[\]]*)\]\([^()\n]*\)"
    rf"|\[(?P<text>[^\[\]]+)\]\((?P<target>[^()\s]*)(?:\s[^()\n]*)?\)"
    rf"|(?P<url>(?<![A-Za-z]){_URL})",
    re.IGNORECASE,
)
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~/%?=&+,-]*(?:#[A-Za-z][A-Za-z0-9._-]*)?)?")
#: A link to one of these leaves a trace on the other side.
_TRACE = re.compile(r"/(?:issues|pull|pulls|discussions|commit)/", re.IGNORECASE)
_TRAILING = ".,;:!?'\"*_)"
_COMMAND = re.compile(r"^([\s>*+-]*(?:\d+[.)]\s*)?)/(?=[A-Za-z])")
_CODE_COMMAND = re.compile(r"^(\s*)/(?=[a-z][\w-]*(?:\s|$))", re.MULTILINE | re.IGNORECASE)
_CLOSES = re.compile(
    rf"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?=:?\s{{0,3}}`?(?:[\w./-]{{0,100}}#{BREAK}?\d|gh-|https?:))",
    re.IGNORECASE,
)
_TABLE = re.compile(r"[\s>*+\d.)-]*[:|][\s>*+|:-]*")
_MARKER = re.compile(r"<!--(?=\s*bouncer\b)", re.IGNORECASE)
_BLOCK_START = re.compile(r"(?P<mark>[#>]|[-+*](?=\s)|[-=*_](?=[-=*_\s]*$))|(?P<digits>\d{1,9})(?=[.)])")
#: Languages that GitHub renders or acts on instead of showing.
_ACTIVE_LANGUAGES = frozenset({"mermaid", "geojson", "topojson", "stl", "math", "suggestion"})
_TEMPLATE_TAG = re.compile(
    r"<(?!/?(?:details|summary|sub|sup|br|code|pre|b|i|em|strong|kbd|blockquote)\s*/?>|details open>)"
)


def host_of(url: str) -> str:
    """Host (and port) of a URL, lower case: what ``clean`` wants as ``host``."""
    return urlsplit(url).netloc.lower()


def visible(text: str, *, lookalikes: bool = True) -> str:
    """``text`` without control, zero-width and direction characters, line ends as ``\\n``.

    With ``lookalikes``, characters that pass for ``@``, ``#``, ``/``, ``<`` or a backtick become them.
    """
    text = re.sub(r"\r\n?|\u2028|\u2029|\x85", "\n", text)
    kept = "".join(each for each in text if each in "\n\t" or _shows(each))
    kept = kept.encode("utf-8", "replace").decode("utf-8")
    return kept.translate(_LOOKALIKES) if lookalikes else kept


def clean(text: str, *, host: str = "", limit: int) -> str:
    """A multi-line Markdown fragment of a model's, harmless, in at most ``limit`` characters.

    Paragraphs, lists, emphasis and code survive; HTML, images, tables and foreign links do not. ``host`` is
    where the repository lives (``host_of(repository.html_url)``): plain links into it stay links.
    """
    return _within(visible(text[: 4 * limit]).strip(), limit, lambda part: _clean(part, host.lower()))


def clean_line(text: str, *, host: str = "", limit: int = 300) -> str:
    """One line of a model's text for a bullet, a sentence or a heading of a template; never opens a block."""
    line = " ".join(re.sub(r"`{3,}|~{3,}", " ", visible(text[: 4 * limit])).split())
    return _within(line, limit, lambda part: _start_escaped(_line(part, host.lower()).strip()))


def fence(code: str, lang: str = "") -> str:
    """``code`` as a fenced block that nothing in it can close; no line of it is a command to another bot."""
    code = _code(visible(code, lookalikes=False)).strip("\n")
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(code)), default=0))
    lang = re.sub(r"[^A-Za-z0-9_+.-]", "", lang)[:20].lower()
    return f"{ticks}{'' if lang in _ACTIVE_LANGUAGES else lang}\n{code}\n{ticks}"


def cap(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters; a fence or fold that the cut left open is closed."""
    if len(text) <= limit:
        return text
    room = limit - 80
    if room < 1:
        return text[:limit]
    cut = text[: max(text.rfind("\n", room // 2, room), text.rfind(" ", room - 40, room), 0) or room].rstrip()
    opened = _open_fence(cut)
    folds = max(0, cut.count("<details") - cut.count("</details>"))
    return cut + "…" + (f"\n{opened[:50]}" if opened else "") + "\n\n</details>" * min(folds, 2)


def net(body: str, *, hosts: Collection[str] = ()) -> str:
    """The last look at a whole body: templates keep their HTML and ``#n``, everything else of ``clean`` holds.

    Mentions, closing keywords, images, HTML comments, foreign links and unknown tags are gone afterwards. Code
    is left as it is. Only links to ``hosts`` stay links.
    """
    hosts = frozenset(each.lower() for each in hosts)
    lines: list[str] = []
    closing = ""
    for line in body.replace("\r\n", "\n").split("\n"):
        opened = _FENCE.match(line)
        if closing:
            closing = "" if _closes(line, closing) else closing
            lines.append(_MARKER.sub(f"<!{BREAK}--", line))
        elif opened and len(opened[1]) < 4:
            closing = opened[2]
            lines.append(line)
        else:
            lines.append(_net_line(line, hosts))
    return "\n".join([*lines, closing] if closing else lines)


def _shows(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf") and char not in _INVISIBLE


def _within(text: str, limit: int, transform: Callable[[str], str]) -> str:
    """The transformed text, cut *before* it is transformed, so that no escape is torn apart."""
    result, size = transform(text), min(len(text), limit)
    while len(result) > limit and size > 0:
        result = transform(text[:size].rstrip() + "…")
        size -= max(1, size // 16, (len(result) - limit) // 8)
    return result if len(result) <= limit else ""


def _clean(text: str, host: str) -> str:
    blocks = (fence(body, lang) if code else _prose(body, host) for code, lang, body in _blocks(text))
    return "\n".join(block for block in blocks if block).strip()


def _blocks(text: str) -> Iterator[tuple[bool, str, str]]:
    """(is code, language, text) in turn; a fence that is never closed ends with the text."""
    lines: list[str] = []
    lang = closing = ""
    for line in text.split("\n"):
        opened = None if closing else _FENCE.match(line)
        if opened:
            yield False, "", "\n".join(lines)
            lines, lang, closing = [], (opened[3].split() or [""])[0], opened[2]
        elif closing and _closes(line, closing):
            yield True, lang, "\n".join(lines)
            lines, closing = [], ""
        else:
            lines.append(line)
    yield bool(closing), lang, "\n".join(lines)


def _closes(line: str, opening: str) -> bool:
    return len(line.strip()) >= len(opening) and set(line.strip()) == {opening[0]}


def _open_fence(text: str) -> str:
    closing = ""
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        if closing:
            closing = "" if _closes(line, closing) else closing
        elif opened:
            closing = opened[2]
    return closing


def _prose(text: str, host: str) -> str:
    # A table's cells are split before code spans are seen: code would come back to life. So no tables.
    return "\n".join(_line(line, host) for line in text.split("\n") if not _TABLE.fullmatch(line)).strip("\n")


def _line(line: str, host: str) -> str:
    hosts = frozenset({host} if host else ())
    line = _spans(line, lambda part: _links(part, hosts, _escape))
    return _COMMAND.sub(rf"\1/{BREAK}", _CLOSES.sub(_broken, line))


def _net_line(line: str, hosts: frozenset[str]) -> str:
    line = _spans(line, lambda part: _links(part, hosts, _template))
    return _COMMAND.sub(rf"\1/{BREAK}", _CLOSES.sub(_broken, line))


def _broken(match: re.Match[str]) -> str:
    return match[0][0] + BREAK + match[0][1:]


def _spans(line: str, prose: Callable[[str], str]) -> str:
    """``line`` with code spans kept as code and everything else through ``prose``.

    A span counts only where it opens and closes on this line; other backticks go, before anything is looked at.
    """
    out: list[str] = []
    position = start = 0
    while run := _TICKS.search(line, position):
        end = next((other for other in _TICKS.finditer(line, run.end()) if len(other[0]) == len(run[0])), None)
        if end is None:
            line, position = line[: run.start()] + line[run.end() :], run.start()
            continue
        out.append(prose(line[start : run.start()]))
        out.append(_span(line[run.end() : end.start()], after=out[-1]))
        position = start = end.end()
    # Two spans that touch would make one longer run of backticks, which closes neither.
    return re.sub(r"(`)\0(?=`)", r"\1 ", "\0".join([*out, prose(line[start:])])).replace("\0", "")


def _span(code: str, *, after: str) -> str:
    """A code span; a backslash at the end of the text before it must not escape its opening."""
    code = _MARKER.sub(f"<!{BREAK}--", code.strip())
    if not code:
        return ""
    runs = {len(run) for run in _TICKS.findall(code)}
    ticks = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
    pad = " " if code[0] == "`" or code[-1] == "`" else ""
    escape = "\\" * ((len(after) - len(after.rstrip("\\"))) % 2)
    return f"{escape}{ticks}{pad}{code}{pad}{ticks}"


def _code(code: str) -> str:
    return _CODE_COMMAND.sub(rf"\1/{BREAK}", _MARKER.sub(f"<!{BREAK}--", code))


def _links(part: str, hosts: frozenset[str], plain: Callable[[str], str]) -> str:
    out, start, parted = "", 0, False
    for token in [*_TOKEN.finditer(part), None]:
        gap = plain(part[start : token.start() if token else None])
        # What a link or an image held apart must not grow together where it is gone.
        out += " " + gap if parted and gap and not gap[0].isspace() else gap
        if token is None:
            break
        start, parted = token.end(), False
        if token["url"] is not None:
            url = token["url"].rstrip(_TRAILING)
            start -= len(token["url"]) - len(url)
            out += url if _own(url, hosts, plain is _template) else _span(url[:200], after=out)
        elif token["text"] is None:
            parted = True
        elif _own(token["target"], hosts, plain is _template):
            out += f"[{plain(token['text'])}]({token['target']})"
        else:
            parted = True
            out += " " * (out != "" and not out[-1].isspace()) + plain(token["text"])
    return out


def _own(url: str, hosts: frozenset[str], trusted: bool) -> bool:
    """Whether a link may stay; one that leaves a trace elsewhere only if a template (``trusted``) wrote it."""
    return (
        _PLAIN_URL.fullmatch(url) is not None and host_of(url) in hosts and (trusted or _TRACE.search(url) is None)
    )


def _escape(text: str) -> str:
    text = re.sub(r"&(?=#?\w{1,32};)", "&amp;", text).replace("<", "&lt;")
    text = re.sub(
        r"(\\*)([\[|])", lambda match: match[1] + ("\\" if len(match[1]) % 2 == 0 else "") + match[2], text
    )
    text = re.sub(r"~{3,}", " ", text)
    text = text.replace("@", f"@{BREAK}")
    return re.sub(r"#(?=\d)|(?<![A-Za-z0-9])gh-(?=\d)", lambda match: match[0] + BREAK, text, flags=re.IGNORECASE)


def _template(text: str) -> str:
    return _TEMPLATE_TAG.sub("&lt;", text).replace(f"@{BREAK}", "@").replace("@", f"@{BREAK}")


def _start_escaped(line: str) -> str:
    found = _BLOCK_START.match(line)
    at = 0 if found is None or not found["digits"] else found.end("digits")
    return line if found is None else f"{line[:at]}\\{line[at:]}"
