"""Durable acknowledgement of deliveries: how fast, and against a server that records nothing.

The same gunicorn, client and payload serve all rows of one run, at the same time. ``bare`` answers 202 from a
Flask handler that only reads the body; ``signed`` also checks the signature and parses the event;
``durable`` is the real thing.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from flask import Flask, request

from bot.cli import logs
from bot.pipeline.store import migrate, open_database
from bot.web.app import Backend, create_app
from bot.web.server import Server
from tests.bench.load import SECRET, Sender, closed_loop, free_port, open_loop, serving, together


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
    from bot.pipeline.metrics import Counts
    from bot.web import webhook

    app = Flask("signed")
    app.register_blueprint(webhook.blueprint(lambda: (SECRET,), _Nowhere, Counts()))
    return app


def durable_app(url: str) -> Flask:
    """What ``bouncer web`` serves."""
    return create_app(Backend(url), lambda: (SECRET,))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench webhook")
    parser.add_argument("--seconds", type=int, default=10, help="of each loop")
    parser.add_argument("--processes", type=int, default=2, help="server processes")
    parser.add_argument("--database-url", help="another database than a fresh SQLite file")
    options = parser.parse_args()
    logs.configure("ERROR")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        url = options.database_url or f"sqlite:///{Path(folder)}/bench.db"
        database = open_database(url)
        migrate(database)
        database.close()
        apps: dict[str, Callable[[], Flask]] = {
            "bare": bare_app,
            "signed": signed_app,
            "durable": lambda: durable_app(url),
        }
        senders: dict[str, Sender] = {}
        for name, make in apps.items():
            port = free_port()
            servers.enter_context(serving(Server(make, "127.0.0.1", port, processes=options.processes), port))
            senders[name] = Sender(port, 202)
            closed_loop(senders[name], 8, 0.5)
        print(f"{options.processes} process(es), payload {senders['bare'].size} bytes, fresh connections")
        for name, sender in senders.items():
            print(f"{name:8} 40/s open loop    {open_loop(sender, 40, options.seconds).line()}")
        # By turns, a second each: what else the machine does then hits all alike.
        rounds = [
            {name: closed_loop(sender, 8, 1.0) for name, sender in senders.items()} for _ in range(options.seconds)
        ]
    for name in senders:
        print(f"{name:8} 8 clients closed  {together(each[name] for each in rounds).line()}")
    for name in ("signed", "durable"):
        ratios = sorted(each[name].rate / each["bare"].rate for each in rounds)
        print(f"{name} / bare: median {median(ratios):.2f}, rounds from {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
