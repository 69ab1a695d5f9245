"""Durable acknowledgement of deliveries: how fast, and against a server that records nothing.

The same gunicorn, client and payload serve all rows of one run. ``bare`` answers 202 from a Flask handler that
only reads the body; ``signed`` also checks the signature and parses the event; ``durable`` is the real thing.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from flask import Flask, request

from bot.ops import logs
from bot.store import migrate, open_database
from bot.web.app import Backend, create_app
from bot.web.server import Server
from tests.bench.load import SECRET, Sender, Timings, closed_loop, free_port, open_loop, serving


def bare_app() -> Flask:
    """Flask alone: reads the body, answers 202."""
    app = Flask("bare")

    @app.post("/webhook")
    def receive() -> tuple[str, int]:
        request.get_data(cache=False)
        return "", 202

    return app


class _Nowhere:
    def accept(self, delivery: str, event: object) -> bool:
        return True


def signed_app() -> Flask:
    """The real handler on a store that forgets."""
    from bot.ops.metrics import Counts
    from bot.web import webhook

    app = Flask("signed")
    app.register_blueprint(webhook.blueprint(lambda: (SECRET,), _Nowhere, Counts()))
    return app


def durable_app(url: str) -> Flask:
    """What ``bouncer web`` serves."""
    return create_app(Backend(url), lambda: (SECRET,))


def measure(make_app: Callable[[], Flask], processes: int, seconds: float) -> tuple[Timings, Timings]:
    """(open loop at 40/s, closed loop of 8 clients)."""
    port = free_port()
    logs.configure("ERROR")
    with serving(Server(make_app, "127.0.0.1", port, processes=processes), port):
        sender = Sender(port, 202)
        closed_loop(sender, 8, 0.5)
        return open_loop(sender, 40, seconds), closed_loop(sender, 8, seconds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench webhook")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each loop")
    parser.add_argument("--processes", type=int, default=2, help="server processes")
    parser.add_argument("--database-url", help="another database than a fresh SQLite file")
    options = parser.parse_args()
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        url = options.database_url or f"sqlite:///{Path(folder)}/bench.db"
        database = open_database(url)
        migrate(database)
        database.close()
        apps: dict[str, Callable[[], Flask]] = {
            "bare": bare_app,
            "signed": signed_app,
            "durable": lambda: durable_app(url),
        }
        print(f"{options.processes} process(es), payload {Sender(0, 202).size} bytes, fresh connections")
        for name, make in apps.items():
            steady, closed = measure(make, options.processes, options.seconds)
            rates[name] = closed.rate
            print(f"{name:8} 40/s open loop    {steady.line()}")
            print(f"{name:8} 8 clients closed  {closed.line()}")
    ratios = (f"{name} / bare: {rates[name] / rates['bare']:.2f}" for name in ("signed", "durable"))
    print("ratio " + ", ".join(ratios))


if __name__ == "__main__":
    main()
