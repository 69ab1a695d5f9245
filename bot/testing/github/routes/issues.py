"""Issues, their conversation, labels, reactions and who may do what."""

from __future__ import annotations

from bot.domain import Permission
from bot.testing.github.state import Comment, Repository
from bot.testing.github.wire import Answer, Call, Refused, Route

CONTENTS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
#: GitHub's older ``permission`` field knows four words only.
_OLD_WORD: dict[Permission, str] = {"triage": "read", "maintain": "write"}


def get_repository(call: Call) -> Answer:
    return Answer(body=call.render.repository(call.repository))


def get_issue(call: Call) -> Answer:
    return Answer(body=call.render.issue(call.repository, call.issue))


def list_comments(call: Call) -> Answer:
    repository, issue = call.repository, call.issue
    return call.page([call.render.comment(repository, issue, each) for each in issue.comments])


def create_comment(call: Call) -> Answer:
    body = call.text()
    comment = call.acts.add_comment(call.repository, call.issue, body, call.bot, call.acting_app)
    return Answer(201, call.render.comment(call.repository, call.issue, comment))


def get_comment(call: Call) -> Answer:
    repository = call.repository
    found = repository.comment(call.args["id"])
    if found is None:
        raise Refused(404, "Not Found")
    return Answer(body=call.render.comment(repository, *found))


def edit_comment(call: Call) -> Answer:
    repository = call.repository
    found = repository.comment(call.args["id"])
    if found is None:
        raise Refused(404, "Not Found")
    if found[1].author is not call.bot:
        # An app with write access may edit others' comments; Bouncer never should, so this is an alarm.
        raise Refused(403, "Must have admin rights to Repository.")
    call.acts.edit_comment(repository, call.args["id"], call.text(), call.bot)
    return Answer(body=call.render.comment(repository, *found))


def add_labels(call: Call) -> Answer:
    repository, issue = call.repository, call.issue
    for name in call.field("labels", list):
        if not isinstance(name, str) or not 0 < len(name) <= 50:
            raise Refused(422, "Validation Failed", [{"resource": "Label", "code": "invalid", "field": "name"}])
        call.acts.add_label(repository, issue, name, call.bot)
    return Answer(body=[call.render.label(repository, name) for name in issue.labels])


def remove_label(call: Call) -> Answer:
    repository, issue, name = call.repository, call.issue, call.args["name"]
    if name not in issue.labels:
        raise Refused(404, "Label does not exist")
    call.acts.remove_label(repository, issue, name, call.bot)
    return Answer(body=[call.render.label(repository, each) for each in issue.labels])


def get_permission(call: Call) -> Answer:
    repository, login = call.repository, call.args["login"]
    user = call.world.users.get(login)
    if user is None:
        raise Refused(404, f"{login} is not a user")
    role = role_of(repository, login)
    word = _OLD_WORD.get(role, role)
    return Answer(body={"permission": word, "role_name": role, "user": call.render.user(user)})


def role_of(repository: Repository, login: str) -> Permission:
    """Everybody may read a public repository."""
    if login == repository.owner.login:
        return "admin"
    return repository.roles.get(login, "none" if repository.private else "read")


def _comment(call: Call) -> Comment:
    review = "/pulls/" in call.path
    found = (call.repository.review_comment if review else call.repository.comment)(call.args["id"])
    if found is None:
        raise Refused(404, "Not Found")
    return found[1]


def list_reactions(call: Call) -> Answer:
    wanted = call.query.get("content")
    reactions = [each for each in _comment(call).reactions if wanted in (None, each.content)]
    return call.page([call.render.reaction(each) for each in reactions])


def create_reaction(call: Call) -> Answer:
    content = call.field("content", str)
    if content not in CONTENTS:
        raise Refused(422, "Validation Failed", [{"resource": "Reaction", "code": "invalid", "field": "content"}])
    reaction, new = call.acts.react(_comment(call), call.bot, content)
    return Answer(201 if new else 200, call.render.reaction(reaction))


def get_user(call: Call) -> Answer:
    user = call.world.users.get(call.args["login"])
    if user is None:
        raise Refused(404, "Not Found")
    return Answer(body=call.render.user(user))


_REPO = "/repos/<owner>/<repo>"
ROUTES = (
    Route("GET", _REPO, get_repository, "metadata:read"),
    Route("GET", f"{_REPO}/issues/<int:number>", get_issue, "issues:read"),
    Route("GET", f"{_REPO}/issues/<int:number>/comments", list_comments, "issues:read"),
    Route("POST", f"{_REPO}/issues/<int:number>/comments", create_comment, "issues:write"),
    Route("GET", f"{_REPO}/issues/comments/<int:id>", get_comment, "issues:read"),
    Route("PATCH", f"{_REPO}/issues/comments/<int:id>", edit_comment, "issues:write"),
    Route("POST", f"{_REPO}/issues/<int:number>/labels", add_labels, "issues:write"),
    Route("DELETE", f"{_REPO}/issues/<int:number>/labels/<path:name>", remove_label, "issues:write"),
    Route("GET", f"{_REPO}/issues/comments/<int:id>/reactions", list_reactions, "issues:read"),
    Route("POST", f"{_REPO}/issues/comments/<int:id>/reactions", create_reaction, "issues:write"),
    Route("GET", f"{_REPO}/pulls/comments/<int:id>/reactions", list_reactions, "pull_requests:read"),
    Route("POST", f"{_REPO}/pulls/comments/<int:id>/reactions", create_reaction, "pull_requests:write"),
    Route("GET", f"{_REPO}/collaborators/<login>/permission", get_permission, "metadata:read"),
    Route("GET", "/users/<login>", get_user, "metadata:read"),
)
