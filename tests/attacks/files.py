"""Hostile files in the folder of a command on files, and hostile arguments.

``{"files": name -> text or its maker, "words": the command, "stdin": bytes, "code": the right exit codes}``
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

ISSUE = "It crashes\n\nOn an empty file.\n"
DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-a\n+b\n"
MODEL = ("--model", "recorded:replies.jsonl#m")
TRIAGE = ("triage", "issue.md", *MODEL)
KEYS = "sk-canary-of-the-user-0123456789"
_PYTHON = "open('owned', 'w').write('x')\n"
_ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202e\u2066\x9b31m\x08"


def _reply(explanation: str = "Clear.", **more: Any) -> str:
    reply = {"model": "m", "subject": "offline/files#1", "explanation": explanation, "label": "WELL_SPECIFIED"}
    return json.dumps({**reply, **more}) + "\n"


def _tried(*words: str, code: tuple[int, ...] = (0,), stdin: bytes = b"", **files: Any) -> dict[str, Any]:
    texts = {name.replace("__", "/").replace("_DOT_", "."): text for name, text in files.items()}
    return {"words": words or TRIAGE, "code": code, "stdin": stdin, "files": texts}


def _planted(**files: str) -> dict[str, Any]:
    return _tried(**files)


TABLE = {
    "a file of the folder changes what a command does": {
        "an environment that records": _planted(_DOT_env="BOUNCER_RECORD_FILE=owned\n"),
        "an environment with another provider": _planted(_DOT_env="OPENAI_BASE_URL=http://127.0.0.1:9/v1\n"),
        "an environment that breaks it": _planted(_DOT_env="BOUNCER_MODEL_SECONDS=-1\n"),
        "an environment that is loaded first": _planted(_DOT_env="PYTHONSTARTUP=x.py\n", x_DOT_py=_PYTHON),
        "a configuration": _planted(_DOT_github__bouncer_DOT_yml="triage: {mode: 'off'}"),
        "a configuration beside it": _planted(bouncer_DOT_yml="triage: {mode: 'off'}"),
        "prompts": _planted(prompts__triage_DOT_careful_DOT_md_DOT_jinja="{{ ''.__class__ }}"),
        "a database": _planted(bouncer_DOT_db="no database"),
        "settings of a tool": _planted(pyproject_DOT_toml="[tool.bouncer]\nmodel = 'local:x'"),
        "a module of the program's name": _planted(bot__cli__triage_DOT_py=_PYTHON, bot____init___DOT_py=_PYTHON),
        "a module of a library's name": _planted(pydantic_DOT_py=_PYTHON, click_DOT_py=_PYTHON),
        "what Python looks for at its start": _planted(sitecustomize_DOT_py=_PYTHON, usercustomize_DOT_py=_PYTHON),
    },
    "an input leads somewhere else, stops the command or takes it without end": {
        "a link to a device without end": _tried(
            code=(2,), issue_DOT_md=lambda at: at.symlink_to("/dev/zero")
        ),
        "a link to itself": _tried(code=(2,), issue_DOT_md=lambda at: at.symlink_to(at)),
        "a link to nothing": _tried(code=(2,), issue_DOT_md=lambda at: at.symlink_to("/dev/null")),
        "a folder": _tried(code=(2,), issue_DOT_md=lambda at: at.mkdir()),
        "binary": _tried(code=(2,), issue_DOT_md=lambda at: at.write_bytes(b"\x7fELF\0\0")),
        "nothing": _tried(code=(2,), issue_DOT_md=""),
        "no UTF-8": _tried(issue_DOT_md=lambda at: at.write_bytes(b"It \xff\xfe crashes\n")),
        "more than GitHub shows, of one line": _tried(issue_DOT_md="x" * (1 << 20)),
        "standard input without end": _tried("triage", "-", *MODEL, code=(2,), stdin=b"x" * ((64 << 20) + 1)),
        "standard input that is empty": _tried("triage", "-", *MODEL, code=(2,)),
        "a name that is an option": _tried("triage", "--json=x", code=(2,)),
        "replies that are not JSON": _tried(code=(2,), replies_DOT_jsonl="{"),
        "replies that are nested": _tried(code=(0, 2), replies_DOT_jsonl="[" * 100_000),
        "replies that are a folder": _tried(code=(2,), replies_DOT_jsonl=lambda at: at.mkdir()),
        "a configuration of aliases": _tried(
            *TRIAGE, "--config", "c", code=(0, 2), c="a: &a [*a]\n"
        ),
        "a configuration that is a link": _tried(
            *TRIAGE, "--config", "c", code=(2,), c=lambda at: at.symlink_to("/dev/zero")
        ),
        "templates that reach for more": _tried(
            *TRIAGE, "--prompts", "p", code=(2,),
            p__triage_DOT_careful_DOT_md_DOT_jinja="{{ ''.__class__.__mro__[1].__subclasses__() }}",
        ),
        "a configuration that is a pipe": _tried(*TRIAGE, "--config", "c", code=(2,), c=os.mkfifo),
        "a file of variables that is a folder": _tried(*TRIAGE, "--env-file", ".", code=(2,)),
        "a file of variables without end": _tried(*TRIAGE, "--env-file", "/dev/zero", code=(2,)),
        "a file of variables that is a pipe": _tried(*TRIAGE, "--env-file", "e", code=(2,), e=os.mkfifo),
        "replies without end": _tried(code=(2,), replies_DOT_jsonl=lambda at: at.symlink_to("/dev/zero")),
        "replies that are a pipe": _tried(code=(2,), replies_DOT_jsonl=os.mkfifo),
        "replies that unpack without end": _tried(
            "triage", "issue.md", "--model", "recorded:r.gz#m", code=(2,),
            r_DOT_gz=lambda at: at.write_bytes(gzip.compress(bytes(1 << 20)) * 1_200),
        ),
    },
    "output steers the terminal or is not what it says": {
        "escapes in the explanation": _tried(replies_DOT_jsonl=_reply(f"Clear. {_ESCAPES}")),
        "escapes in the title": _tried(issue_DOT_md=f"It {_ESCAPES} crashes\n\nx"),
        "escapes in a name": _tried("triage", f"no{_ESCAPES}file", *MODEL, code=(2,)),
        "escapes in the model's name": _tried("triage", "issue.md", "--model", f"x{_ESCAPES}:y", code=(2,)),
        "escapes in a configuration": _tried(*TRIAGE, "--config", "c", code=(0, 2), c='"\\e[2J\\u202e": 1'),
        "escapes, as JSON": _tried(*TRIAGE, "--json", replies_DOT_jsonl=_reply(f"Clear. {_ESCAPES}")),
        "an object in an object, as JSON": (
            _tried(*TRIAGE, "--json", replies_DOT_jsonl=_reply('"}\n{"label": "X"}'))
        ),
        "half a character, as JSON": _tried(*TRIAGE, "--json", code=(0, 2), replies_DOT_jsonl=_reply("\ud800")),
        "an abstention, as JSON": _tried(*TRIAGE, "--json", replies_DOT_jsonl=_reply(label="X")),
        "a mistake, as JSON": _tried("triage", "gone.md", "--json", *MODEL, code=(2,)),
        "a report over another file": _tried(
            "review", "--diff", "fix.diff", *MODEL, "--sarif", "link", "--json", code=(0, 2),
            link=lambda at: at.symlink_to("/proc/self/nothing"),
        ),
    },
}  # fmt: skip


def lay(folder: Path, files: dict[str, Any]) -> None:
    """The folder as it is found."""
    usual = {"issue.md": ISSUE, "fix.diff": DIFF, "replies.jsonl": _reply()}
    for name, text in {**usual, **files}.items():
        at = folder / name
        at.parent.mkdir(parents=True, exist_ok=True)
        if callable(text):
            text(at)
        else:
            at.write_text(text, encoding="utf-8", errors="surrogatepass")
    os.utime(folder)


TABLES = (TABLE,)
