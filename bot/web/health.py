"""``/healthz``, ``/readyz``, ``/metrics``: for whoever keeps the program running."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, Response, jsonify
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.wrappers import Response as Answer

from bot.jobs.accept import Acceptor
from bot.jobs.store import Jobs
from bot.ledger import Ledger
from bot.ops.metrics import exposition

#: A worker that was not seen for this long is counted as gone, seconds.
WORKER_SECONDS = 15.0


def blueprint(
    ledger: Callable[[], Ledger], jobs: Callable[[], Jobs], acceptor: Callable[[], Acceptor]
) -> Blueprint:
    """The routes; the arguments are asked in the process that serves."""
    routes = Blueprint("health", __name__)

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
        """Counts for Prometheus."""
        try:
            return Response(exposition(ledger(), jobs()), content_type=CONTENT_TYPE_LATEST)
        except SQLAlchemyError:
            return Response("the database cannot be read\n", 503, content_type="text/plain")

    return routes


def _problem(jobs: Jobs) -> str:
    try:
        age = jobs.worker_age()
    except SQLAlchemyError:
        return "the database cannot be read"
    if age is None:
        return "no worker was ever seen"
    return f"no worker was seen for {age:.0f} s" if age > WORKER_SECONDS else ""
