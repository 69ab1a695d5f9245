"""Who may see the dashboard: one operator's password, a signed session, and every form with a token of its own."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from flask import Response, abort, redirect, request, session, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

#: How long a session lasts without a new log-in, seconds.
SESSION_SECONDS = 12 * 3600
#: Failed log-ins a minute from one address, and from everywhere, before the next one has to wait.
MAX_FAILURES = 5
MAX_ALL = 50
WAIT_SECONDS = 60.0

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Attempts:
    """Failed log-ins of the last minute, by address and all together. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: list[tuple[float, str]] = []
        self._lock = threading.Lock()

    def wait(self, address: str) -> float:
        """Seconds until the next attempt from an address is heard; 0 where it may be made now."""
        with self._lock:
            now = self._clock()
            self._failed = [each for each in self._failed if now - each[0] < WAIT_SECONDS]
            own = [when for when, by in self._failed if by == address]
            everybody = [when for when, _ in self._failed]
            limits = ((own, MAX_FAILURES), (everybody, MAX_ALL))
            waits = [WAIT_SECONDS - (now - times[-most]) for times, most in limits if len(times) >= most]
            return max(waits, default=0.0)

    def fail(self, address: str) -> None:
        """Note a failed attempt."""
        with self._lock:
            self._failed.append((self._clock(), address))


def session_key(password: str) -> bytes:
    """The key that signs sessions: the same on every machine, and another one after the password changed."""
    return hashlib.scrypt(password.encode(), salt=b"bouncer session", n=2**14, r=8, p=1, dklen=32)


def matches(given: str, password: str) -> bool:
    """Whether the password is right, in a time that says nothing about how much of it was."""
    return hmac.compare_digest(hashlib.sha256(given.encode()).digest(), hashlib.sha256(password.encode()).digest())


def log_in() -> None:
    """Start a session of its own: nothing of an earlier one, its token included, stays valid."""
    session.clear()
    session["since"] = int(time.time())
    session["token"] = secrets.token_urlsafe(24)


def logged_in() -> bool:
    """Whether this request comes with a session that has not run out."""
    since = session.get("since")
    return isinstance(since, int) and 0 <= time.time() - since < SESSION_SECONDS


def form_token() -> str:
    """The token that every form of this session has to send back."""
    return str(session.setdefault("token", secrets.token_urlsafe(24)))


def check_form() -> None:
    """Refuse (403) a form that another site, or an older session, made the browser send."""
    token = session.get("token")
    given = request.form.get("token", "")
    if not token or not hmac.compare_digest(str(token).encode(), given.encode()):
        abort(403, "This form is out of date. Go back, reload the page and try again.")


def to_log_in() -> WerkzeugResponse:
    """Where somebody without a session goes first."""
    return redirect(url_for("dashboard.log_in", next=request.full_path.rstrip("?")))


def local_path(target: str | None, default: str) -> str:
    """``target`` where it is a path on this server, else ``default``: never another site."""
    if not target or not target.startswith("/") or target.startswith(("//", "/\\")):
        return default
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or any(ord(char) < 32 or char == "\\" for char in target):
        return default
    return target


def known_host(host: str, public_url: str | None, bound: str) -> bool:
    """Whether a Host header is one of ours: the public URL's, the bound address, loopback, or a bare address.

    A name that somebody points at this server is not: pages made for it could be read by their scripts.
    """
    name = (urlsplit(f"//{host}").hostname or "").lower()
    own = {urlsplit(public_url).hostname} if public_url else set()
    if name in own | {"localhost", bound.lower()}:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def secured(response: Response) -> Response:
    """The response with the headers that every page carries."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response
