"""Texts that try to become alive: known attacks, and any number of generated ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.attacks import model_text
from tests.attacks.corpus import cases
from tests.bot.pipeline.publishing.surfaces import HOST, OWN_SECRET, SHAPES

KNOWN = tuple(text for _, _, text in cases(model_text.TABLE))
_OWN = f"https://{HOST}/acme/rocket/blob/main/a.py"
_BEGIN, _END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"

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
