"""The dashboard: its routes, who may use them, and the session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from flask import Blueprint, Response, abort, g, redirect, render_template, request, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as Answer

from bot.pipeline.store.overview import Line
from bot.web import session
from bot.web.app import Backend
from bot.web.dashboard import DashboardSettings, acting, reading
from bot.web.dashboard.entry import OPEN, Entry

#: method, path, view: a function of settings, backend and the path's own parts.
VIEWS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("GET", "/", reading.overview),
    ("GET", "/decisions", reading.decisions),
    ("GET", "/decisions.<form>", reading.export),
    ("GET", "/decisions/<int:number>", reading.decision),
    ("POST", "/decisions/<int:number>/recheck", acting.recheck),
    ("POST", "/decisions/<int:number>/leave", acting.leave),
    ("GET", "/queue", reading.queue),
    ("GET", "/shadow", reading.shadow),
    ("GET", "/line", reading.line),
    ("GET", "/costs", reading.costs),
    ("GET", "/installations", reading.installations),
    ("POST", "/pause", acting.pause),
    ("POST", "/resume", acting.resume),
    ("GET", "/jobs", acting.jobs),
    ("POST", "/retry-failed", acting.retry_failed),
    ("GET", "/onboarding", acting.onboarding),
    ("POST", "/onboarding", acting.propose),
    ("GET", "/rejudge", acting.confirm_rejudge),
    ("POST", "/rejudge", acting.rejudge),
    ("GET", "/jobs/<path:job>", acting.job),
    ("POST", "/jobs/<path:job>/retry", acting.retry),
    ("POST", "/jobs/<path:job>/cancel", acting.cancel),
)


def blueprint(settings: DashboardSettings, backend: Backend) -> Blueprint:
    """The dashboard of a serving process."""
    routes = Blueprint("dashboard", __name__, template_folder="../templates")
    sessions = session.Sessions(settings.session_key, lambda: backend.ledger().logins)
    _guard(routes, settings, sessions)
    Entry(settings, backend, sessions).add(routes)
    for method, path, view in VIEWS:
        routes.add_url_rule(path, view.__name__, partial(view, settings, backend), methods=[method])
    return routes


def _guard(routes: Blueprint, settings: DashboardSettings, sessions: session.Sessions) -> None:
    secure_cookie = bool(settings.public_url and settings.public_url.startswith("https:"))

    @routes.before_request
    def guard() -> Answer | None:
        if not session.known_host(request.host, settings.public_url, settings.host):
            abort(400, "This server does not go by that name; set BOUNCER_PUBLIC_URL to the address you use.")
        g.now = datetime.now(UTC)
        login = sessions.login()
        g.logged_in, g.login = login is not None, login or ""
        g.cookie = request.cookies.get(session.COOKIE) or session.new_cookie()
        if request.endpoint in OPEN or g.logged_in:
            if request.method == "POST":
                session.check_form(request.cookies.get(session.COOKIE, ""))
            return None
        return redirect(url_for("dashboard.log_in", next=request.full_path.rstrip("?")))

    @routes.after_request
    def secure(response: Response) -> Response:
        cookie = g.get("cookie")
        if cookie and cookie != request.cookies.get(session.COOKIE):
            session.give(response, session.COOKIE, cookie, secure=secure_cookie)
        return session.secured(response)

    @routes.errorhandler(HTTPException)
    def failed(error: HTTPException) -> tuple[str, int]:
        status = error.code or 500
        return render_template("dashboard/error.html", status=status, why=error.description), status

    @routes.context_processor
    def shared() -> dict[str, object]:
        return {
            "form_token": lambda: session.form_token(g.cookie),
            "settings": settings,
            "logged_in": g.get("logged_in", False),
            "login": g.get("login", ""),
            "link": Line.url,
        }
