"""Notices of verdicts and failures are signed, retried, and delay no other job."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.pipeline.queue import Queue
from bot.pipeline.store.tables import DELIVERIES
from tests.bot.pipeline.builders import job, unread
from tests.bot.pipeline.rig import Rig, rigged, wait

SECRET = "between you and me"


class Receiver:
    """Answers ``statuses`` in turn, then 204; keeps what came."""

    def __init__(self, server: HTTPServer) -> None:
        self.statuses: list[int] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        server.expect_request("/hook").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        self.requests.append((dict(request.headers), request.get_data()))
        return Response(status=self.statuses.pop(0) if self.statuses else 204)

    def bodies(self, event: str) -> list[dict[str, Any]]:
        return [json.loads(body) for headers, body in self.requests if headers["X-Bouncer-Event"] == event]


@pytest.fixture
def receiver(httpserver: HTTPServer) -> Receiver:
    return Receiver(httpserver)


@pytest.fixture
def rig(tmp_path: Path, httpserver: HTTPServer) -> Iterator[Rig]:
    with rigged(tmp_path) as rig:
        rig.environment |= {
            "BOUNCER_NOTIFY_URL": httpserver.url_for("/hook"),
            "BOUNCER_NOTIFY_SECRET": SECRET,
        }
        rig.web()
        rig.worker()
        wait(rig.ready, 60, "web and worker up")
        rig.installation.app.webhook_url = f"http://127.0.0.1:{rig.port}/webhook"
        yield rig
        rig.installation.app.webhook_url = ""


def test_notices_of_verdicts_and_failures_are_signed_and_retried(rig: Rig, receiver: Receiver) -> None:
    receiver.statuses = [500, 302]
    number = rig.github.open_issue("acme/rocket", "It breaks", "It does not work.")
    wait(lambda: len(receiver.bodies("decision")) == 3, 60, "told, after two answers that were none")
    first, second, third = receiver.bodies("decision")
    assert first == second == third
    (notice,) = first["decisions"]
    assert (notice["verdict"], notice["bounced"], first["number"]) == ("VAGUE", True, number)
    assert notice["posted"] == [f"{rig.github.web_url}/acme/rocket/issues/{number}#issuecomment-{comment(rig)}"]
    assert first["text"] == f"acme/rocket#{number}: triage: VAGUE {rig.github.web_url}/acme/rocket/issues/{number}"
    for headers, body in receiver.requests:
        signed = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        assert headers["X-Bouncer-Signature-256"] == f"sha256={signed}"
        assert headers["X-Bouncer-Delivery"] == json.loads(body)["id"]

    queue = Queue(rig.database)
    with queue.transaction() as connection:
        connection.execute(DELIVERIES.insert(), unread("lost"))
        queue.enqueue(connection, job("lost", order=9))
    wait(lambda: bool(receiver.bodies("failure")), 60, "told of a failure")
    queue.close()
    (failure,) = receiver.bodies("failure")
    assert failure["error"].startswith("the stored event cannot be read: ")
    assert failure["job"] == "lost:triage"
    wait(lambda: not rig.jobs.list(("queued", "running", "waiting")), 30, "everything ended")
    assert [job.id for job in rig.jobs.list(("dead",))] == ["lost:triage"]
    assert rig.environment["BOUNCER_NOTIFY_URL"] not in rig.log.read_text()


def comment(rig: Rig) -> int:
    """The id of our only comment."""
    (issue,) = rig.github.world.repositories["acme/rocket"].issues.values()
    return issue.comments[0].id
