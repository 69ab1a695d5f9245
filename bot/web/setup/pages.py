"""``/setup``: the pages around GitHub's manifest flow. Nothing here shows a key or a secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import structlog
from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as Answer

from bot.core.errors import ForgeError, NotFound, SettingsError, TransientError
from bot.github.registration import PURPOSES, Credentials, manifest
from bot.web import session
from bot.web.setup.flow import Addresses, Choice, Guard, choose, unreachable

COOKIE = "bouncer_setup"

_log = structlog.get_logger(__name__)

#: What a callback with a state that cannot be used is told.
_REFUSALS = {
    "unknown": "This answer from GitHub does not belong to a set-up that was started here.",
    "used": "This answer from GitHub was used already.",
    "expired": "More than an hour passed between the start of set-up and GitHub's answer.",
}


@dataclass(frozen=True)
class Setup:
    """What the pages need. ``keep`` stores credentials or prints them, as chosen; it may raise SettingsError."""

    guard: Guard
    known: Addresses
    public_url: str | None
    convert: Callable[[str, str, str], Credentials]
    keep: Callable[[Credentials, Choice], None]


def blueprint(setup: Setup) -> Blueprint:
    """The pages of a server that has no credentials yet."""
    routes = Blueprint("setup", __name__, url_prefix="/setup", template_folder="../templates")
    _secure(routes)

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
        choice, wrong = choose(request.form, setup.known)
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


def landing() -> Blueprint:
    """The page that GitHub sends people to after they installed the app; it says nothing of this server."""
    routes = Blueprint("setup_landing", __name__, template_folder="../templates")
    _secure(routes)

    @routes.get("/setup/installed")
    def installed() -> str:
        return render_template("setup/installed.html")

    return routes


def _secure(routes: Blueprint) -> None:
    @routes.errorhandler(403)
    def refused(error: HTTPException) -> Answer:
        return _message("That form is out of date", error.description or "", 403)

    @routes.after_request
    def secure(response: Response) -> Response:
        return session.secured(response)


def _cookie() -> str:
    return request.cookies.get(COOKIE, "")


def _offer(setup: Setup, link: str) -> Answer:
    """A page with a button: programs that only look at links, such as previews in a chat, use none up."""
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
    # The link goes out of the address, so that it stays in no history and is passed on to nobody.
    response = redirect(url_for("setup.start"), 303)
    if cookie is not None:
        session.give(response, COOKIE, cookie, secure=request.is_secure, path="/setup")
    return response


def _refused(setup: Setup) -> Answer | None:
    """Why the set-up cannot go on, for anybody without its session and for everybody once it is done."""
    if not setup.guard.knows(_cookie()):
        return _message("Set-up is locked", "Open the link that `bouncer serve` shows in its terminal.", 403)
    if setup.guard.finished:
        return _message("Set-up is done", "This server has its GitHub App. There is nothing left to do here.", 410)
    return None


def _form(setup: Setup, given: dict[str, str], wrong: dict[str, str]) -> str:
    values = {
        "owner": "user",
        "organization": "",
        "name": manifest().name,
        "web_url": setup.known.web_url,
        "public_url": setup.public_url or request.url_root.rstrip("/"),
        "webhook_url": "",
        "keep": "file",
        **given,
    }
    token = session.form_token(_cookie())
    return render_template("setup/choose.html", values=values, wrong=wrong, token=token)


def _confirm(setup: Setup, choice: Choice) -> Answer:
    asked = choice.asked(manifest())
    state = setup.guard.begin(choice)
    page = render_template(
        "setup/confirm.html",
        choice=choice,
        permissions=asked.default_permissions,
        purposes=PURPOSES,
        posted=json.dumps(choice.manifest(manifest())),
        action=f"{choice.register_url}?state={state}",
        unreachable=unreachable(choice.webhook_url) and not unreachable(choice.web_url),
    )
    response = make_response(page)
    parts = urlsplit(choice.web_url)
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'self'; form-action {parts.scheme}://{parts.netloc}; "
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
        credentials = setup.convert(code, choice.api_url, choice.web_url)
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
        why = (
            f"The app exists on GitHub, but its key could not be stored: {error}. Delete it there and start again."
        )
        return _message("The key could not be stored", why, 500, again=True)
    setup.guard.finished = True
    _log.info("set_up", app=credentials.slug, app_id=credentials.app_id)
    return render_template("setup/done.html", choice=choice, credentials=_public(credentials))


def _public(credentials: Credentials) -> dict[str, Any]:
    return credentials.model_dump(include={"app_id", "slug", "html_url"})


def _message(title: str, text: str, status: int, *, again: bool = False) -> Answer:
    return make_response(render_template("setup/message.html", title=title, text=text, again=again), status)
