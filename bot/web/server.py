"""gunicorn with deadlines for slow senders.

gunicorn's own settings give a thread to each slow request until its body has arrived. waitress, which buffers
requests without threads, was tried: it reads the body before it calls the application, so an unsigned request gets
no early 401, and of 200 senders of one byte every half second it had closed none after 40 s.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import socket
import time
from collections.abc import Callable
from functools import partial
from selectors import EVENT_READ
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.sock import create_sockets
from gunicorn.workers.gthread import TConn, ThreadWorker

#: Threads of a process at most. One serves a connection from its first byte to the answer, so this many slow
#: senders can be borne at once; they are started as they are needed.
THREADS = 256
#: How long a connection may stay silent before its first byte, seconds.
IDLE_SECONDS = 10.0
#: How long a request may take to arrive, headers and body: GitHub itself gives up after 10 s.
ARRIVAL_SECONDS = 15.0
#: The same where half of the threads are taken.
CROWDED_SECONDS = 5.0
#: How long a request may take in all, with an answer that is not read.
REQUEST_SECONDS = 60.0
#: Connections of a process, and of these how many may be silent: beyond, the oldest silent one goes.
CONNECTIONS, SILENT = 2_000, 1_000
#: Files and sockets of a process that are no connections.
OTHER_FILES = 100
#: How long running requests are given at SIGTERM, seconds.
GRACEFUL_SECONDS = 20


class _Log(Logger):  # type: ignore[misc]
    """Leaves gunicorn's messages to the logging that is set up already."""

    def setup(self, cfg: Any) -> None:
        self._access_log_enabled = False
        self.error_log.propagate = True


def _close(_arbiter: Any, worker: Any) -> None:
    """Let the application write its counts to the database."""
    close = getattr(worker.wsgi, "extensions", {}).get("close")
    if close is not None:
        close()


class _Connection(TConn):  # type: ignore[misc]
    """May be closed twice: by the thread that served it, and by gunicorn, which counts a failed close twice."""

    def close(self, graceful: bool = False) -> None:
        if self.sock.fileno() >= 0:
            super().close(graceful)


class GuardedWorker(ThreadWorker):  # type: ignore[misc]
    """Gives no thread to a silent connection, and ends requests that do not arrive in time.

    A new connection waits without a thread for its first byte. A request that is late reads as if its sender had
    hung up.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        #: When the request that a thread serves began.
        self._begun: dict[TConn, float] = {}

    def init_process(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = CONNECTIONS + OTHER_FILES
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        self.worker_connections = min(CONNECTIONS, most - OTHER_FILES)
        super().init_process()

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection, and wait for its first byte."""
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        if len(self.pending_conns) >= SILENT:
            oldest = self.pending_conns.popleft()
            with contextlib.suppress(OSError, KeyError, ValueError):
                self.poller.unregister(oldest.sock)
            self.nr_conns -= 1
            oldest.close()
        conn = _Connection(self.cfg, client, address, listener.getsockname())
        self.nr_conns += 1
        conn.timeout = time.monotonic() + IDLE_SECONDS
        self.pending_conns.append(conn)
        self.poller.register(client, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def enqueue_req(self, conn: TConn) -> None:
        self._begun[conn] = time.monotonic()
        super().enqueue_req(conn)

    def handle(self, conn: TConn) -> Any:
        keep_alive = super().handle(conn)
        if keep_alive is False:
            # A graceful close waits for the other side: here, not in the thread that accepts.
            conn.close(graceful=True)
        return keep_alive

    def finish_request(self, conn: TConn, fs: Any) -> None:
        self._begun.pop(conn, None)
        super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Close silent connections, and end late requests. gunicorn calls it every second."""
        super().murder_pending()
        now = time.monotonic()
        crowded = 2 * len(self._begun) > self.cfg.threads
        arrival = CROWDED_SECONDS if crowded else ARRIVAL_SECONDS
        for conn, since in self._begun.items():
            if now - since > arrival:
                # Reading ends as if the sender had hung up; an answer can still be written.
                how = socket.SHUT_RDWR if now - since > REQUEST_SECONDS else socket.SHUT_RD
                with contextlib.suppress(OSError):
                    conn.sock.shutdown(how)


class LoneWorker(GuardedWorker):
    """Has no arbiter: ends its process, with a traceback on stderr, if its loop stands still for ``timeout``."""

    def notify(self) -> None:
        super().notify()
        faulthandler.dump_traceback_later(self.timeout, exit=True)


class Server(BaseApplication):  # type: ignore[misc]
    """Serves the result of ``make_app``, which is called in each worker process after the fork."""

    def __init__(
        self,
        make_app: Callable[[], Flask],
        host: str,
        port: int,
        *,
        processes: int = 1,
        ready: Callable[[], None] | None = None,
    ) -> None:
        """``ready`` is called once, after the lines that are logged at the start."""
        self._make_app = make_app
        self._options: dict[str, Any] = {
            "bind": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            "workers": processes,
            "threads": THREADS,
            "worker_class": f"{GuardedWorker.__module__}.{GuardedWorker.__qualname__}",
            "worker_connections": CONNECTIONS,
            "graceful_timeout": GRACEFUL_SECONDS,
            "timeout": 60,
            "keepalive": 5,
            "backlog": 512,
            # Headers of a proxy count only by BOUNCER_TRUST_PROXY; gunicorn's own default believes loopback.
            "forwarded_allow_ips": "",
            "preload_app": False,
            "accesslog": None,
            "proc_name": "bouncer-web",
            "worker_exit": _close,
            "when_ready": lambda _arbiter: ready() if ready else None,
            "logger_class": _Log,
            # No other way in than the operator's port.
            "control_socket_disable": True,
        }
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self._make_app()

    def run_here(self) -> None:
        """Serve in this process until SIGTERM or SIGINT.

        gunicorn's arbiter would be one process more, of 35 MB, for what `bouncer serve` and LoneWorker do.
        """
        log = self.cfg.logger_class(self.cfg)
        listeners = create_sockets(self.cfg, log)
        log.info("Listening at: %s (%s)", ",".join(map(str, listeners)), os.getpid())
        worker = LoneWorker(1, os.getppid(), listeners, self, self.cfg.timeout, self.cfg, log)
        worker.pid = os.getpid()
        self.cfg.when_ready(worker)
        try:
            worker.init_process()
        finally:
            self.cfg.worker_exit(worker, worker)
