"""The pages for people: register an app, install it, log in with it; and the host of archives."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import secrets
from urllib.parse import urlencode

from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from bot.simgithub.operations import Operations
from bot.simgithub.registry import install
from bot.simgithub.routes.git import archive
from bot.simgithub.state import Grant, Json


class Pages:
    """The signed-in user is ``owner``; an app belongs to them, or to the organisation in the address."""

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.world = operations.world
        self.owner = "octo"
        #: Paths of requests to the archive host with credentials; there must be none.
        self.leaked: list[str] = []

    def respond(self, request: Request) -> Response:
        parts = request.path.strip("/").split("/")
        with self.world.lock:
            if parts[0] == "_codeload":
                return self._archive(request, parts)
            if parts[0] == "organizations" and parts[2:] == ["settings", "apps", "new"]:
                return self._new_app(request, parts[1])
            if parts == ["settings", "apps", "new"]:
                return self._new_app(request, self.owner)
            if parts == ["login", "oauth", "authorize"]:
                return self._authorize(request)
            if parts == ["login", "oauth", "access_token"]:
                return self._token(request)
            if parts[0] == "apps" and parts[2:] == ["installations", "new"]:
                return self._install(request, parts[1])
        return _page("Not found", "<p>This is not the page you are looking for.</p>", 404)

    def _archive(self, request: Request, parts: list[str]) -> Response:
        if "Authorization" in request.headers:
            self.leaked.append(request.path)
        repository = self.world.repositories[f"{parts[1]}/{parts[2]}"]
        if request.args.get("token") != "ONETIME" or parts[4] not in self.world.commits:
            return _page("Not found", "", 404)
        return Response(archive(repository, self.world.commits[parts[4]]), content_type="application/x-gzip")

    def _new_app(self, request: Request, owner: str) -> Response:
        """The first POST shows the request; the second, which confirms a name, creates the app."""
        if request.method != "POST":
            return _page("Register new GitHub App", "<p>A manifest is expected.</p>")
        manifest: Json = json.loads(request.form["manifest"])
        missing = [name for name in ("url", "hook_attributes", "redirect_url") if not manifest.get(name)]
        if missing:
            return _page("Invalid manifest", f"<p>Missing: {html.escape(', '.join(missing))}</p>", 422)
        state = request.args.get("state", "")
        if "confirmed" not in request.form:
            return _page("Create GitHub App", _form(request, manifest, owner, state))
        manifest["name"] = request.form.get("name") or manifest.get("name") or "bouncer"
        code = secrets.token_hex(20)
        self.world.manifests[code] = (manifest, self.world.user(owner), self.world.now())
        back = manifest["redirect_url"]
        query = urlencode({"code": code} | ({"state": state} if state else {}))
        return redirect(f"{back}{'&' if '?' in back else '?'}{query}")

    def _authorize(self, request: Request) -> Response:
        """GET asks the person, POST is their consent."""
        query = request.args
        app = next(
            (candidate for candidate in self.world.apps.values() if candidate.client_id == query.get("client_id")),
            None,
        )
        back = query.get("redirect_uri", "")
        if app is None or back not in app.callback_urls:
            return _page("The redirect_uri is not associated with this application", "", 404)
        if request.method != "POST":
            return _page(f"Authorize {app.name}", '<form method="post"><button>Authorize</button></form>')
        code = secrets.token_hex(10)
        challenge = query.get("code_challenge", "") if query.get("code_challenge_method") == "S256" else ""
        self.world.grants[code] = Grant(app, self.world.user(self.owner), back, challenge)
        return redirect(f"{back}?{urlencode({'code': code, 'state': query.get('state', '')})}")

    def _token(self, request: Request) -> Response:
        """Exchange a code for a token. Errors have status 200, as at GitHub."""
        answers: Json = request.get_json(force=True)
        grant = self.world.grants.pop(str(answers.get("code")), None)
        digest = hashlib.sha256(str(answers.get("code_verifier", "")).encode()).digest()
        answer: Json = {"error": "bad_verification_code"}
        if grant is None or grant.challenge not in ("", base64.urlsafe_b64encode(digest).rstrip(b"=").decode()):
            pass
        elif answers.get("client_secret") != grant.app.client_secret:
            answer = {"error": "incorrect_client_credentials"}
        elif answers.get("redirect_uri") != grant.redirect_uri:
            answer = {"error": "redirect_uri_mismatch"}
        else:
            token = "ghu_" + secrets.token_hex(18)
            self.world.user_tokens[token] = (grant.app, grant.user)
            answer = {"access_token": token, "token_type": "bearer", "scope": ""}
        if request.headers.get("Accept") != "application/json":
            return Response(urlencode(answer), content_type="application/x-www-form-urlencoded")
        return Response(json.dumps(answer), content_type="application/json")

    def _install(self, request: Request, slug: str) -> Response:
        app = next((candidate for candidate in self.world.apps.values() if candidate.slug == slug), None)
        if app is None:
            return _page("Not found", "", 404)
        if request.method != "POST":
            return _page(f"Install {app.name}", '<form method="post"><button>Install</button></form>')
        account = app.owner
        own = [repository for repository in self.world.repositories.values() if repository.owner is account]
        installation = install(self.world, app, account, own)
        self.operations.installed(installation, account)
        if app.setup_url:
            query = urlencode({"installation_id": installation.id, "setup_action": "install"})
            return redirect(f"{app.setup_url}?{query}")
        return _page("Installed", f"<p>{html.escape(app.name)} is installed.</p>")


def _form(request: Request, manifest: Json, owner: str, state: str) -> str:
    permissions = manifest.get("default_permissions") or {}
    rows = "".join(f"<li>{html.escape(name)}: {html.escape(level)}</li>" for name, level in permissions.items())
    action = html.escape(f"{request.path}?{urlencode({'state': state})}")
    return f"""
    <form method="post" action="{action}">
      <p>For {html.escape(owner)}. Permissions:</p><ul>{rows}</ul>
      <input type="hidden" name="manifest" value="{html.escape(json.dumps(manifest))}">
      <input type="hidden" name="confirmed" value="1">
      <label>GitHub App name <input name="name" value="{html.escape(str(manifest.get("name", "")))}"></label>
      <button>Create GitHub App</button>
    </form>"""


def _page(title: str, body: str, status: int = 200) -> Response:
    text = f'<!doctype html><html lang="en"><title>{html.escape(title)}</title><h1>{html.escape(title)}</h1>{body}'
    return Response(text, status, content_type="text/html; charset=utf-8")
