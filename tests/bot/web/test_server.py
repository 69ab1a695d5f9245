"""The web server without gunicorn's arbiter, in a process of its own."""

from __future__ import annotations

import http.client
import os
import signal
import sys
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

from flask import Flask

from bot.web.server import LoneWorker, Server
from tests.bot.pipeline.rig import PROCESSES, free_port, wait


def make_app() -> Flask:
    """Return an app that says on stderr what it does."""
    app = Flask("slow")
    app.extensions["close"] = lambda: print("closed", file=sys.stderr, flush=True)

    @app.get("/<int:seconds>")
    def answer(seconds: int) -> str:
        time.sleep(seconds)
        print("answered", file=sys.stderr, flush=True)
        return "whole"

    return app


def run(port: int, timeout: int, turn_seconds: float, log: str) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
    turn = LoneWorker.murder_pending

    def murder_pending(self: LoneWorker) -> None:
        turn(self)
        time.sleep(turn_seconds)

    LoneWorker.murder_pending = murder_pending  # type: ignore[method-assign]
    server = Server(make_app, "127.0.0.1", port)
    server.cfg.set("timeout", timeout)
    server.run_here()


def start(port: int, log: Path, timeout: int = 60, turn_seconds: float = 0) -> BaseProcess:
    process = PROCESSES.Process(target=run, args=(port, timeout, turn_seconds, str(log)))
    process.start()
    return process


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {error}"
    finally:
        connection.close()


def test_a_request_that_has_begun_is_answered_before_the_end(tmp_path: Path) -> None:
    port = free_port()
    log = tmp_path / "log"
    process = start(port, log)
    wait(lambda: get(port, "/0") == "whole", 60, "the server is up")
    assert get(port, "/0") == "whole"
    answers: list[str] = []
    slow = threading.Thread(target=lambda: answers.append(get(port, "/2")))
    slow.start()
    time.sleep(1)
    os.kill(process.pid or 0, signal.SIGTERM)
    slow.join()
    process.join(20)
    assert (answers, process.exitcode) == (["whole"], 0)
    # What counts it is closed after the last answer.
    assert log.read_text().splitlines()[-2:] == ["answered", "closed"]


def test_a_server_whose_loop_stands_still_ends_itself(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start(free_port(), log, timeout=3, turn_seconds=200)
    process.join(100)
    assert (process.exitcode, "Timeout (0:00:03)!" in log.read_text()) == (1, True)
