"""Sessions of browsers: random cookies, forms that no other site can send, headers of pages."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from urllib.parse import urlsplit

from flask import Response, abort, request
from werkzeug.wrappers import Response as Answer

from bot.pipeline.store.logins import Logins

#: The dashboard's cookie, and how long a session lasts without a new log-in, seconds.
COOKIE = "bouncer"
SESSION_SECONDS = 12 * 3600

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


def new_cookie() -> str:
    """A value for a cookie."""
    return secrets.token_urlsafe(32)


def give(response: Answer, name: str, cookie: str, *, secure: bool, path: str = "/") -> None:
    """Set a cookie that the browser keeps until it is closed or the session ends."""
    response.set_cookie(
        name, cookie, httponly=True, samesite="Lax", secure=secure, path=path, max_age=SESSION_SECONDS
    )


def form_token(cookie: str) -> str:
    """Return the value that forms of the browser with this cookie send back, and that no other site can know."""
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest()


def check_form(cookie: str) -> None:
    """Refuse (403) a form that another site, or an older session, made the browser send."""
    token = request.form.get("token", "")
    if not cookie or not hmac.compare_digest(form_token(cookie).encode(), token.encode()):
        abort(403, "This form is out of date. Go back, reload the page and try again.")


class Sessions:
    """Sessions of operators. They end when ``key`` changes: the password, the app's secret, or who may come in."""

    def __init__(self, key: str, logins: Logins) -> None:
        self._key = key
        self._logins = logins

    def login(self) -> str | None:
        """Return the account of the request's session (empty: logged in by password); None if it has none."""
        cookie = request.cookies.get(COOKIE, "")
        return self._logins.login(self._id(cookie)) if self._key and cookie else None

    def begin(self, login: str = "") -> str:
        """Log in with a new cookie, so that an earlier one is of no use."""
        cookie = new_cookie()
        self._logins.begin(self._id(cookie), SESSION_SECONDS, login)
        return cookie

    def end(self) -> None:
        """Log out. Copies of the cookie become invalid too."""
        self._logins.end(self._id(request.cookies.get(COOKIE, "")))

    def _id(self, cookie: str) -> str:
        # The cookie cannot be computed from the id, and passwords cannot be tried on the id without the cookie.
        return hmac.new(cookie.encode(), self._key.encode(), hashlib.sha256).hexdigest()


def matches(guess: str, password: str) -> bool:
    """Return True if a password is right, in a time that does not depend on the guess."""
    digests = (hashlib.sha256(text.encode()).digest() for text in (guess, password))
    return bool(password) and hmac.compare_digest(*digests)


def client_address() -> str:
    """Return the address for which attempts are counted; for IPv6, the network of one customer."""
    try:
        address = ipaddress.ip_address(request.remote_addr or "")
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def local_path(target: str | None, default: str) -> str:
    """Return ``target`` if it is a path on this server, else ``default``."""
    if not target or not target.startswith("/") or target.startswith(("//", "/\\")):
        return default
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or any(ord(char) < 32 or char == "\\" for char in target):
        return default
    return target


def known_host(host: str, public_url: str | None, bound: str) -> bool:
    """Return True if a Host header is the public URL's, the bound address, loopback, or an IP address.

    Any other name may point to this server too, and scripts of its owner could then read our pages.
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
