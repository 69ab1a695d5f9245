"""The dashboard: its routes, log-in and log-out, and who may use it.

People log in by the operator's password, or with a GitHub account that the operator named. The state that GitHub
returns is derived from the browser's cookie: every process of the server can check it, and no other browser can
use it. A log-in changes the cookie, so each state works once.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog
from flask import Blueprint, Response, abort, g, redirect, render_template, request, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as Answer

from bot.core.errors import ForgeError, TransientError
from bot.github.oauth import GitHubLogin
from bot.pipeline.store.logins import LONGEST_WAIT_SECONDS, Logins
from bot.pipeline.store.overview import DecisionRow
from bot.web import session
from bot.web.app import Backend
from bot.web.dashboard import Admins, DashboardSettings, acting, reading

#: Attempts to log in that wait for their turn in one process at most.
MOST_WAITING = 32

#: Pages that need no log-in.
OPEN = frozenset({"dashboard.log_in", "dashboard.to_github", "dashboard.from_github"})
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

_log = structlog.get_logger(__name__)


def blueprint(settings: DashboardSettings, backend: Backend) -> Blueprint:
    """The dashboard of a serving process."""
    routes = Blueprint("dashboard", __name__, template_folder="../templates")
    sessions = session.Sessions(settings.server.session_key, backend.ledger.logins)
    _guard(routes, settings, sessions)
    entry = Entry(settings, backend, sessions)
    routes.add_url_rule("/login", "log_in", entry.log_in, methods=["GET", "POST"])
    routes.add_url_rule("/login/github", "to_github", entry.to_github)
    routes.add_url_rule("/login/github/callback", "from_github", entry.from_github)
    routes.add_url_rule("/logout", "log_out", entry.log_out, methods=["POST"])
    for method, path, view in VIEWS:
        routes.add_url_rule(path, view.__name__, partial(view, settings, backend), methods=[method])
    return routes


def _guard(routes: Blueprint, settings: DashboardSettings, sessions: session.Sessions) -> None:
    public_url, host = settings.server.bouncer_public_url, settings.server.host

    @routes.before_request
    def guard() -> Answer | None:
        if not session.known_host(request.host, public_url, host):
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
            session.give(response, session.COOKIE, cookie, secure=(public_url or "").startswith("https:"))
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
            "link": DecisionRow.url,
        }


class Entry:
    """The pages of log-in and log-out."""

    def __init__(self, settings: DashboardSettings, backend: Backend, sessions: session.Sessions) -> None:
        self._settings = settings
        self._backend = backend
        self._sessions = sessions
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)

    def log_in(self) -> Answer | str | tuple[str, int]:
        target = session.local_path(request.values.get("next"), url_for("dashboard.overview"))
        if request.method == "GET":
            return _page(target)
        if refused := self._refused(target):
            return refused
        password = self._settings.server.bouncer_admin_password
        if not session.matches(request.form.get("password", ""), password.get_secret_value() if password else ""):
            return self._failed(target, "That is not the password.")
        return self._entered(target)

    def to_github(self) -> Answer:
        target = session.local_path(request.args.get("next"), url_for("dashboard.overview"))
        return redirect(self._github.address(self._callback, _state(target), _own(b"verifier")))

    def from_github(self) -> Answer | tuple[str, int]:
        """Log in the account that GitHub names, if the operator allows it."""
        target = request.args.get("state", "").partition(".")[2]
        if not hmac.compare_digest(_state(target).encode(), request.args.get("state", "").encode()):
            abort(403, "This answer from GitHub does not belong to this browser. Log in again.")
        if not request.args.get("code"):
            return _page(target, "The log-in was cancelled on GitHub."), 403
        if refused := self._refused(target):
            # Each attempt asks GitHub.
            return refused
        admins = Admins.parse(self._settings.server.bouncer_admins)
        try:
            code, verifier = request.args["code"], _own(b"verifier")
            visitor = self._github.visitor(code, self._callback, verifier, admins.organizations)
        except TransientError as error:
            return _page(target, f"GitHub did not answer: {error}. Try again in a moment."), 502
        except ForgeError as error:
            return self._failed(target, f"GitHub refused: {error}.")
        if not admins.admit(visitor, self._logins):
            _log.warning("log_in_refused", login=visitor.login, id=visitor.id)
            why = f"{visitor.login} (id {visitor.id}) may not open this dashboard: BOUNCER_ADMINS names who may."
            if visitor.organizations or visitor.login.lower() in admins.logins:
                why += " The name there belonged to another account when it was first used."
            return self._failed(target, why)
        _log.info("logged_in", login=visitor.login, id=visitor.id)
        return self._entered(session.local_path(target, url_for("dashboard.overview")), visitor.login)

    def log_out(self) -> Answer:
        """End the session, also for a copied cookie."""
        self._sessions.end()
        g.cookie = session.new_cookie()
        return redirect(url_for("dashboard.log_in"))

    def _refused(self, target: str) -> tuple[str, int] | None:
        """Wait for this address's turn at an attempt. Return the page that refuses it if the wait is too long."""
        wait = self._logins.turn(session.client_address())
        if wait > LONGEST_WAIT_SECONDS or not self._waiting.acquire(blocking=False):
            return _page(target, f"Too many attempts. Try again in {max(wait, 1):.0f} seconds."), 429
        try:
            # Guessing is slowed down per address; the right password is never refused because of other visitors.
            time.sleep(wait)
        finally:
            self._waiting.release()
        return None

    def _failed(self, target: str, why: str) -> tuple[str, int]:
        self._logins.failed(session.client_address())
        return _page(target, why), 403

    def _entered(self, target: str, login: str = "") -> Answer:
        self._logins.succeeded(session.client_address())
        g.cookie = self._sessions.begin(login)
        return redirect(target)

    @property
    def _logins(self) -> Logins:
        return self._backend.ledger.logins

    @property
    def _github(self) -> GitHubLogin:
        return self._settings.github or abort(404)

    @property
    def _callback(self) -> str:
        base = self._settings.server.bouncer_public_url or request.url_root.rstrip("/")
        return base + url_for("dashboard.from_github")


def _page(target: str, why: str = "") -> str:
    return render_template("dashboard/login.html", next=target, why=why)


def _own(purpose: bytes) -> str:
    """Return a value that follows from this browser's cookie and a purpose."""
    return hmac.new(str(g.cookie).encode(), purpose, hashlib.sha256).hexdigest()


def _state(target: str) -> str:
    return f"{_own(b'state' + target.encode('utf-8', 'replace'))}.{target}"
