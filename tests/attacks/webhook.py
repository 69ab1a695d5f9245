"""Requests to the webhook, as bytes on the wire."""

from __future__ import annotations

import gzip
import json
from itertools import count
from typing import Any
from urllib.parse import quote, urlencode

from bot.github.webhook import sign
from tests import deliveries
from tests.bot.pipeline.rig import SECRET

OPENED = deliveries.issue()
BODY = OPENED.body
PING = deliveries.ping().body
JSON, FORM = "application/json", "application/x-www-form-urlencoded"

_numbers = count(1)


def request(
    body: bytes = BODY,
    *more: tuple[str, str],
    signature: str | None = "",
    event: str | None = "issues",
    delivery: str | None = "",
    kind: str = JSON,
    line: str = "POST /webhook HTTP/1.1",
    length: str | None = "",
) -> bytes:
    """Return a signed delivery. Arguments replace the right values; None omits a header."""
    headers = [("Host", "127.0.0.1"), ("Connection", "close"), ("Content-Type", kind)]
    defaults = {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": f"attack-{next(_numbers)}" if delivery == "" else delivery,
        "X-Hub-Signature-256": sign(body, SECRET) if signature == "" else signature,
        "Content-Length": str(len(body)) if length == "" else length,
    }
    headers += [(name, value) for name, value in defaults.items() if value is not None]
    head = "".join(f"{name}: {value}\r\n" for name, value in (*headers, *more))
    return f"{line}\r\n{head}\r\n".encode("utf-8", "surrogateescape") + body


def bent(**changes: Any) -> bytes:
    """A signed ``issues.opened`` with other values in it."""
    return request(json.dumps({**OPENED.payload, **changes}).encode())


def _form(*fields: tuple[str, str]) -> bytes:
    return request(urlencode(fields).encode(), kind=FORM)


_RIGHT = sign(BODY, SECRET)
_WRONG = sign(BODY, "another")
_NAME = "X-Hub-Signature-256"
_ISSUE, _HOME = OPENED.payload["issue"], OPENED.payload["repository"]

