"""Durable acknowledgement of deliveries: 40 a second, each stored with its jobs in one transaction.

    python -m tests.bench webhook [--seconds N] [--held N] [--database sqlite|postgresql|both]

One fresh connection a delivery, as GitHub does it. With ``--held`` so many connections are held open by clients
that send nothing after the first bytes.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from flask import Flask

from bot.cli.running import configure_logs
from bot.github.webhook import sign
from bot.pipeline.store import migrate, open_database
from bot.settings import Settings
from bot.web.app import Backend, create_app
from bot.web.server import Server
from tests.bench.databases import databases
from tests.bot.pipeline.rig import free_port

RATE, GOAL_MS = 40, 60
SECRET = "benchmark"
PAYLOAD = Path(__file__).parent.parent / "payloads" / "issues"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench webhook")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--held", type=int, default=0, help="connections that send nothing more")
    parser.add_argument("--processes", type=int, default=1, help="server processes")
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    options = parser.parse_args()
    configure_logs("ERROR")
    for name, url, _ in databases(options.database):
        database = open_database(url)
        migrate(database)
        database.close()

        def durable(url: str = url) -> Flask:
            return create_app(Settings(), Backend(url).warm_up(), lambda: (SECRET,))

        with ExitStack() as stack:
            port = free_port()
            stack.enter_context(serving(Server(durable, "127.0.0.1", port, processes=options.processes), port))
            sender = Sender(port, 202)
            open_loop(sender, RATE, 3)
            for _ in range(options.held):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                connection.sendall(b"POST /webhook HTTP/1.1\r\n")
            timings = open_loop(sender, RATE, options.seconds)
        print(f"{name}: {RATE}/s, {options.held} held, goal p99 <= {GOAL_MS} ms: {timings.line()}", flush=True)


@dataclass
class Timings:
    """Seconds of each answered request, and how many were answered otherwise than with ``expected``."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    elapsed: float = 0.0

    def quantile(self, share: float) -> float:
        """Milliseconds."""
        return 1000 * sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.elapsed

    def line(self) -> str:
        """One line for people."""
        return (
            f"{len(self.seconds):6d} answers  {self.rate:7.0f}/s  p50 {self.quantile(0.5):6.1f} ms  "
            f"p99 {self.quantile(0.99):6.1f} ms  max {self.quantile(1.0):6.1f} ms  "
            f"mean {1000 * statistics.fmean(self.seconds):5.1f} ms  wrong {self.wrong}"
        )


class Sender:
    """Sends signed deliveries of one real payload."""

    def __init__(self, port: int, status: int) -> None:
        body = sorted(PAYLOAD.glob("opened*.json"))[0].read_bytes()
        self.size = len(body)
        self._port = port
        self._status = f"HTTP/1.1 {status} ".encode()
        head = (
            "POST /webhook HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"X-GitHub-Event: issues\r\nX-Hub-Signature-256: {sign(body, SECRET)}\r\n"
            f"Content-Length: {len(body)}\r\n"
        )
        self._head, self._body = head.encode(), body

    def send(self, timings: Timings) -> None:
        """One delivery on a connection of its own."""
        start = time.perf_counter()
        delivery = f"X-GitHub-Delivery: {uuid.uuid4()}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", self._port), timeout=30) as connection:
            connection.sendall(self._head + delivery + self._body)
            answer = b""
            while chunk := connection.recv(4096):
                answer += chunk
        timings.seconds.append(time.perf_counter() - start)
        timings.wrong += not answer.startswith(self._status)


def open_loop(sender: Sender, rate: float, seconds: float) -> Timings:
    """Deliveries at a steady rate, whether or not the earlier ones were answered."""
    timings = Timings()
    threads = []
    start = time.perf_counter()
    for index in range(int(rate * seconds)):
        time.sleep(max(0.0, start + index / rate - time.perf_counter()))
        threads.append(threading.Thread(target=sender.send, args=(timings,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    timings.elapsed = time.perf_counter() - start
    return timings


@contextmanager
def serving(server: Server, port: int) -> Iterator[None]:
    """The server in a process of its own, until the block ends."""
    process: BaseProcess = get_context("fork").Process(target=server.run)
    process.start()
    try:
        _wait(port)
        yield
    finally:
        process.terminate()
        process.join(30)


def _wait(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server did not start")


if __name__ == "__main__":
    main()
