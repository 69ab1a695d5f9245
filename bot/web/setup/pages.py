"""``/setup``: the pages around GitHub's manifest flow. Nothing here shows a key or a secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
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

#: Messages for a callback whose state is not valid.
_REFUSALS = {
    "unknown": "This answer from GitHub does not belong to a set-up that was started here.",
    "used": "This answer from GitHub was used already.",
    "expired": "More than an hour passed between the start of set-up and GitHub's answer.",
}


@dataclass(frozen=True)
class Setup:
    """Everything that the pages need. ``keep`` stores or prints credentials; it may raise SettingsError."""

    guard: Guard
    default: Addresses
    public_url: str | None
    convert: Callable[[str, str, str], Credentials]
    keep: Callable[[Credentials, Choice], None]
    owner: str = ""
    """The first account or organization of BOUNCER_ADMINS, to suggest as the owner."""
    dashboard: bool = False


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
        choice, wrong = choose(request.form, setup.default)
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
        return _message("Set-up is locked", "Open the link that `bouncer serve` shows in its terminal.", 403)
    if setup.guard.finished:
        return _message("Set-up is done", "This server has its GitHub App. There is nothing left to do here.", 410)
    return None


def _form(setup: Setup, fields: dict[str, str], wrong: dict[str, str]) -> str:
    values = {
        "owner": "user",
        "organization": setup.owner,
        "name": f"bouncer-{setup.owner}" if setup.owner else "",
        "web_url": setup.default.web_url,
        "public_url": setup.public_url or request.url_root.rstrip("/"),
        "webhook_url": "",
        "keep": "file",
        "mode": "shadow",
        **fields,
    }
    token = session.form_token(_cookie())
    return render_template("setup/choose.html", values=values, wrong=wrong, token=token)


def _confirm(setup: Setup, choice: Choice) -> Answer:
    extended = choice.extended(manifest())
    state = setup.guard.begin(choice)
    page = render_template(
        "setup/confirm.html",
        choice=choice,
        fields={name: value for name, value in request.form.items() if name != "token"},
        token=session.form_token(_cookie()),
        permissions=extended.default_permissions,
        purposes=PURPOSES,
        posted=json.dumps(choice.manifest(manifest())),
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
        why = f"Your app is registered, but its key could not be stored: {error}. Delete it there and start again."
        return _message("The key could not be stored", why, 500, again=True)
    setup.guard.finished = True
    _log.info("set_up", app=credentials.slug, app_id=credentials.app_id)
    fields = credentials.model_dump(include={"app_id", "slug", "html_url"})
    return render_template("setup/done.html", choice=choice, credentials=fields, dashboard=setup.dashboard)


def _message(title: str, text: str, status: int, *, again: bool = False) -> Answer:
    return make_response(render_template("setup/message.html", title=title, text=text, again=again), status)
