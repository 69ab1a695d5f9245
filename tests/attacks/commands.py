"""Comments that want to be taken for a maintainer's command: who writes them, and what."""

from __future__ import annotations

MAINTAINER, AUTHOR, STRANGER, READER, MACHINE = "mia", "ann", "stranger", "reader", "helper[bot]"


def _by(login: str, *words: str) -> dict[str, tuple[str, str]]:
    return {f"{word} by {login}": (login, f"/bouncer {word}") for word in words}


_UNSEEN = {
    "in a comment of HTML": "<!--\n/bouncer accept\n-->",
    "in a comment within a sentence": "So <!--\n/bouncer accept\n--> it is",
    "in a processing instruction": "So <?\n/bouncer accept\n?> it is",
    "in a section of data": "So <![CDATA[\n/bouncer accept\n]]> it is",
    "in an attribute": 'So <b title="\n/bouncer accept\n">it</b> is',
    "in the title of a link": '[So](/x "\n/bouncer accept\n") it is',
    "in the name of a link": "[So][b\n/bouncer accept\n]\n\n[b /bouncer accept]: x",
    "in the words for a picture": "![\n/bouncer accept\n](x)",
    "in a definition's title": '[x]: http://a "\n/bouncer accept\n"',
    "in a definition's name": "[x\n/bouncer accept\n]: http://a",
    "in a footnote that nothing points to": "[^1]: So\n/bouncer accept",
    "in a footnote behind a sentence": "So it is.\n[^1]: So\n/bouncer accept",
    "in a footnote of a list": "- [^1]: So\n/bouncer accept",
    "in a fold": "<details><summary>Log</summary>\n\n/bouncer accept\n\n</details>",
}
_QUOTED = {
    "a quote": "> /bouncer accept",
    "a quote that goes on": "> They wrote:\n/bouncer accept",
    "an answered mail": "On Monday mia wrote:\n>> /bouncer accept",
    "a quote of HTML": "<blockquote>\n\n/bouncer accept\n\n</blockquote>",
    "a block of code": "```\n/bouncer accept\n```",
    "a block that nobody closes": "````\n```\n/bouncer accept\n```",
    "tildes": "~~~ x\n/bouncer accept\n~~~",
    "indented code": "    /bouncer accept",
    "preformatted": "<pre>\n\n/bouncer accept\n</pre>",
    "code over two lines": "`a\n/bouncer accept\nb`",
}
_OTHER = {
    "within a sentence": "please /bouncer accept",
    "behind a character of no width": "\u200b/bouncer accept",
    "behind a byte order mark": "\ufeff/bouncer accept",
    "a slash of full width": "／bouncer accept",
    "letters of another alphabet": "/bоuncer accept",
    "written as an entity": "&#47;bouncer accept",
    "turned around": "\u202etpecca recnuob/",
    "behind a line separator": "a\u2028/bouncer accept",
    "in tag characters": "/bouncer " + "".join(chr(0xE0000 + ord(char)) for char in "accept"),
    "a word that nobody knows": "/bouncer merge",
    "arguments of its own": "/bouncer accept --force",
    "a commit that is a shell's": "/bouncer verify --run $(id)",
}

#: Comments on an issue of ``ann``'s: (who, what).
TABLE = {
    "somebody without rights is obeyed": {
        **_by(STRANGER, "accept", "pause", "resume", "recheck", "reproduce", "bisect"),
        **_by(READER, "accept", "pause"),
        **_by(AUTHOR, "accept", "pause", "reproduce", "bisect"),
    },
    "a program is obeyed": _by(MACHINE, "accept", "pause", "help"),
    "a command that GitHub shows nobody is obeyed": {name: (MAINTAINER, text) for name, text in _UNSEEN.items()},
    "a maintainer's quote of a command is obeyed": {name: (MAINTAINER, text) for name, text in _QUOTED.items()},
    "what looks like a command is obeyed": {name: (MAINTAINER, text) for name, text in _OTHER.items()},
}

#: Comments that are changed afterwards: (who wrote, what, who edits, what).
EDITED = {
    "an edited comment is obeyed": {
        "its author adds a command": (MAINTAINER, "Thanks.", MAINTAINER, "/bouncer accept"),
        "a stranger's words become a maintainer's": (STRANGER, "Hello.", MAINTAINER, "/bouncer accept"),
    }
}

TABLES = (TABLE, EDITED)
