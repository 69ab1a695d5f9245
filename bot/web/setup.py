"""``/setup``: the pages around GitHub's manifest flow, whose state is in the memory of one process.

Nothing here shows a key or a secret.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlsplit

import structlog
from flask import Blueprint, make_response, redirect, render_template, request, url_for
from pydantic import Field
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as Answer

from bot.core.errors import ForgeError, NotFound, SettingsError, TransientError
from bot.core.frozen import Frozen
from bot.github.registration import PURPOSES, Credentials, Manifest, convert, manifest
from bot.settings import Settings, readable_on_the_way
from bot.web import session

COOKIE = "bouncer_setup"
#: GitHub's code is good for an hour; so is the state that it has to come back with, seconds.
STATE_SECONDS = 3600.0

_HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")
_PATH = re.compile(r"[A-Za-z0-9._~/-]*")
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|-(?=[A-Za-z0-9])){0,38}")

#: Messages for a callback whose state is not valid.
_REFUSALS = {
    "unknown": "This answer from GitHub does not belong to a set-up that was started here.",
    "used": "This answer from GitHub was used already.",
    "expired": "More than an hour passed between the start of set-up and GitHub's answer.",
}

_log = structlog.get_logger(__name__)


class Choice(Frozen):
    """The operator's valid choices."""

    organization: str = Field("", description="owner of the app; empty = the signed-in user")
    name: str
    web_url: str
    api_url: str
    public_url: str = Field(description="how people, and GitHub's redirects, reach this server")
    webhook_url: str = Field(description="how GitHub's deliveries reach it; a webhook proxy in development")
    test_pulls: bool = False
    members: bool = False
    keep: Literal["file", "terminal"] = "file"
    mode: Literal["live", "shadow"] = "shadow"

    @property
    def register_url(self) -> str:
        """Return the GitHub page that receives the manifest."""
        if self.organization:
            return f"{self.web_url}/organizations/{quote(self.organization)}/settings/apps/new"
        return f"{self.web_url}/settings/apps/new"

    def manifest(self) -> Manifest:
        """Return the manifest with the permissions of the chosen features."""
        return manifest().extended(test_pulls=self.test_pulls, members=self.members)

    def posted(self) -> dict[str, object]:
        """Return the manifest that GitHub registers."""
        posted = self.manifest().posted(self.public_url, self.name)
        return {**posted, "hook_attributes": {"url": self.webhook_url, "active": True}}


def choose(form: Mapping[str, str], settings: Settings) -> tuple[Choice | None, dict[str, str]]:
    """Return the choice in a form's fields, or the mistakes by field."""
    web_url, public_url = _url(form.get("web_url")), _url(form.get("public_url"))
    webhook_url = _url(form.get("webhook_url")) if form.get("webhook_url", "").strip() else f"{public_url}/webhook"
    owner = form.get("organization", "").strip()
    organization = owner if form.get("owner") == "organization" else ""
    name = form.get("name", "").strip() or (f"bouncer-{owner}"[:34].rstrip("-") if owner else "")
    wrong = {}
    if web_url is None:
        wrong["web_url"] = "This is not a web address like https://github.example.com."
    elif web_url != settings.github_web_url and readable_on_the_way(web_url):
        # The App's key comes from there. GITHUB_WEB_URL was checked with the settings.
        wrong["web_url"] = "Use https://: the App's key comes from there."
    if public_url is None:
        wrong["public_url"] = "This is not a web address like https://bouncer.example.com."
    if webhook_url is None:
        wrong["webhook_url"] = "This is not a web address."
    if form.get("owner") == "organization" and not _LOGIN.fullmatch(organization):
        wrong["organization"] = "Enter the organization's name as in its address on GitHub."
    if not 1 <= len(name) <= 34:
        wrong["name"] = "Enter a name of 1 to 34 characters, or the owner above for bouncer-OWNER."
    if wrong or web_url is None or public_url is None or webhook_url is None:
        return None, wrong
    return Choice(
        organization=organization,
        name=name,
        web_url=web_url,
        api_url=api_of(web_url, settings),
        public_url=public_url,
        webhook_url=webhook_url,
        test_pulls=form.get("test_pulls") == "yes",
        members=bool(organization) and form.get("members") == "yes",
        keep="terminal" if form.get("keep") == "terminal" else "file",
        mode="live" if form.get("mode") == "live" else "shadow",
    ), {}


