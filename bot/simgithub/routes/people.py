"""A person's own account and memberships."""

from __future__ import annotations

from bot.simgithub.wire import ApiAnswer, ApiCall, ApiRefusal, Route


def get_user(call: ApiCall) -> ApiAnswer:
    assert call.user is not None
    return ApiAnswer(body=call.render.user(call.user))


def get_membership(call: ApiCall) -> ApiAnswer:
    """Return the membership; it is pending until an invited person answers."""
    assert call.user is not None
    organization = call.args["org"]
    state = call.world.members.get((organization.lower(), call.user.login))
    if state is None:
        raise ApiRefusal(404, "Not Found")
    if call.app is None or call.app.permissions.get("members") != "read":
        raise ApiRefusal(403, "Resource not accessible by integration")
    user = call.render.user(call.user)
    about = call.render.user(call.world.user(organization, "Organization"))
    return ApiAnswer(body={"state": state, "role": "member", "user": user, "organization": about})


ROUTES = (
    Route("GET", "/user", get_user, "user"),
    Route("GET", "/user/memberships/orgs/<org>", get_membership, "user"),
)
