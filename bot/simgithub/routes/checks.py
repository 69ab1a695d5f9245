"""Check runs."""

from __future__ import annotations

from bot.simgithub.state import CheckRunState, Json
from bot.simgithub.wire import ApiAnswer, ApiCall, ApiRefusal, Route

MAX_TEXT = 65_535


def create(call: ApiCall) -> ApiAnswer:
    sha = call.field("head_sha")
    if sha not in call.world.commits:
        raise ApiRefusal(422, f"No commit found for SHA: {sha}")
    check = CheckRunState(call.world.next_id(), call.text("name"), sha, call.acting_app)
    _fill(call, check)
    call.repository.checks.append(check)
    return ApiAnswer(201, call.render.check_run(call.repository, check))


def edit(call: ApiCall) -> ApiAnswer:
    check = next((run for run in call.repository.checks if run.id == call.args["id"]), None)
    if check is None or check.app is not call.acting_app:
        raise ApiRefusal(404, "Not Found")
    _fill(call, check)
    return ApiAnswer(body=call.render.check_run(call.repository, check))


def _fill(call: ApiCall, check: CheckRunState) -> None:
    conclusion = call.field("conclusion", check.conclusion)
    status = call.field("status", "completed" if conclusion else check.status)
    output: Json = call.field("output", check.output)
    # GitHub's description demands them, but would let them be empty.
    if output and not (output.get("title") and output.get("summary")):
        raise ApiRefusal(422, 'Invalid request.\n\n"title", "summary" weren\'t supplied.')
    if any(len(output.get(name) or "") > MAX_TEXT for name in ("summary", "text")):
        raise ApiRefusal(422, "Only 65535 characters are allowed; the output is too long.")
    check.status, check.conclusion, check.output = status, conclusion, output
    check.external_id = call.field("external_id", check.external_id)


def list_for_ref(call: ApiCall) -> ApiAnswer:
    repository, sha = call.repository, call.args["ref"]
    name = call.query.get("check_name")
    runs = [check for check in reversed(repository.checks) if check.head_sha == sha and name in (None, check.name)]
    if call.query.get("filter", "latest") == "latest":
        runs = list({(check.name, check.app.id): check for check in reversed(runs)}.values())
    return call.page([call.render.check_run(repository, run) for run in runs], "check_runs")


_REPO = "/repos/<owner>/<repo>"
ROUTES = (
    Route("POST", f"{_REPO}/check-runs", create, "checks:write"),
    Route("PATCH", f"{_REPO}/check-runs/<int:id>", edit, "checks:write"),
    Route("GET", f"{_REPO}/commits/<ref>/check-runs", list_for_ref, "checks:read"),
)
