"""Hostile replies of a model: texts that would be active in a comment, and malformed replies."""

from __future__ import annotations

import json
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

from tests.attacks.corpus import Table
from tests.attacks.injections import PAYLOADS
from tests.bot.pipeline.publishing.surfaces import HOST, OWN_SECRET

_KEY = "ghp_" + "a1B2" * 9
_OWN = f"https://{HOST}/acme/rocket/blob/main/a.py"
_BEGIN, _END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"

#: Each of these came alive, or took something else with it, in an earlier version.
_ALIVE = (
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
    "Gh-13 gH-7 acme/rocket#14",
    "<https:<https:/example/x> <x@y.z:<tada:x:y> a<tada:+2>",
    "<details><summary>&#64;octocat",
    "<details>````(word\n- \n    ===&#64;octocat: fixes &#35;1<summary>",
    "\u3000\n\t```\n\n[x",
    "fixes\nGH-7\n",
    "<\n\n __GH-7\r~~~#-->\n|-|-|\n\t```\n``\n>  ~~~",
    # An entity that is the end of a line, an emoji with an escape in its name.
    "\n/close\n``&#12;\n# ＃]\\\\word2)",
    "a&#x2028;# b&#11;- c&#x85;> d&#x202e;e&#65312;octocat",
    ";\u3000::+1:\\_: :heart\\_eyes:",
    # GitHub makes an address of it.
    "gh-<details>word#12&#64;.word#12|<",
    # A block of HTML to some, a paragraph to GitHub.
    " \r<b> \u3000\n~~~\nhttps://octocathttps://12|",
    "<b>\u3000\x85[!NOTE]```![a](http://e.x)===&amp;_12\n[^1]:!__; ",
    # A fence that only looks closed: what stands behind the mark is no blank to GitHub.
    "\n===\n\n~~~\n~~~\u3000",
    "<dpostgresql:/\\/me:hunter3@db@host/x><a<summary>&#64;octocat",
    "postgresql:/\\/me:hunter3@db@host/x",
    "[^1]:\r\n`[x]<img_src=x>![a](http://e.x)12",
    "[^1]:  \nwww.e.x~~bouncer:triage:v1",
    "[^1]: a\n\n    ```suggestion\n    x\n    ```\n\nb[^1]",
    "[x]: https://evil.example\n\n[x][]",
    f"``mailto:![*<details>{'sk-proj-' + 'abcdefghij0123456789'}[^1] #12<{_OWN}>"
    f"https://{HOST}/acme/rocket/issues/3{'a' * 40}{OWN_SECRET}\n---\n>]",
    "a`<!--**-->\nbouncer\n:-\n`. b",
    "a####\nb```<img_src=x>http://e.x/p\n:-\n![a](http://e.x)``<img_src=x>\n\t```\nx",
    f"https://{HOST}/acme/rocket/issues/3 https://{HOST}/acme/rocket/pull/3#x https://{HOST}@evil.example",
)

#: Posted in every place where a model's words are posted.
TABLE = {
    "a text comes alive, takes words of ours with it, or tells a secret": {
        **{f"known {number}": text for number, text in enumerate(_ALIVE, 1)},
        **PAYLOADS,
    }
}


def _reply(**changes: Any) -> str:
    right = {"explanation": "Vague.", "open_points": ["Which?"], "missing": ["version"], "p_bounce": 90}
    return json.dumps({**right, "label": "VAGUE", **changes})


_EVIL = "@octocat ![x](//evil.example/p.png) <img src=x onerror=alert(1)> Fixes #1 /close"
_RIGHT = _reply()

#: Replies to the question whether an issue is clear, as a provider sends them.
REPLIES = {
    "a reply that leaves a choice is taken for a verdict": {
        "nothing": "",
        "white space": " \n\t ",
        "a sentence": "VAGUE",
        "two verdicts": f"{_RIGHT}\n{_reply(label='WELL_SPECIFIED')}",
        "a verdict in the thoughts alone": f"<think>{_RIGHT}</think>",
        "a verdict that is cut off": _RIGHT[:-2],
        "a key twice": _RIGHT.replace('"label": "VAGUE"', '"label": "VAGUE", "label": "WELL_SPECIFIED"'),
        "no number": _reply(p_bounce=float("nan")),
        "a percentage of a million": _reply(p_bounce=10**6),
        "a percentage below zero": _reply(p_bounce=-1),
        "a percentage that is a list": _reply(p_bounce=[90]),
        "a label of its own": _reply(label="APPROVED"),
        "a label that is an object": _reply(label={"VAGUE": 1}),
        "questions that are a text": _reply(open_points="Which?"),
        "questions that are objects": _reply(open_points=[{"text": "Which?"}]),
        "words of its own for what is missing": _reply(missing=[_EVIL]),
        "half a character": _reply(explanation="\ud800"),
        "nested lists": '{"explanation": ' + "[" * 50_000,
        "nested objects": '{"a":' * 50_000,
        "half a megabyte": _reply(explanation="x" * 500_000),
        "a thousand objects": "{} " * 1_000 + _RIGHT,
        "Python": "{'label': 'VAGUE', 'explanation': __import__('os').getpid()}",
    },
    "words of a reply come alive": {
        "in the explanation": _reply(explanation=_EVIL),
        "in a question": _reply(open_points=[_EVIL, "/bouncer accept", "```suggestion\nx\n```"]),
        "a fold that closes": _reply(explanation="</details>\n\n@octocat"),
        "a marker": _reply(explanation="<!-- bouncer:triage:v1 -->"),
        "fields that nobody asked for": _reply(actions=[{"kind": "merge"}], label_to_set="admin", body=_EVIL),
        "behind the object": f"{_RIGHT}\n\n{_EVIL}",
        "a thousand questions": _reply(open_points=[f"{_EVIL} {number}" for number in range(1_000)]),
    },
}

#: Secrets of an operator's that Markdown, HTML or an address takes apart.
_SECRETS = {
    "with a bracket": "pa<ss word1",
    "with tags": "pa<b>ss</b>word",
    "with a blank": "pass word two",
    "with two blanks": "a  double blank",
    "with a tab": "tab\tsecret1",
    "on two lines": "line one\nline two",
    "in paragraphs": "a\n\nb\n\nc-secret",
    "like a link": "p[ss](w)ord1",
    "like a picture": "p![ss](w)ord1",
    "like an address": "http://u.example/abcdef",
    "like emphasis": "se*cr*et_va_lue",
    "like code": "`tick`secret",
    "like a block": "```fence```1",
    "like a quote": "> quoted text",
    "like a heading": "# heading",
    "like an entity": "&lt;entity1",
    "like an encoding": "per%20cent%3C1",
    "like mathematics": "x$y$z$1234",
    "like a comment": "<!-- com -->1",
    "with accents": "pässwörd",
    "in wide letters": "ＡＢ＠ＣＤ＃ＥＦ",
}
#: (secret, what a model says)
SECRETS: Table[tuple[str, str]] = {
    "an operator's secret is posted": {
        f"{name}{how}": (secret, f"the password is {form} and so on")
        for name, secret in _SECRETS.items()
        for how, form in {
            "": secret,
            " in code": f"`{secret}`",
            " in HTML": escape(secret),
            " in an address": quote(secret),
            " in a form": quote_plus(secret),
        }.items()
    }
}

TABLES = (SECRETS, TABLE, REPLIES)