def api_of(web_url: str, settings: Settings) -> str:
    """Return the API's address: the configured one, a tenant's subdomain, or a server's /api/v3."""
    if web_url == settings.github_web_url:
        return settings.github_api_url
    parts = urlsplit(web_url)
    if (parts.hostname or "").endswith(".ghe.com"):
        return f"{parts.scheme}://api.{parts.netloc}"
    return f"{web_url}/api/v3"


def unreachable(url: str) -> bool:
    """Return True for a local or private address, to which GitHub cannot deliver."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host


def _url(text: str | None) -> str | None:
    """Return a web address without a trailing slash; None if it is invalid or has a query or a password."""
    url = (text or "").strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    plain = not (parts.username or parts.password or parts.query or parts.fragment) and port != 0
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.hostname or "") or len(url) > 200:
        return None
    return url if plain and _PATH.fullmatch(parts.path) else None


Refusal = Literal["unknown", "used", "expired"]


class Guard:
    """The one-time link, the browser that opened it, and the pending states of its choices."""

    def __init__(self, link: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._link = link
        self._clock = clock
        self._lock = threading.Lock()
        self._cookie: str | None = None
        self._pending: dict[str, tuple[Choice, float]] = {}
        self._used: set[str] = set()
        self.finished = False

    def enter(self, link: str) -> str | None:
        """Return a cookie for the first use of the link; None for a wrong link or a later use."""
        with self._lock:
            if self._cookie is not None or not _same(link, self._link):
                return None
            self._cookie = secrets.token_urlsafe(32)
            return self._cookie

    def offers(self, link: str) -> bool:
        """Return True if the link can still be used, without using it."""
        return self._cookie is None and _same(link, self._link)

    def knows(self, cookie: str) -> bool:
        """Return True for the browser that used the link."""
        return self._cookie is not None and _same(cookie, self._cookie)

    def begin(self, choice: Choice) -> str:
        """Return a new state for a choice that goes to GitHub."""
        state = secrets.token_urlsafe(32)
        with self._lock:
            self._pending[state] = (choice, self._clock())
        return state

    def take(self, state: str) -> Choice | Refusal:
        """Return the choice of a state, which is valid once and for an hour."""
        with self._lock:
            if state in self._used:
                return "used"
            if state not in self._pending:
                return "unknown"
            choice, since = self._pending.pop(state)
            self._used.add(state)
            return choice if self._clock() - since <= STATE_SECONDS else "expired"

    def give_back(self, state: str, choice: Choice) -> None:
        """Make a state valid again, because GitHub did not answer."""
        with self._lock:
            self._used.discard(state)
            self._pending[state] = (choice, self._clock())


def _same(attempt: str, secret: str) -> bool:
    return hmac.compare_digest(attempt.encode("utf-8", "replace"), secret.encode())


@dataclass(frozen=True)
class Setup:
    """Everything that the pages need. ``keep`` stores or prints credentials; it may raise SettingsError."""

    guard: Guard
    settings: Settings
    keep: Callable[[Credentials, Choice], None]


def blueprint(setup: Setup) -> Blueprint:
    """The pages of a server that has no credentials yet."""
    routes = Blueprint("setup", __name__, url_prefix="/setup", template_folder="templates")
    routes.after_request(session.secured)

    @routes.errorhandler(403)
    def refused(error: HTTPException) -> Answer:
        return _message("That form is out of date", error.description or "", 403)

    @routes.before_request
    def guard() -> Answer | None:
        offered = request.endpoint == "setup.start" and request.args.get("link")
        return None if offered or request.endpoint == "setup.begin" else _refused(setup)

    @routes.get("")
    def start() -> Answer | str:
        link = request.args.get("link")
        return _offer(setup, link) if link else _form(setup, {}, {})

    @routes.post("")
    def chosen() -> Answer | str:
        session.check_form(_cookie())
        choice, wrong = choose(request.form, setup.settings)
        if "change" in request.form:
            return _form(setup, request.form.to_dict(), {})
        if choice is None:
            return make_response(_form(setup, request.form.to_dict(), wrong), 422)
        return _confirm(setup, choice)

    @routes.post("/begin")
    def begin() -> Answer:
        return _enter(setup, request.form.get("link", ""))

    @routes.get("/callback")
    def callback() -> Answer | str:
        return _callback(setup)

    return routes


def _cookie() -> str:
    return request.cookies.get(COOKIE, "")


def _offer(setup: Setup, link: str) -> Answer:
    """Return a page with a button, so that link previews do not use up the link."""
    if setup.guard.knows(_cookie()):
        return redirect(url_for("setup.start"))
    if not setup.guard.offers(link):
        return _unusable()
    return make_response(render_template("setup/begin.html", link=link))


def _unusable() -> Answer:
    return _message(
        "This link cannot be used",
        "It was used before, or it is not the one in the terminal. Start the server again for a new one.",
        403,
    )


def _enter(setup: Setup, link: str) -> Answer:
    cookie = setup.guard.enter(link)
    if cookie is None and not setup.guard.knows(_cookie()):
        return _unusable()
    # Redirect, so that the link does not stay in the browser's history.
    response = redirect(url_for("setup.start"), 303)
    if cookie is not None:
        session.give(response, COOKIE, cookie, secure=request.is_secure, path="/setup")
    return response


def _refused(setup: Setup) -> Answer | None:
    """Refuse requests without the set-up's session, and all requests after set-up is done."""
    if not setup.guard.knows(_cookie()):
        return _message("Set-up is locked", "Open the link that bouncer serve shows in its terminal.", 403)
    if setup.guard.finished:
        return _message("Set-up is done", "This server has its GitHub App. There is nothing left to do here.", 410)
    return None


