"""gunicorn around the application: threads, a graceful end, and no preloading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

#: How long running requests are given at SIGTERM, seconds.
GRACEFUL_SECONDS = 20


class _Log(Logger):  # type: ignore[misc]
    """gunicorn's words go where everything goes; the operator's logging is set up already."""

    def setup(self, cfg: Any) -> None:
        self._access_log_enabled = False
        self.error_log.propagate = True


def _close(_arbiter: Any, worker: Any) -> None:
    """Let the application record what it still holds."""
    close = getattr(worker.wsgi, "extensions", {}).get("close")
    if close is not None:
        close()


class Server(BaseApplication):  # type: ignore[misc]
    """Serves what ``make_app`` returns, called in each worker process after the fork."""

    def __init__(
        self, make_app: Callable[[], Flask], host: str, port: int, *, processes: int = 1, threads: int = 8
    ) -> None:
        self._make_app = make_app
        self._options: dict[str, Any] = {
            "bind": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            "workers": processes,
            "threads": threads,
            "worker_class": "gthread",
            "graceful_timeout": GRACEFUL_SECONDS,
            "timeout": 60,
            "keepalive": 5,
            "backlog": 512,
            "preload_app": False,
            "accesslog": None,
            "proc_name": "bouncer-web",
            "worker_exit": _close,
            "logger_class": _Log,
            # No door beside the one that the operator opened.
            "control_socket_disable": True,
        }
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self._make_app()
