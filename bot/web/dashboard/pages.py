"""The dashboard: its routes, who may use them, and the session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from flask import Blueprint, Response, abort, g, redirect, render_template, request, session, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as Answer

from bot.ledger.overview import Line
from bot.web.dashboard import access, acting, reading
from bot.web.dashboard.backing import Backend, Settings

__all__ = ["Backend", "Settings", "blueprint"]

#: method, path, view: a function of settings, backend and the path's own parts.
VIEWS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("GET", "/", reading.overview),
    ("GET", "/decisions", reading.decisions),
    ("GET", "/decisions/<int:number>", reading.decision),
    ("GET", "/costs", reading.costs),
    ("GET", "/jobs", acting.jobs),
    ("GET", "/jobs/<path:job>", acting.job),
    ("POST", "/jobs/<path:job>/retry", acting.retry),
    ("POST", "/jobs/<path:job>/cancel", acting.cancel),
)


def blueprint(settings: Settings) -> Callable[[Backend], Blueprint]:
    """Makes the dashboard for a backend; without a password there is none to make."""

    def make(backend: Backend) -> Blueprint:
        routes = Blueprint("dashboard", __name__, template_folder="../templates")
        routes.record_once(lambda state: _configure(state.app, settings))
        _guard(routes, settings)
        _sessions(routes, settings)
        for method, path, view in VIEWS:
            routes.add_url_rule(path, view.__name__, partial(view, settings, backend), methods=[method])
        return routes

    return make


def _configure(app: Any, settings: Settings) -> None:
    app.secret_key = access.session_key(settings.password)
    app.config.update(
        SESSION_COOKIE_NAME="bouncer",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=bool(settings.public_url and settings.public_url.startswith("https:")),
    )


def _guard(routes: Blueprint, settings: Settings) -> None:
    @routes.before_request
    def guard() -> Answer | None:
        if not access.known_host(request.host, settings.public_url, settings.host):
            abort(400, "This server does not go by that name; set BOUNCER_PUBLIC_URL to the address you use.")
        g.now = datetime.now(UTC)
        if request.endpoint == "dashboard.log_in" or access.logged_in():
            return None
        return access.to_log_in()

    @routes.after_request
    def secure(response: Response) -> Response:
        return access.secured(response)

    @routes.errorhandler(HTTPException)
    def failed(error: HTTPException) -> tuple[str, int]:
        status = error.code or 500
        return render_template("dashboard/error.html", status=status, why=error.description), status

    @routes.context_processor
    def shared() -> dict[str, object]:
        return {
            "form_token": access.form_token,
            "settings": settings,
            "logged_in": access.logged_in(),
            "link": _link,
        }


def _sessions(routes: Blueprint, settings: Settings) -> None:
    attempts = access.Attempts()

    @routes.route("/login", methods=["GET", "POST"])
    def log_in() -> Answer | str | tuple[str, int]:
        target = access.local_path(request.values.get("next"), url_for("dashboard.overview"))
        if request.method == "GET":
            return render_template("dashboard/login.html", next=target, why="")
        access.check_form()
        address = request.remote_addr or ""
        if wait := attempts.wait(address):
            why = f"Too many attempts. Try again in {wait:.0f} seconds."
            return render_template("dashboard/login.html", next=target, why=why), 429
        if not access.matches(request.form.get("password", ""), settings.password):
            attempts.fail(address)
            return render_template("dashboard/login.html", next=target, why="That is not the password."), 403
        access.log_in()
        return redirect(target)

    @routes.post("/logout")
    def log_out() -> Answer:
        access.check_form()
        session.clear()
        return redirect(url_for("dashboard.log_in"))


def _link(line: Line, web_url: str) -> str:
    """Where people see the subject of a decision; empty for one about a whole repository."""
    kind = "issues" if line.kind in ("triage", "reproduce") else "pull"
    return f"{web_url}/{line.repository}/{kind}/{line.number}" if line.number else ""
