"""Deliveries over HTTP, to a real server: each answer, and that nothing is believed before it is verified."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from sqlalchemy import func, select

from bot.github.webhook import MAX_BYTES, sign
from bot.pipeline.store import Database
from bot.pipeline.store.tables import DELIVERIES
from bot.settings import Settings
from bot.web.app import ROOM_BYTES, Backend, create_app
from bot.web.server import Server
from tests.bot.pipeline.rig import PROCESSES, free_port, wait

SECRETS = ("new-secret", "old-secret")
PAYLOADS = Path(__file__).resolve().parents[2] / "payloads"
OPENED = sorted((PAYLOADS / "issues").glob("opened*.json"))[0].read_bytes()


@dataclass
class Site:
    """A server, and how to talk to it."""

    port: int
    database: Database

    def post(
        self, body: bytes = OPENED, secret: str = SECRETS[0], **changes: str | None
    ) -> tuple[int, dict[str, str]]:
        headers: dict[str, str | None] = {
            "Content-Type": "application/json",
            "X-GitHub-Event": "issues",
            "X-GitHub-Delivery": "d-1",
            "X-Hub-Signature-256": sign(body, secret),
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(
            "POST", "/webhook", body, {name: value for name, value in headers.items() if value is not None}
        )
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text else {}

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def recorded(self) -> int:
        return int(self.database.scalar(select(func.count()).select_from(DELIVERIES)))


def serve(url: str, port: int, secrets: tuple[str, ...]) -> None:
    settings = Settings(bouncer_metrics="open")
    Server(lambda: create_app(settings, Backend(url), lambda: secrets), "127.0.0.1", port).run()


def start(database: Database, secrets: tuple[str, ...]) -> Iterator[Site]:
    port = free_port()
    server = PROCESSES.Process(target=serve, args=(database.url, port, secrets))
    server.start()

    def up() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    wait(up, 60, "the server is up")
    yield Site(port, database)
    server.terminate()
    server.join(40)
    assert server.exitcode == 0


@pytest.fixture
def site(database: Database) -> Iterator[Site]:
    yield from start(database, SECRETS)


@pytest.fixture
def on_sqlite(sqlite: Database) -> Iterator[Site]:
    yield from start(sqlite, SECRETS)


def test_the_answers(site: Site) -> None:
    # One server for all of them: they do not depend on each other.
    assert site.post() == (202, {"status": "accepted"})
    assert site.post() == (202, {"status": "seen"})
    assert site.recorded() == 1

    assert site.post(secret=SECRETS[1], X_GitHub_Delivery="d-2")[0] == 202
    form = urlencode({"payload": OPENED.decode()}).encode()
    kind = "application/x-www-form-urlencoded"
    assert site.post(form, X_GitHub_Delivery="d-3", Content_Type=kind)[0] == 202
    ping = (PAYLOADS / "ping" / "ping.github.json").read_bytes()
    assert site.post(ping, X_GitHub_Delivery="d-4", X_GitHub_Event="ping")[0] == 202
    assert site.recorded() == 4

    assert site.post(X_GitHub_Delivery="d-5", X_GitHub_Event="star") == (204, {})
    pinned = sorted((PAYLOADS / "issues").glob("pinned*.json"))[0].read_bytes()
    assert site.post(pinned, X_GitHub_Delivery="d-5") == (204, {})

    unsigned = {"X_Hub_Signature_256": None}
    for status, changes, message in (
        (401, {"secret": "wrong"}, "does not match"),
        (401, unsigned, "missing"),
        (400, {"X_GitHub_Event": None}, "X-GitHub-Event"),
        (400, {"X_GitHub_Delivery": None}, "X-GitHub-Delivery"),
        (400, {"body": b'{"action": "opened"'}, "not JSON"),
        (400, {"body": b'{"action": "opened"}'}, "issues"),
    ):
        status_code, answer = site.post(**{"X_GitHub_Delivery": "d-6", **changes})  # type: ignore[arg-type]
        assert status_code == status, changes
        assert message in answer["error"], changes
    # An unsigned request learns nothing about other mistakes.
    assert site.post(b"not json", X_GitHub_Event=None, X_Hub_Signature_256=None)[0] == 401
    assert site.recorded() == 4


def test_a_body_beyond_githubs_limit_is_refused_whether_or_not_it_says_so(on_sqlite: Site) -> None:
    site = on_sqlite
    status, answer = site.post(b"x" * (MAX_BYTES + 1))
    assert (status, answer["error"]) == (413, f"the body is larger than {MAX_BYTES} bytes")
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    chunks = (b"x" * (1 << 20) for _ in range(26))
    signed = {"X-GitHub-Event": "issues", "X-Hub-Signature-256": sign(b"", "anything")}
    connection.request("POST", "/webhook", chunks, signed, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()
    assert site.post()[0] == 202


def test_large_bodies_share_a_limit_and_small_ones_do_not(on_sqlite: Site) -> None:
    site, large = on_sqlite, 24 * (1 << 20)
    head = (
        f"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: {large + 1}\r\n"
        f"X-Hub-Signature-256: {sign(b'', 'anything')}\r\n\r\n"
    )
    connections = [socket.create_connection(("127.0.0.1", site.port), 20) for _ in range(ROOM_BYTES // large + 1)]
    for connection in connections:
        connection.sendall(head.encode() + b"x" * large)
    # All but one fit in; none of them is complete, and what one more brings is not kept.
    refusal = 503, {"error": "too many large deliveries are arriving at once"}
    wait(lambda: site.post(b"x" * large) == refusal, 20, "the others have arrived")
    assert site.post()[0] == 202
    for connection in connections:
        connection.close()
    wait(lambda: site.post(b"x" * large)[0] == 400, 20, "there is room again")


def test_health_readiness_and_metrics(site: Site) -> None:
    assert site.get("/healthz")[0] == 200
    status, text = site.get("/readyz")
    assert (status, json.loads(text)["why"]) == (503, "no worker was ever seen")
    from bot.pipeline.store.tables import WORKERS

    with site.database.write() as connection:
        worker = {"lease": 0, "name": "x", "started_at": time.time(), "seen_at": time.time()}
        connection.execute(WORKERS.insert(), worker)
    assert site.get("/readyz")[0] == 200
    site.database.execute(WORKERS.update().values(seen_at=time.time() - 60))
    assert re.search("no worker was seen for 6[0-9] s", site.get("/readyz")[1])
    site.post()
    site.post(secret="wrong")
    wait(lambda: 'bouncer_deliveries_total{answer="unauthorized"} 1.0' in site.get("/metrics")[1], 15)
    assert 'bouncer_deliveries_total{answer="accepted"} 1.0' in site.get("/metrics")[1]


def test_a_locked_database_is_503_in_time_and_a_redelivery_is_taken(
    on_sqlite: Site,
) -> None:
    site = on_sqlite
    assert site.post(X_GitHub_Delivery="d-0")[0] == 202
    locked, free = threading.Event(), threading.Event()

    def hold() -> None:
        with site.database.write():
            locked.set()
            free.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait()
    begun = time.monotonic()
    status, answer = site.post()
    assert (status, time.monotonic() - begun < 6) == (503, True)
    assert "did not record" in answer["error"]
    assert site.get("/healthz")[0] == 200
    free.set()
    holder.join()
    assert site.post()[0] == 202


def test_without_a_secret_nothing_is_believed(sqlite: Database) -> None:
    for site in start(sqlite, ()):
        status, answer = site.post()
        assert (status, answer["error"]) == (503, "not set up yet: there is no webhook secret")
        assert site.recorded() == 0


def test_the_program_is_never_loaded_before_the_fork() -> None:
    server = Server(lambda: pytest.fail("made too early"), "127.0.0.1", 0)
    assert server.cfg.preload_app is False
    assert server.cfg.control_socket_disable is True
