"""``/healthz``, ``/readyz``, ``/metrics``: for whoever keeps the program running."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Blueprint, Response, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.wrappers import Response as Answer

from bot.core.frozen import Frozen
from bot.pipeline.admin import Jobs
from bot.pipeline.inbox import Inbox
from bot.pipeline.metrics import exposition
from bot.pipeline.store import Ledger
from bot.web.session import Sessions

#: A worker that was not seen for this long is counted as gone, seconds.
WORKER_SECONDS = 15.0
#: What a proxy adds; a request that carries one of them comes from elsewhere, whoever hands it over.
_FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")


class Readers(Frozen):
    """Who may read ``/metrics``: everybody where it is ``open``; else this machine, the token, the dashboard."""

    open: bool = False
    token: str = ""
    session_key: str = ""


def blueprint(
    ledger: Callable[[], Ledger], jobs: Callable[[], Jobs], acceptor: Callable[[], Inbox], readers: Readers
) -> Blueprint:
    """The routes; the arguments are asked in the process that serves."""
    routes = Blueprint("health", __name__)
    sessions = Sessions(readers.session_key, lambda: ledger().logins)

    @routes.get("/healthz")
    def healthz() -> Answer:
        """The process is up, and so is the thread that records deliveries."""
        if acceptor().alive:
            return jsonify(status="ok")
        response = jsonify(status="failing", why="the thread that records deliveries has ended")
        response.status_code = 503
        return response

    @routes.get("/readyz")
    def readyz() -> Answer:
        """Deliveries can be recorded, and somebody works on them."""
        problem = _problem(jobs())
        response = jsonify(status="not ready", why=problem) if problem else jsonify(status="ready")
        response.status_code = 503 if problem else 200
        return response

    @routes.get("/metrics")
    def metrics() -> Answer:
        """Counts for Prometheus; they name repositories."""
        try:
            if not (readers.open or _local() or _holds(readers.token) or sessions.login() is not None):
                return Response("only for the operator: see BOUNCER_METRICS\n", 403, content_type="text/plain")
            return Response(exposition(ledger(), jobs()), content_type=CONTENT_TYPE_LATEST)
        except SQLAlchemyError:
            return Response("the database cannot be read\n", 503, content_type="text/plain")

    return routes


def _local() -> bool:
    """Whether a program on this machine asks, itself and by this machine's own name."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    return _loopback(request.remote_addr or "") and _loopback(urlsplit(f"//{request.host}").hostname or "")


def _loopback(name: str) -> bool:
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def _holds(token: str) -> bool:
    given = request.headers.get("Authorization", "").encode("utf-8", "replace")
    return bool(token) and hmac.compare_digest(given, f"Bearer {token}".encode())


def _problem(jobs: Jobs) -> str:
    try:
        age = jobs.worker_age()
    except SQLAlchemyError:
        return "the database cannot be read"
    if age is None:
        return "no worker was ever seen"
    return f"no worker was seen for {age:.0f} s" if age > WORKER_SECONDS else ""