TABLE = {
    "bytes that nobody signed are believed": {
        "no signature": request(signature=None),
        "an empty signature": request(signature=" "),
        "signed with another secret": request(signature=_WRONG),
        "signed with the name of the secret's variable": request(signature=sign(BODY, "GITHUB_WEBHOOK_SECRET")),
        "the old signature of SHA-1": request(b"{}", ("X-Hub-Signature", "sha1=" + "0" * 40), signature=None),
        "the algorithm's name is another's": request(signature=_RIGHT.replace("sha256", "sha1")),
        "the algorithm's name in capitals": request(signature=_RIGHT.replace("sha256", "SHA256")),
        "no name of an algorithm": request(signature=_RIGHT.removeprefix("sha256=")),
        "hexadecimal in capitals": request(signature="sha256=" + _RIGHT.removeprefix("sha256=").upper()),
        "half a signature": request(signature=_RIGHT[:39]),
        "a longer signature": request(signature=_RIGHT + "00"),
        "two signatures in one header": request(signature=f"{_WRONG}, {_RIGHT}"),
        "two headers, the wrong one first": request(BODY, (_NAME, _RIGHT), signature=_WRONG),
        "two headers, the right one first": request(BODY, (_NAME, _WRONG)),
        "underscores in the header's name": request(BODY, ("X_Hub_Signature_256", _RIGHT), signature=None),
        "a header that is folded": request(BODY, ("X-A", f"b\r\n {_NAME}: {_RIGHT}"), signature=None),
        "the signature in the address": request(line=f"POST /webhook?{_NAME}={_RIGHT} HTTP/1.1", signature=None),
        "the signature in a cookie": request(BODY, ("Cookie", f"{_NAME}={_RIGHT}"), signature=None),
        "the secret itself": request(signature=SECRET),
        "the secret as a bearer": request(BODY, ("Authorization", f"Bearer {SECRET}"), signature=None),
        "no ASCII in it": request(signature="sha256=" + "é" * 64),
        "a null character in it": request(signature=_RIGHT + "\0"),
        "a signature of a megabyte": request(signature="sha256=" + "0" * (1 << 20)),
        "something behind what was signed": request(BODY + b" ", signature=_RIGHT),
        "only the beginning of what was signed": request(BODY[:-1], signature=_RIGHT),
        "signed before it was compressed": request(
            gzip.compress(BODY), ("Content-Encoding", "gzip"), signature=_RIGHT
        ),
        "signed before it became a form": request(b"payload=" + quote(BODY).encode(), kind=FORM, signature=_RIGHT),
        "signed, but another body stands in the address": request(
            b"{}", line="POST /webhook?payload=%7B%22action%22%3A%22opened%22%7D HTTP/1.1"
        ),
        "the signature of nothing": request(signature=sign(b"", SECRET)),
    },
    "what is no delivery of GitHub's is taken for one": {
        "no event": request(event=None),
        "no delivery id": request(delivery=None),
        "a delivery id that is a path": request(delivery="../../etc/passwd"),
        "a delivery id with a line break": request(delivery="a\r\n X: y"),
        "a delivery id of SQL": request(delivery="' OR 1=1 --"),
        "a delivery id of two hundred characters": request(delivery="x" * 200),
        "not JSON": request(b'{"action": "opened"'),
        "a list": request(b"[1, 2]"),
        "a text": request(b'"opened"'),
        "nothing": request(b""),
        "not UTF-8": request(b"\xff\xfe"),
        "UTF-16": request(BODY.decode().encode("utf-16"), kind=f"{JSON}; charset=utf-16"),
        "nested a hundred thousand times": request(b"[" * 100_000),
        "objects nested a hundred thousand times": request(b'{"a":' * 100_000),
        "a number of a hundred thousand digits": request(b'{"number": ' + b"9" * 100_000 + b"}"),
        "a number beyond 64 bits": bent(issue={**_ISSUE, "number": 2**64}),
        "not what the event is about": request(b'{"action": "opened"}'),
        "an issue that is a text": bent(issue="1"),
        "an issue whose number is a text": bent(issue={**_ISSUE, "number": "../1"}),
        "an issue without a number": bent(issue={**_ISSUE, "number": None}),
        "a repository that is a list": bent(repository=[_HOME]),
        "a repository without a name": bent(repository={**_HOME, "full_name": None}),
        "an installation that is a path": bent(installation={"id": "../7"}),
        "plain text": request(kind="text/plain"),
        "several content types": request(kind=f"text/html, {JSON}"),
        "a form of several parts": request(kind="multipart/form-data; boundary=x"),
        "a form without a payload": _form(("nothing", "1")),
        "a form of too many fields": _form(*((f"f{number}", "x") for number in range(50)), ("payload", "{}")),
        "a form whose payload is a list": _form(("payload", "[]")),
        "the body of another event": request(event="issue_comment"),
        "an event that is a path": request(event="../issues"),
        "another method": request(line="PUT /webhook HTTP/1.1"),
        "a method in a header": request(BODY, ("X-HTTP-Method-Override", "POST"), line="GET /webhook HTTP/1.1"),
    },
    "one request hides another": {
        "two lengths": request(BODY, ("Content-Length", "5")),
        "a length below zero": request(length="-1"),
        "a length that is no number": request(length="0x10"),
        "a length with a sign": request(length=f"+{len(BODY)}"),
        "a length and chunks": request(BODY, ("Transfer-Encoding", "chunked")),
        "chunks of an unknown coding": request(BODY, ("Transfer-Encoding", "xchunked"), length=None),
        "chunks in disguise": request(BODY, ("Transfer-Encoding", "\x0bchunked")),
        "a chunk of a false size": request(
            b"zz\r\n" + BODY, ("Transfer-Encoding", "chunked"), length=None, signature=_RIGHT
        ),
        "a space before the colon": request(BODY, ("X-GitHub-Event ", "issues"), event=None),
        "a path twice": request(line="POST //webhook/../webhook HTTP/1.1"),
        "no version": request(line="POST /webhook"),
        "a line of a megabyte": request(line=f"POST /webhook?{'x' * (1 << 20)} HTTP/1.1"),
        "ten thousand headers": request(BODY, *((f"X-{number}", "x") for number in range(10_000))),
    },
}

#: Sent one after the other under one delivery id.
TWICE = {
    "one delivery is taken twice": {
        "the same again": (request(PING, event="ping", delivery="again-1"),) * 2,
        "another body under its id": (
            request(PING, event="ping", delivery="again-2"),
            request(PING + b" ", event="ping", delivery="again-2"),
        ),
        "another event under its id": (
            request(PING, event="ping", delivery="again-3"),
            request(event="issues", delivery="again-3"),
        ),
    }
}

TABLES = (TABLE, TWICE)