def _form(setup: Setup, fields: dict[str, str], wrong: dict[str, str]) -> str:
    settings = setup.settings
    owner = settings.bouncer_admins.partition(",")[0].strip().removeprefix("org:")
    values = {
        "owner": "user",
        "organization": owner,
        "name": f"bouncer-{owner}" if owner else "",
        "web_url": settings.github_web_url,
        "public_url": settings.bouncer_public_url or request.url_root.rstrip("/"),
        "webhook_url": "",
        "keep": "file",
        "mode": "shadow",
        **fields,
    }
    token = session.form_token(_cookie())
    return render_template("setup/choose.html", values=values, wrong=wrong, token=token)


def _confirm(setup: Setup, choice: Choice) -> Answer:
    state = setup.guard.begin(choice)
    page = render_template(
        "setup/confirm.html",
        choice=choice,
        fields={name: value for name, value in request.form.items() if name != "token"},
        token=session.form_token(_cookie()),
        permissions=choice.manifest().default_permissions,
        purposes=PURPOSES,
        posted=json.dumps(choice.posted()),
        action=f"{choice.register_url}?state={state}",
        unreachable=unreachable(choice.webhook_url) and not unreachable(choice.web_url),
    )
    response = make_response(page)
    parts = urlsplit(choice.web_url)
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'self'; form-action 'self' {parts.scheme}://{parts.netloc}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    return response


def _callback(setup: Setup) -> Answer | str:
    state, code = request.args.get("state", ""), request.args.get("code", "")
    choice = setup.guard.take(state)
    if isinstance(choice, str):
        return _message("GitHub's answer cannot be used", f"{_REFUSALS[choice]} Start again.", 400, again=True)
    if request.args.get("error") or not code:
        return _message("GitHub did not create the app", "It was refused or cancelled there.", 400, again=True)
    try:
        credentials = convert(code, choice.api_url, choice.web_url)
    except NotFound:
        why = "The code that GitHub sent is unknown there, was used before or is older than an hour."
        return _message(
            "GitHub does not know this code", f"{why} Delete the unfinished app there.", 400, again=True
        )
    except TransientError as error:
        setup.guard.give_back(state, choice)
        return _message("GitHub did not answer", f"{error}. Load this page again in a moment.", 502)
    except ForgeError as error:
        return _message("GitHub refused", f"{error}.", 502, again=True)
    return _keep(setup, choice, credentials)


def _keep(setup: Setup, choice: Choice, credentials: Credentials) -> Answer | str:
    try:
        setup.keep(credentials, choice)
    except SettingsError as error:
        why = f"Your app is registered, but its key could not be stored: {error}. Delete it there and start again."
        return _message("The key could not be stored", why, 500, again=True)
    setup.guard.finished = True
    _log.info("set_up", app=credentials.slug, app_id=credentials.app_id)
    fields = credentials.model_dump(include={"app_id", "slug", "html_url"})
    dashboard = bool(setup.settings.bouncer_admin_password)
    return render_template("setup/done.html", choice=choice, credentials=fields, dashboard=dashboard)


def _message(title: str, text: str, status: int, *, again: bool = False) -> Answer:
    return make_response(render_template("setup/message.html", title=title, text=text, again=again), status)
