"""The app itself: its description, installations, tokens, webhook, deliveries, and registration."""

from __future__ import annotations

from datetime import timedelta

from bot.simgithub import registry
from bot.simgithub.state import DeliveryState, InstallationState, Json, Token
from bot.simgithub.wire import ApiAnswer, ApiCall, ApiRefusal, Route

LEVELS = ("read", "write", "admin")
MANIFEST_LIFE = timedelta(hours=1)


def get_app(call: ApiCall) -> ApiAnswer:
    return ApiAnswer(body=call.render.app(call.acting_app))


def list_installations(call: ApiCall) -> ApiAnswer:
    own = [installation for installation in call.world.installations.values() if installation.app is call.app]
    return call.page([call.render.installation(installation) for installation in own])


def get_repo_installation(call: ApiCall) -> ApiAnswer:
    name = f"{call.args['owner']}/{call.args['repo']}"
    for installation in call.world.installations.values():
        if installation.app is call.app and name in installation.repositories:
            return ApiAnswer(body=call.render.installation(installation))
    raise ApiRefusal(404, "Not Found")


def _installation(call: ApiCall) -> InstallationState:
    installation = call.world.installations.get(call.args["id"])
    if installation is None or installation.app is not call.app:
        raise ApiRefusal(404, "Not Found")
    if installation.suspended:
        raise ApiRefusal(403, "This installation has been suspended")
    return installation


def get_installation(call: ApiCall) -> ApiAnswer:
    return ApiAnswer(body=call.render.installation(_installation(call)))


def create_token(call: ApiCall) -> ApiAnswer:
    installation = _installation(call)
    owner = installation.account.login
    names = call.field("repositories", None)
    repositories = installation.repositories if names is None else [f"{owner}/{name}" for name in names]
    if not set(repositories) <= set(installation.repositories):
        raise ApiRefusal(422, "There is at least one repository that does not exist or is not accessible.")
    permissions = call.field("permissions", None) or installation.permissions
    for name, level in permissions.items():
        if not _covers(installation.permissions.get(name), level):
            raise ApiRefusal(422, "The permissions requested are not granted to this installation.")
    token = registry.create_token(call.world, installation, repositories, permissions)
    return ApiAnswer(201, {"token": token.value, "expires_at": call.render.time(token.expires_at)})


def _covers(granted: str | None, level: str) -> bool:
    return granted in LEVELS and level in LEVELS and LEVELS.index(granted) >= LEVELS.index(level)


def allows(token: Token, needs: str) -> bool:
    """Return True if a token's permissions cover ``name:level``; every token may read metadata."""
    name, _, level = needs.partition(":")
    return name == "metadata" or _covers(token.permissions.get(name), level)


def get_hook(call: ApiCall) -> ApiAnswer:
    return ApiAnswer(body={"url": call.acting_app.webhook_url, "content_type": "json"})


def list_deliveries(call: ApiCall) -> ApiAnswer:
    """Newest first, paged by cursor."""
    size = min(int(call.query.get("per_page", 30)), 100)
    before = int(call.query.get("cursor", 0)) or None
    status = call.query.get("status")
    deliveries = [
        delivery
        for delivery in reversed(call.acting_app.deliveries)
        if (before is None or delivery.id < before)
        and status in (None, "success" if 200 <= delivery.status_code < 300 else "failure")
    ]
    page = deliveries[:size]
    headers = call.link(cursor=page[-1].id) if len(deliveries) > size else {}
    return ApiAnswer(body=[_delivery(call, delivery) for delivery in page], headers=headers)


def _delivery(call: ApiCall, delivery: DeliveryState) -> Json:
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": call.render.time(delivery.delivered_at),
        "status_code": delivery.status_code,
        "event": delivery.event,
    }


def redeliver(call: ApiCall) -> ApiAnswer:
    app = call.acting_app
    for delivery in app.deliveries:
        if delivery.id == call.args["id"]:
            call.operations.hooks.redeliver(app, delivery)
            return ApiAnswer(202, {})
    raise ApiRefusal(404, "Not Found")


def convert_manifest(call: ApiCall) -> ApiAnswer:
    """Exchange a code for the app; it works once, within an hour."""
    registration = call.world.manifests.pop(call.args["code"], None)
    if registration is None or call.world.now() - registration[2] > MANIFEST_LIFE:
        raise ApiRefusal(404, "Not Found")
    manifest, owner, _ = registration
    app = registry.create_app(call.world, manifest, owner)
    secret = {"client_secret": app.client_secret, "webhook_secret": app.webhook_secret, "pem": app.private_key}
    return ApiAnswer(201, call.render.app(app) | secret)


ROUTES = (
    Route("GET", "/app", get_app, "app"),
    Route("GET", "/app/installations", list_installations, "app"),
    Route("GET", "/repos/<owner>/<repo>/installation", get_repo_installation, "app"),
    Route("GET", "/app/installations/<int:id>", get_installation, "app"),
    Route("POST", "/app/installations/<int:id>/access_tokens", create_token, "app"),
    Route("GET", "/app/hook/config", get_hook, "app"),
    Route("GET", "/app/hook/deliveries", list_deliveries, "app"),
    Route("POST", "/app/hook/deliveries/<int:id>/attempts", redeliver, "app"),
    Route("POST", "/app-manifests/<code>/conversions", convert_manifest),
)
