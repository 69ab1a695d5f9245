"""Faults of GitHub or of the connection to it, for a number of matching requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from bot.simgithub.wire import ApiAnswer

Kind = Literal[
    "unauthorized",
    "forbidden",
    "rate_limited",
    "secondary_limit",
    "too_many",
    "server_error",
    "bad_gateway",
    "reset",
    "lost",
    "slow",
    "html",
    "malformed",
    "redirect",
    "huge",
]


@dataclass
class InjectedFault:
    """``lost`` applies the request and drops the answer; ``reset`` drops the connection before that."""

    kind: Kind
    method: str = ""
    path: str = ""
    times: int = 1
    wait: float = 1.0
    location: str = ""
    after: int = 0

    def strikes(self, method: str, path: str) -> bool:
        """Return True if the fault applies; an empty ``method`` means any, ``path`` is searched as a pattern.

        The first ``after`` requests that match are let through.
        """
        if not self.times or self.method not in ("", method) or not re.search(self.path, path):
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return True

    def answer(self, now: float) -> ApiAnswer | None:
        """Return the answer of the fault; None if it is not an answer."""
        if self.kind == "huge":  # alone: it takes a tenth of a second to build
            return ApiAnswer(200, b'{"body": "' + b"x" * (64 << 20) + b'"}')
        limit = {"message": "API rate limit exceeded for installation ID 1."}
        second = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}
        reset = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(now + self.wait) + 1)}
        after = {"retry-after": str(int(self.wait))}
        answers = {
            "unauthorized": ApiAnswer(401, {"message": "Bad credentials"}),
            "forbidden": ApiAnswer(403, {"message": "Resource not accessible by integration"}),
            "rate_limited": ApiAnswer(403, limit, reset),
            "secondary_limit": ApiAnswer(403, second, after),
            "too_many": ApiAnswer(429, second, after),
            "server_error": ApiAnswer(500, {"message": "Server Error"}),
            "bad_gateway": ApiAnswer(502, "<html><title>502 Bad Gateway</title></html>", {}, "text/html"),
            "html": ApiAnswer(200, "<html><title>Unicorn!</title></html>", {}, "text/html"),
            "malformed": ApiAnswer(200, '{"id": 12, "body": "cut'),
            "redirect": ApiAnswer(302, None, {"Location": self.location}),
        }
        return answers.get(self.kind)
