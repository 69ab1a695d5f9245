"""Pull requests, their diffs, and reviews anchored to lines."""

from __future__ import annotations

from typing import Any

from bot.simgithub import diffs
from bot.simgithub.state import Json, Pull, Review, ReviewCommentState, Side
from bot.simgithub.wire import MAX_BODY, ApiAnswer, ApiCall, ApiRefusal, Route

#: GitHub refuses to render larger diffs.
MAX_DIFF_LINES = 20_000
MAX_DIFF_FILES = 300
MAX_DIFF_BYTES = 1_000_000


def get_pull(call: ApiCall) -> ApiAnswer:
    issue, pull = call.pull
    if "diff" not in call.accept:
        return ApiAnswer(body=call.render.pull(issue))
    files = diffs.changes(*call.world.pull_files(pull))
    text = diffs.unified(files)
    lines = text.count("\n")
    # A text file without a patch is too large, and so is the whole diff.
    cut = any(file.patch is None and file.additions + file.deletions for file in files)
    if cut or lines > MAX_DIFF_LINES or len(files) > MAX_DIFF_FILES or len(text) > MAX_DIFF_BYTES:
        raise ApiRefusal(
            406,
            f"Sorry, the diff exceeded the maximum number of lines ({MAX_DIFF_LINES})",
            [{"resource": "PullRequest", "field": "diff", "code": "too_large"}],
        )
    return ApiAnswer(body=text, content_type="application/vnd.github.diff; charset=utf-8")


def list_files(call: ApiCall) -> ApiAnswer:
    files = diffs.changes(*call.world.pull_files(call.pull[1]))
    values = [
        {
            "filename": change.path,
            "status": change.status,
            "changes": change.additions + change.deletions,
            **({} if change.patch is None else {"patch": change.patch}),
        }
        for change in files[:3000]
    ]
    return call.page(values)


def list_pulls(call: ApiCall) -> ApiAnswer:
    repository, state = call.repository, call.query.get("state", "open")
    head = call.query.get("head", "")
    pulls = []
    for issue in reversed(repository.issues.values()):
        pull = issue.pull
        if pull is None or state not in ("all", issue.state):
            continue
        owner = (pull.head_repository or "").partition("/")[0]
        if head in ("", f"{owner}:{pull.head_ref}"):
            pulls.append(call.render.pull(issue))
    return call.page(pulls)


def create_pull(call: ApiCall) -> ApiAnswer:
    repository = call.repository
    head, base = call.field("head"), call.field("base")
    if head not in repository.branches or base not in repository.branches:
        field = "base" if head in repository.branches else "head"
        raise ApiRefusal(
            422, "Validation Failed", [{"resource": "PullRequest", "field": field, "code": "invalid"}]
        )
    message = ""
    if any(
        pull.pull and pull.pull.head_ref == head and pull.state == "open" for pull in repository.issues.values()
    ):
        message = f"A pull request already exists for {repository.owner.login}:{head}."
    elif repository.branches[head] in call.world.ancestors(repository.branches[base]):
        message = f"No commits between {base} and {head}"
    if message:
        problem = {"resource": "PullRequest", "code": "custom", "message": message}
        raise ApiRefusal(422, "Validation Failed", [problem])
    pull = Pull(
        head_ref=head,
        head_repository=repository.full_name,
        head_sha=repository.branches[head],
        base_ref=base,
        base_sha=repository.branches[base],
        draft=call.field("draft", False),
    )
    title, text = call.text("title"), call.text("body", "")
    issue = call.operations.open_issue(repository, title, text, call.bot, pull=pull)
    return ApiAnswer(201, call.render.pull(issue))


def list_reviews(call: ApiCall) -> ApiAnswer:
    return call.page([call.render.review(review) for review in call.pull[1].reviews])


def list_review_comments(call: ApiCall) -> ApiAnswer:
    return call.page([call.render.review_comment(comment) for comment in call.pull[1].comments])


def create_reply(call: ApiCall) -> ApiAnswer:
    """Reply in the thread of a comment; replies to replies are refused."""
    body = call.text()
    first = next((comment for comment in call.pull[1].comments if comment.id == call.args["id"]), None)
    if first is None or first.in_reply_to is not None:
        raise ApiRefusal(404, "Not Found")
    call.refuse_locked("comment")
    reply = call.operations.reply(first, body, call.bot, call.acting_app)
    return ApiAnswer(201, call.render.review_comment(reply))


