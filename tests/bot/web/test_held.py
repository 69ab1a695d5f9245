"""Held connections and endless senders do not harm other clients."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.bot.pipeline.rig import REPOSITORY, Rig, rigged, wait

SIGNED = f"X-Hub-Signature-256: sha256={'0' * 64}\r\n"
POST = "POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
IDLE = b""
SLOW_HEADER = f"{POST}{SIGNED}X-Padding: ".encode()
SLOW_BODY = f"{POST}{SIGNED}Content-Length: 20000000\r\n\r\n".encode()
UNSIGNED_BODY = f"{POST}Content-Length: 20000000\r\n\r\n".encode()
KEPT = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Crowd:
    """Connections of an attacker; slow ones send a byte at a time."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.idle: list[socket.socket] = []
        self.slow: list[socket.socket] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._dribble)
        self._thread.start()

    def hold(self, opening: bytes, count: int, *, dribble: bool = False) -> None:
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", self.port), 10)
            connection.sendall(opening)
            (self.slow if dribble else self.idle).append(connection)

    def _dribble(self) -> None:
        while not self._stop.wait(0.5):
            for connection in self.slow:
                try:
                    connection.send(b"x")
                except OSError:
                    continue

    def ended(self, connections: list[socket.socket]) -> int:
        """How many of them the server closed."""
        count = 0
        for connection in connections:
            connection.setblocking(False)
            try:
                while connection.recv(65536):
                    pass
                count += 1
            except BlockingIOError:
                continue
            except OSError:
                count += 1
        return count

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for connection in (*self.idle, *self.slow):
            connection.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with rigged(tmp_path) as rig:
        rig.web()
        wait(lambda: healthy(rig.port), 60, "up")
        yield rig


def healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=8)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def untroubled(rig: Rig, name: str) -> None:
    """Health is fine and deliveries are taken, each within what GitHub waits."""
    for count in range(10):
        assert healthy(rig.port)
        issue = rig.github.open_issue(REPOSITORY, "Broken", "It does not work.")
        assert rig.deliver("issues", rig.opened(issue), f"{name}-{count}") == 202


def test_two_hundred_held_connections_do_no_harm_and_are_closed(rig: Rig) -> None:
    for opening in (IDLE, SLOW_HEADER, SLOW_BODY, UNSIGNED_BODY):
        with closing(Crowd(rig.port)) as attackers:
            attackers.hold(opening, 200, dribble=bool(opening))
            untroubled(rig, f"{len(opening)}-of-one-kind")
    with closing(Crowd(rig.port)) as attackers:
        attackers.hold(IDLE, 50)
        attackers.hold(KEPT, 50)
        attackers.hold(SLOW_HEADER, 50, dribble=True)
        attackers.hold(SLOW_BODY, 50, dribble=True)
        untroubled(rig, "of-every-kind")
        wait(lambda: attackers.ended(attackers.idle) == 100, 40, "silent connections are closed")
        wait(lambda: attackers.ended(attackers.slow) == 100, 40, "slow senders are closed")
    untroubled(rig, "after")


def test_without_a_signature_the_answer_comes_before_the_body(rig: Rig) -> None:
    with socket.create_connection(("127.0.0.1", rig.port), 10) as connection:
        connection.sendall(UNSIGNED_BODY)
        assert connection.recv(4096).startswith(b"HTTP/1.1 401 ")
