"""Texts that try to become alive: known attacks, and any number of generated ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.bot.handlers.injections import PAYLOADS
from tests.bot.publishing.surfaces import HOST, OWN_SECRET, SHAPES

_KEY = "ghp_" + "a1B2" * 9
_OWN = f"https://{HOST}/acme/rocket/blob/main/a.py"
_BEGIN, _END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"

#: Each of these came alive, or took something else with it, in an earlier version.
KNOWN = (
    f"!{_KEY}(//evil.example/p.png)",
    f"[click]{_KEY}(//evil.example)",
    f"{_BEGIN}\n```\n{_END}\n```suggestion\nos.system('x')\n```",
    f"{_BEGIN}\nMIIEabcdefghijklmnopqrstuvwxyz0123456789\n\n```\nx\n```\n{_END}",
    f"before\n{_BEGIN}\nMIIE and then prose without an end",
    f"{_OWN}`[x](https://evil.example)`",
    f"{_OWN}`@octocat`",
    "\t```\n@octocat",
    "text\n\n\t```\n[x](https://evil.example)\n\t```\n![x](//evil.example/p.png)",
    "- a\n\n\t```suggestion\n\tx\n\t```",
    f"postgresql://me:hunter3@db{'@'}host/x",
    f"the password is {OWN_SECRET}.",
    f"`{OWN_SECRET}` *{OWN_SECRET}* [{OWN_SECRET}](https://evil.example)",
    "hunter2@x!se_[cret<z](https://evil.example)",
    "Heading\n===\n\nOther\n---\n- ",
    "[x]: https://evil.example\n\n[x] ![x] [x][]",
    "a[^1]\n\n[^1]: https://evil.example @octocat",
    "| a | b |\n|---|---|\n| `x | @octocat` | ![x](//evil.example) |",
    "a | b\n:- | -:\nc | d",
    "- [ ] task\n- [x] done @octocat",
    "> [!NOTE]\n> @octocat",
    "~~gone~~ ~gone~ ~~~\nx\n~~~",
    "$x$ $$\n\\href{https://evil.example}{x}\n$$ $`x`$ `a$` `$b`",
    "```math\nx\n```\n```geojson\n{}\n```\n~~~mermaid\nx\n~~~",
    ":tada: :+1: :100:",
    "GH-12 gh-13 acme/rocket#14 #15 ＃16",
    f"acme/rocket@{'a' * 40} {'0123456789' * 4}",
    "Fixes #1. closes: acme/rocket#2, resolves GH-3",
    "/close\n  /bouncer accept\n> /lgtm\n- /merge\n```\n/close\n```",
    "www.evil.example me@evil.example mailto:me@evil.example xmpp:me@evil.example ftp://evil.example",
    "<me@evil.example> <https://evil.example> <HTTPS://evil.example>",
    "&#64;octocat &commat;octocat &#x40;octocat &lt;img src=x&gt; &#60;img src=x&#62;",
    "htt[](x)p://evil.example www[](x).evil.example @[](x)octocat #[](x)12",
    "a\u2028/close\u2029@octocat\x85#1\x0b\x0c\r/close",
    "\\\\@octocat \\\\\\#12 \\\\[x](https://evil.example) \\\\`x` \\",
    "</details><details><summary>x</summary>\n\n@octocat",
    "<!-- bouncer:triage:v1 -->",
    "x\n\n<!-- bouncer:triage:v1 -->\n\n",
    "```\n<!-- bouncer:triage:v1 -->\n```",
    "``````suggestion\nx\n``````",
    "````\n```suggestion\nx\n```\n````",
    "* ```suggestion\n  x\n  ```",
    "1. > - ```suggestion\n x",
    "<pre lang=suggestion>x</pre>",
    "`<img src=x>` ``a`b`` ` `` `",
    "**[x](https://evil.example)** _![x](//evil.example)_",
    f"[x]({_OWN} '@octocat') <{_OWN}> ![x]({_OWN})",
    f"https://{HOST}/acme/rocket/issues/3 https://{HOST}/acme/rocket/pull/3#x https://{HOST}@evil.example",
    *PAYLOADS.values(),
)

_WORDS = """
@octocat ＠octocat @ # ＃ #12 GH-7 gh- o/r#3 /close /bouncer ` `` ``` ```` ~ ~~ ~~~ \\ \\\\ < > <!-- -->
bouncer:triage:v1 <img_src=x> <details> </details> <summary> <b> <a_href="//e.x"> ![a](http://e.x) [a](http://e.x)
[a]: [^1]: [^1] [ ] ( ) ![ ]( http://e.x/p www.e.x https:// http : // www. mailto: x@y.z &#64; &lt; &amp; & | _ __
* ** *** $ $$ $x$ ! :+1: : octocat 12 word suggestion fixes closes a.b C:\\x a<b [!NOTE] [x] {} - + = 1. 2) ####
javascript:alert(1) ' " . , ; ===
"""
_MARKS = [
    "\n", "\n", "\n\n", "\n- ", "\n> ", "\n1. ", "\n    ", "\t", " ", " ", " ", "\n```\n", "\n```suggestion\n",
    "\n~~~\n", "\n---\n", "\n===\n", "\n|-|-|\n", "\n:-\n", "|", "\r", "\r\n", "\u2028", "\x85", "\x00", "\u200b",
    "\u202e", "\u3000", "  \n", "\n/close\n", "\n# ", "\n  ```\n", "\n\t```\n", "<!-- x -->", "-->",
]  # fmt: skip
_LONG = [
    _OWN, f"<{_OWN}>", f"[own]({_OWN})", f"https://{HOST}/acme/rocket/issues/3", *SHAPES[:2], OWN_SECRET, "a" * 40,
    "postgres://me:hunter3@db@h/x", _BEGIN, _END, "MIIEabcdefghijklmnopqrstuv", "x" * 90,
]  # fmt: skip
PIECES = (*_WORDS.replace("_", " ").split(" "), *_WORDS.split(), *_MARKS, *_MARKS, *_LONG)


def generated(count: int, seed: int = 0) -> Iterator[str]:
    """``count`` texts: two thirds put together from pieces, one third known attacks that were mutated."""
    draw = random.Random(seed)
    for _ in range(count):
        if draw.random() < 0.67:
            yield "".join(draw.choices(PIECES, k=draw.randint(1, 18)))
        else:
            yield _mutated(draw.choice(KNOWN)[:400], draw)


def _mutated(text: str, draw: random.Random) -> str:
    for _ in range(draw.randint(1, 4)):
        start, end = sorted(draw.randint(0, len(text)) for _ in "ab")
        match draw.randrange(4):
            case 0:
                text = text[:start] + draw.choice(PIECES) + text[start:]
            case 1:
                text = text[:start] + text[min(end, start + 6) :]
            case 2:
                text = text[:start] + draw.choice(KNOWN)[:200] + text[start:]
            case _:
                text = text[:end] + text[start:end][:100] + text[end:]
    return text
