"""Routes that need no account: monitoring, what the bot is, the schema of bouncer.yml, after an installation."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from flask import Blueprint, Response, jsonify, render_template, request
from markupsafe import Markup
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.wrappers import Response as Answer

from bot.core.errors import InvalidSignature
from bot.github import webhook
from bot.pipeline.admin import Jobs
from bot.pipeline.body import as_html
from bot.pipeline.metrics import exposition
from bot.pipeline.store import Ledger
from bot.settings import Settings
from bot.web import session

_PACKAGE = Path(__file__).parents[1]
#: The page for people who got a comment: packaged, or in a checkout.
_ABOUT = (_PACKAGE / "got-a-comment.md", _PACKAGE.parent / "docs" / "got-a-comment.md")
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n+", re.MULTILINE)
#: A worker that was not seen for this long is counted as gone, seconds.
WORKER_SECONDS = 15.0
#: A random value that the doctor signs with a webhook secret.
NONCE = "X-Bouncer-Nonce"

#: Returns the current webhook secrets, none if the app is not set up yet.
Secrets = Callable[[], tuple[str, ...]]


def monitoring(settings: Settings, ledger: Ledger, jobs: Jobs, secrets: Secrets) -> Blueprint:
    """``/healthz``, ``/readyz``, ``/metrics``, ``/doctor``."""
    routes = Blueprint("health", __name__)
    sessions = session.Sessions(settings.session_key, ledger.logins)
    bearer = f"Bearer {key.get_secret_value()}".encode() if (key := settings.bouncer_metrics_token) else b""

    @routes.get("/healthz")
    def healthz() -> Answer:
        return jsonify(status="ok")

    @routes.get("/readyz")
    def readyz() -> Answer:
        """Deliveries can be recorded, and a worker is there; what waits for the operator is a notice."""
        problem = _problem(jobs)
        if problem:
            response = jsonify(status="not ready", why=problem)
            response.status_code = 503
            return response
        # Not a failure: deliveries are accepted and wait. Anyone may read this, so it names no model.
        notice = "a model's provider refuses requests, and jobs wait: see the dashboard or the log"
        return jsonify(status="ready", **({"notice": notice} if ledger.faults.all() else {}))

    @routes.get("/metrics")
    def metrics() -> Answer:
        """Counts for Prometheus; they name repositories."""
        try:
            header = request.headers.get("Authorization", "").encode("utf-8", "replace")
            has_token = bearer and hmac.compare_digest(header, bearer)
            if not (settings.bouncer_metrics == "open" or has_token or sessions.login() is not None):
                return Response("needs BOUNCER_METRICS_TOKEN as a bearer token\n", 403, content_type="text/plain")
            return Response(exposition(ledger, jobs), content_type=CONTENT_TYPE_LATEST)
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


def blueprint(next_step: str = "") -> Blueprint:
    """The pages. ``next_step``: how to open the dashboard, shown at ``/`` if there is none."""
    routes = Blueprint("public", __name__, template_folder="templates")

    routes.after_request(session.secured)

    @routes.get("/about")
    def about() -> str:
        return render_template("about.html", text=_about())

    @routes.get("/bouncer.schema.json")
    def schema() -> Response:
        text = (_PACKAGE / "bouncer.schema.json").read_text("utf-8")
        return Response(text, mimetype="application/schema+json")

    @routes.get("/setup/installed")
    def installed() -> str:
        return render_template("setup/installed.html")

    if next_step:

        @routes.get("/")
        def root() -> str:
            return render_template("running.html", next_step=next_step)

    return routes


@cache
def _about() -> Markup:
    """Return the page's text without its title and pictures."""
    text = next(place for place in _ABOUT if place.is_file()).read_text("utf-8")
    # The lines of a file are wrapped; only comments on GitHub show each line break.
    paragraphs = re.sub(r"(?<=[^\n|])\n(?=[^\n#|])", " ", _PICTURE.sub("", text.partition("\n")[2]))
    return as_html(paragraphs)