def create_review(call: ApiCall) -> ApiAnswer:
    """Post a review; one comment that cannot be anchored refuses the whole review."""
    pull = call.pull[1]
    body, values = call.text("body", ""), call.field("comments", [])
    call.refuse_locked("review")
    if not body and not values:
        raise ApiRefusal(422, "Unprocessable Entity", ["Review body can't be blank"])
    commit_id = call.field("commit_id", pull.head_sha)
    if commit_id not in call.world.ancestors(pull.head_sha):
        raise ApiRefusal(422, "Unprocessable Entity", ["Commit is not part of the pull request"])
    review = Review(call.world.next_id(), call.bot, body, commit_id, "COMMENTED")
    comments = [_review_comment(call, commit_id, value) for value in values]
    pull.reviews.append(review)
    for comment in comments:
        call.operations.add_review_comment(comment)
    return ApiAnswer(200, call.render.review(review))


def _review_comment(call: ApiCall, commit_id: str, value: Json) -> ReviewCommentState:
    (issue, pull), body = call.pull, value["body"]
    if not body.strip() or len(body) > MAX_BODY:
        raise ApiRefusal(422, "Unprocessable Entity", ["Comment body is invalid"])
    files = {change.path: change for change in diffs.changes(*call.world.pull_files(pull))}
    path = value.get("path")
    if path not in files:
        raise ApiRefusal(422, "Unprocessable Entity", ["Path could not be resolved"])
    patch = files[path].patch or ""
    side, line, part = _anchor(value, patch)
    return ReviewCommentState(
        issue=issue,
        id=call.world.next_id(),
        body=body,
        author=call.bot,
        created_at=call.world.now(),
        app=call.acting_app,
        path=path,
        line=line,
        original_line=line,
        side=side,
        diff_hunk="\n".join(patch.split("\n")[part.start : part.stop]),
        commit_id=commit_id,
    )


def _anchor(value: Json, patch: str) -> tuple[Side, int, range]:
    lines = diffs.commentable(patch)
    side: Any = value.get("side", "RIGHT")
    line, start = value.get("line"), value.get("start_line")
    part = lines.get((side, line)) if isinstance(line, int) else None
    if part is None or not isinstance(line, int):
        raise ApiRefusal(422, "Unprocessable Entity", ["Line could not be resolved"])
    if start is not None:
        same_side = value.get("start_side", side) == side
        first = lines.get((side, start))
        if not same_side or start >= line or first is None or first.start != part.start:
            raise ApiRefusal(422, "Unprocessable Entity", ["Start line could not be resolved"])
    return side, line, part


def pulls_for_commit(call: ApiCall) -> ApiAnswer:
    repository, sha = call.repository, call.args["sha"]
    if sha not in call.world.commits:
        raise ApiRefusal(422, f"No commit found for SHA: {sha}")
    world, pulls = call.world, []
    for issue in repository.issues.values():
        if issue.pull is not None:
            before = world.ancestors(world.merge_base(issue.pull.base_sha, issue.pull.head_sha))
            own_commits = set(world.ancestors(issue.pull.head_sha)) - set(before)
            if sha in {issue.pull.merge_sha, *own_commits}:
                pulls.append(call.render.pull(issue))
    return call.page(pulls)


_PULLS = "/repos/<owner>/<repo>/pulls"
ROUTES = (
    Route("GET", _PULLS, list_pulls, "pull_requests:read"),
    Route("POST", _PULLS, create_pull, "pull_requests:write"),
    Route("GET", f"{_PULLS}/<int:number>", get_pull, "pull_requests:read"),
    Route("GET", f"{_PULLS}/<int:number>/files", list_files, "pull_requests:read"),
    Route("GET", f"{_PULLS}/<int:number>/reviews", list_reviews, "pull_requests:read"),
    Route("POST", f"{_PULLS}/<int:number>/reviews", create_review, "pull_requests:write"),
    Route("GET", f"{_PULLS}/<int:number>/comments", list_review_comments, "pull_requests:read"),
    Route("POST", f"{_PULLS}/<int:number>/comments/<int:id>/replies", create_reply, "pull_requests:write"),
    Route("GET", "/repos/<owner>/<repo>/commits/<sha>/pulls", pulls_for_commit, "pull_requests:read"),
)
