"""Issues, their conversation, labels and reactions; users, their permissions and memberships."""

from __future__ import annotations

from bot.simgithub.state import CommentState
from bot.simgithub.wire import ApiAnswer, ApiCall, ApiRefusal, Route


def get_repository(call: ApiCall) -> ApiAnswer:
    return ApiAnswer(body=call.render.repository(call.repository))


def get_issue(call: ApiCall) -> ApiAnswer:
    closer = call.issue.closer
    by = {"closed_by": call.render.user(closer) if closer else None}
    return ApiAnswer(body=call.render.issue(call.issue) | by)


def edit_issue(call: ApiCall) -> ApiAnswer:
    """Close or open an issue; other changes are not simulated."""
    state, reason = call.field("state"), call.field("state_reason", None)
    if call.issue.state != state:
        call.operations.set_state(call.issue, state, call.bot, reason)
    return get_issue(call)


def list_issues(call: ApiCall) -> ApiAnswer:
    """List issues and pull requests by number, newest first unless ``direction`` says otherwise."""
    state = call.query.get("state", "open")
    issues = [issue for issue in call.repository.issues.values() if state in ("all", issue.state)]
    descending = call.query.get("direction", "desc") == "desc"
    ordered = sorted(issues, key=lambda issue: issue.number, reverse=descending)
    return call.page([call.render.issue(issue) for issue in ordered])


def list_comments(call: ApiCall) -> ApiAnswer:
    return call.page([call.render.comment(comment) for comment in call.issue.comments])


def list_all_comments(call: ApiCall) -> ApiAnswer:
    """List the comments of all issues and pull requests, oldest first."""
    comments = [comment for issue in call.repository.issues.values() for comment in issue.comments]
    comments.sort(key=lambda comment: comment.id)
    return call.page([call.render.comment(comment) for comment in comments])


def create_comment(call: ApiCall) -> ApiAnswer:
    body = call.text()
    call.refuse_locked("comment")
    comment = call.operations.add_comment(call.issue, body, call.bot, call.acting_app)
    return ApiAnswer(201, call.render.comment(comment))


def edit_comment(call: ApiCall) -> ApiAnswer:
    comment = _comment(call)
    if comment.author is not call.bot:
        # An app with write access may edit others' comments; Bouncer never should, so this is an alarm.
        raise ApiRefusal(403, "Must have admin rights to Repository.")
    call.operations.edit_comment(comment, call.text(), call.bot)
    return ApiAnswer(body=call.render.comment(comment))


def add_labels(call: ApiCall) -> ApiAnswer:
    issue = call.issue
    for name in call.field("labels"):
        if not 0 < len(name) <= 50:
            raise ApiRefusal(422, "Validation Failed", [{"resource": "Label", "code": "invalid", "field": "name"}])
        call.operations.add_label(issue, name, call.bot)
    return ApiAnswer(body=[{"name": name} for name in issue.labels])


def remove_label(call: ApiCall) -> ApiAnswer:
    issue, name = call.issue, call.args["name"]
    if name not in issue.labels:
        raise ApiRefusal(404, "Label does not exist")
    call.operations.remove_label(issue, name, call.bot)
    return ApiAnswer(body=[{"name": label} for label in issue.labels])


def get_permission(call: ApiCall) -> ApiAnswer:
    repository, login = call.repository, call.args["login"]
    user = call.world.users.get(login)
    if user is None:
        raise ApiRefusal(404, f"{login} is not a user")
    # Everybody may read a public repository.
    role = repository.roles.get(login, "none" if repository.private else "read")
    role = "admin" if login == repository.owner.login else role
    # GitHub's older field ``permission`` has only four values.
    word = {"triage": "read", "maintain": "write"}.get(role, role)
    return ApiAnswer(body={"permission": word, "role_name": role, "user": call.render.user(user)})


def _comment(call: ApiCall) -> CommentState:
    review = "/pulls/" in call.path
    comment = (call.repository.review_comment if review else call.repository.comment)(call.args["id"])
    if comment is None:
        raise ApiRefusal(404, "Not Found")
    return comment


def list_reactions(call: ApiCall) -> ApiAnswer:
    return call.page([call.render.reaction(reaction) for reaction in _comment(call).reactions])


def create_reaction(call: ApiCall) -> ApiAnswer:
    reaction, new = call.operations.react(_comment(call), call.bot, call.field("content"))
    return ApiAnswer(201 if new else 200, call.render.reaction(reaction))


def get_user(call: ApiCall) -> ApiAnswer:
    user = call.world.users.get(call.args["login"])
    if user is None:
        raise ApiRefusal(404, "Not Found")
    return ApiAnswer(body=call.render.user(user))


def get_own_user(call: ApiCall) -> ApiAnswer:
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


_REPO = "/repos/<owner>/<repo>"
ROUTES = (
    Route("GET", _REPO, get_repository, "metadata:read"),
    Route("GET", f"{_REPO}/issues", list_issues, "issues:read"),
    Route("GET", f"{_REPO}/issues/<int:number>", get_issue, "issues:read"),
    Route("PATCH", f"{_REPO}/issues/<int:number>", edit_issue, "issues:write"),
    Route("GET", f"{_REPO}/issues/<int:number>/comments", list_comments, "issues:read"),
    Route("POST", f"{_REPO}/issues/<int:number>/comments", create_comment, "issues:write"),
    Route("GET", f"{_REPO}/issues/comments", list_all_comments, "issues:read"),
    Route("PATCH", f"{_REPO}/issues/comments/<int:id>", edit_comment, "issues:write"),
    Route("POST", f"{_REPO}/issues/<int:number>/labels", add_labels, "issues:write"),
    Route("DELETE", f"{_REPO}/issues/<int:number>/labels/<path:name>", remove_label, "issues:write"),
    Route("GET", f"{_REPO}/issues/comments/<int:id>/reactions", list_reactions, "issues:read"),
    Route("POST", f"{_REPO}/issues/comments/<int:id>/reactions", create_reaction, "issues:write"),
    Route("GET", f"{_REPO}/pulls/comments/<int:id>/reactions", list_reactions, "pull_requests:read"),
    Route("POST", f"{_REPO}/pulls/comments/<int:id>/reactions", create_reaction, "pull_requests:write"),
    Route("GET", f"{_REPO}/collaborators/<login>/permission", get_permission, "metadata:read"),
    Route("GET", "/users/<login>", get_user, "metadata:read"),
    Route("GET", "/user", get_own_user, "user"),
    Route("GET", "/user/memberships/orgs/<org>", get_membership, "user"),
)
