"""Durable acknowledgement of deliveries: 40 a second, each stored with its jobs in one transaction.

    python -m tests.bench webhook [--seconds N] [--held N] [--database sqlite|postgresql|both]

With ``--held`` so many connections are held open by clients that send nothing after the first bytes.
"""

from __future__ import annotations

import argparse
import socket
from contextlib import ExitStack

from flask import Flask

from bot.cli.running import configure_logs
from bot.pipeline.store import migrate, open_database
from bot.settings import Settings
from bot.web.app import Backend, create_app
from bot.web.server import Server
from tests.bench.databases import databases
from tests.bench.load import SECRET, Sender, open_loop, serving
from tests.bot.pipeline.rig import free_port

RATE, GOAL_MS = 40, 60


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


if __name__ == "__main__":
    main()
