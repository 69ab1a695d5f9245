"""``/healthz``, ``/readyz``, ``/metrics``: for operators and their monitoring."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from flask import Blueprint, Response, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.wrappers import Response as Answer

from bot.core.errors import InvalidSignature
from bot.core.frozen import Frozen
from bot.github import webhook
from bot.pipeline.admin import Jobs
from bot.pipeline.metrics import exposition
from bot.pipeline.store import Ledger
from bot.web import session
from bot.web.session import Sessions
from bot.web.webhook import Secrets

#: A worker that was not seen for this long is counted as gone, seconds.
WORKER_SECONDS = 15.0
#: A random value that the doctor signs with a webhook secret.
NONCE = "X-Bouncer-Nonce"


class Readers(Frozen):
    """Access to ``/metrics``: by a token, by a session of the dashboard, or ``open`` for everyone."""

    open: bool = False
    token: str = ""
    session_key: str = ""


def blueprint(
    ledger: Callable[[], Ledger],
    jobs: Callable[[], Jobs],
    readers: Readers,
    secrets: Secrets,
) -> Blueprint:
    """The routes; the arguments are asked in the process that serves."""
    routes = Blueprint("health", __name__)
    sessions = Sessions(readers.session_key, lambda: ledger().logins)

    @routes.get("/healthz")
    def healthz() -> Answer:
        return jsonify(status="ok")

    @routes.get("/readyz")
    def readyz() -> Answer:
        """Deliveries can be recorded, and a worker is there; what waits for the operator is a notice."""
        problem = _problem(jobs())
        if problem:
            response = jsonify(status="not ready", why=problem)
            response.status_code = 503
            return response
        # Not a failure: deliveries are accepted and wait. Anyone may read this, so it names no model.
        notice = "a model's provider refuses requests, and jobs wait: see the dashboard or the log"
        return jsonify(status="ready", **({"notice": notice} if ledger().faults.all() else {}))

    @routes.get("/metrics")
    def metrics() -> Answer:
        """Counts for Prometheus; they name repositories."""
        try:
            header = request.headers.get("Authorization", "").encode("utf-8", "replace")
            token = readers.token and hmac.compare_digest(header, f"Bearer {readers.token}".encode())
            if not (readers.open or token or sessions.login() is not None):
                return Response("needs BOUNCER_METRICS_TOKEN as a bearer token\n", 403, content_type="text/plain")
            return Response(exposition(ledger(), jobs()), content_type=CONTENT_TYPE_LATEST)
        except SQLAlchemyError:
            return Response("the database cannot be read\n", 503, content_type="text/plain")

    @routes.get("/doctor")
    def doctor() -> Answer:
        """Return how the request arrived, to the holder of a webhook secret: ``bouncer doctor`` asks."""
        try:
            nonce = request.headers.get(NONCE, "").encode("utf-8", "replace")
            webhook.verify(nonce, request.headers.get("X-Hub-Signature-256"), secrets())
        except InvalidSignature:
            return Response(status=401)
        forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
        return jsonify(
            address=session.client_address(), url=request.url_root, forwarded_for=list(filter(None, forwarded))
        )

    return routes


def _problem(jobs: Jobs) -> str:
    try:
        age = jobs.worker_age()
    except SQLAlchemyError:
        return "the database cannot be read"
    if age is None:
        return "no worker was ever seen"
    return f"no worker was seen for {age:.0f} s" if age > WORKER_SECONDS else ""
