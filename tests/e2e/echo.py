"""GitHub behind a gateway that is careless: some of its errors repeat the credentials that came with it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import requests
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.simgithub import SimulatedGitHub

_OWN = {"content-length", "transfer-encoding", "connection", "content-encoding"}


class Gateway:
    """Hands everything on to a simulated GitHub, except what it was told to refuse."""

    def __init__(self, server: HTTPServer, github: SimulatedGitHub) -> None:
        self.url = server.url_for("/api/v3")
        self.repeated: list[str] = []
        self._github = github
        self._faults: list[tuple[str, str, int, int]] = []
        self._lock = threading.Lock()
        server.expect_request(re.compile(".*")).respond_with_handler(self._respond)

    def refuse(self, method: str, path: str, status: int, times: int = 99) -> None:
        """Answer these requests with ``status`` and the request's own credentials."""
        self._faults.append((method, path, status, times))

    def _respond(self, request: Request) -> Response:
        with self._lock:
            status = self._strike(request)
        if status is not None:
            secret = request.headers.get("Authorization", "")
            self.repeated.append(secret.partition(" ")[2])
            message = f"Refused for {secret}; token={secret.partition(' ')[2]}"
            if status == 200:
                return Response(f"<html>{message}</html>", content_type="text/html")
            wait = {"Retry-After": "1"} if status == 429 else {}
            return Response(json.dumps({"message": message}), status, wait, content_type="application/json")
        answer = requests.request(
            request.method,
            self._github.web_url + request.full_path.rstrip("?"),
            headers={name: value for name, value in request.headers if name.lower() != "host"},
            data=request.get_data(),
            allow_redirects=False,
            timeout=30,
        )
        headers = {name: value for name, value in answer.headers.items() if name.lower() not in _OWN}
        return Response(answer.content, answer.status_code, headers)

    def _strike(self, request: Request) -> int | None:
        for index, (method, path, status, times) in enumerate(self._faults):
            if times and method == request.method and re.search(path, request.path):
                self._faults[index] = method, path, status, times - 1
                return status
        return None


@contextmanager
def gateway(github: SimulatedGitHub) -> Iterator[Gateway]:
    """Listens until the block ends."""
    with HTTPServer(threaded=True) as server:
        yield Gateway(server, github)
