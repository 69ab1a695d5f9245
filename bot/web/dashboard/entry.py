"""Logging in and out: by the operator's password, or with a GitHub account that the operator named.

What goes out to GitHub and has to come back follows from the browser's own cookie, so that any process of the
server can check it and no other browser can use it. The log-in changes the cookie, and it is worth nothing then.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Callable

import structlog
from flask import Blueprint, abort, g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as Answer

from bot.errors import ForgeError, TransientError
from bot.forge.github.oauth import GitHubLogin, Visitor
from bot.store.logins import LONGEST_WAIT_SECONDS, Logins
from bot.web import session
from bot.web.dashboard.backing import DashboardSettings

#: Attempts to log in that wait for their turn in one process at most.
MOST_WAITING = 32

#: Pages that are open to whoever is not logged in.
OPEN = frozenset({"dashboard.log_in", "dashboard.to_github", "dashboard.from_github"})

_log = structlog.get_logger(__name__)


def add(
    routes: Blueprint, settings: DashboardSettings, sessions: session.Sessions, logins: Callable[[], Logins]
) -> None:
    """Add the pages."""
    waiting = threading.BoundedSemaphore(MOST_WAITING)

    def took_turn(target: str) -> tuple[str, int] | None:
        """Wait for this address's turn at an attempt; the page that refuses it where that would take too long."""
        wait = logins().turn(session.client_address())
        if wait > LONGEST_WAIT_SECONDS or not waiting.acquire(blocking=False):
            return _page(target, f"Too many attempts. Try again in {max(wait, 1):.0f} seconds."), 429
        try:
            # Whoever guesses is slowed down; the right password is never refused because somebody else guessed.
            time.sleep(wait)
        finally:
            waiting.release()
        return None

    @routes.route("/login", methods=["GET", "POST"])
    def log_in() -> Answer | str | tuple[str, int]:
        target = session.local_path(request.values.get("next"), url_for("dashboard.overview"))
        if request.method == "GET":
            return _page(target)
        if refused := took_turn(target):
            return refused
        address = session.client_address()
        if not session.matches(request.form.get("password", ""), settings.password):
            logins().failed(address)
            return _page(target, "That is not the password."), 403
        logins().succeeded(address)
        g.cookie = sessions.begin()
        return redirect(target)

    @routes.get("/login/github")
    def to_github() -> Answer:
        target = session.local_path(request.args.get("next"), url_for("dashboard.overview"))
        return redirect(_github(settings).address(_callback(settings), _state(target), _own(b"verifier")))

    @routes.get("/login/github/callback")
    def from_github() -> Answer | tuple[str, int]:
        target = request.args.get("state", "").partition(".")[2]
        if not hmac.compare_digest(_state(target).encode(), request.args.get("state", "").encode()):
            abort(403, "This answer from GitHub does not belong to this browser. Log in again.")
        if not request.args.get("code"):
            return _page(target, "The log-in was cancelled on GitHub."), 403
        if refused := took_turn(target):
            # Each attempt asks GitHub.
            return refused
        address = session.client_address()
        try:
            visitor = _visitor(settings, request.args["code"])
        except TransientError as error:
            return _page(target, f"GitHub did not answer: {error}. Try again in a moment."), 502
        except ForgeError as error:
            logins().failed(address)
            return _page(target, f"GitHub refused: {error}."), 403
        if not settings.admins.admit(visitor):
            _log.warning("log_in_refused", login=visitor.login)
            logins().failed(address)
            return _page(
                target, f"{visitor.login} may not open this dashboard: BOUNCER_ADMINS names who may."
            ), 403
        _log.info("logged_in", login=visitor.login)
        logins().succeeded(address)
        g.cookie = sessions.begin(visitor.login)
        return redirect(session.local_path(target, url_for("dashboard.overview")))

    @routes.post("/logout")
    def log_out() -> Answer:
        sessions.end()
        g.cookie = session.new_cookie()
        return redirect(url_for("dashboard.log_in"))


def _page(target: str, why: str = "") -> str:
    return render_template("dashboard/login.html", next=target, why=why)


def _own(purpose: bytes) -> str:
    """A value that only this browser, and whoever is told, can name."""
    return hmac.new(str(g.cookie).encode(), purpose, hashlib.sha256).hexdigest()


def _state(target: str) -> str:
    return f"{_own(b'state' + target.encode('utf-8', 'replace'))}.{target}"


def _github(settings: DashboardSettings) -> GitHubLogin:
    return settings.github or abort(404)


def _callback(settings: DashboardSettings) -> str:
    base = settings.public_url or request.url_root.rstrip("/")
    return base + url_for("dashboard.from_github")


def _visitor(settings: DashboardSettings, code: str) -> Visitor:
    known = settings.admins.organizations
    return _github(settings).visitor(code, _callback(settings), _own(b"verifier"), known)
