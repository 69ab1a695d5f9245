"""The simulated GitHub refuses the same requests as the real one, with its messages if Bouncer reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from bot.github.webhook import parse
from bot.simgithub import App, SimulatedGitHub
from tests.bot.simgithub.test_github import NAME, signed, token

PAGE = {"a.py": "x = 1\n", "data/b.bin": b"\0\1"}


@pytest.fixture
def github() -> Iterator[SimulatedGitHub]:
    with SimulatedGitHub() as github:
        yield github


@pytest.fixture
def app(github: SimulatedGitHub) -> App:
    app = github.create_app()
    github.create_repository(NAME, PAGE)
    github.install(app, NAME)
    github.open_issue(NAME, "Reading fails")
    github.open_pull(NAME, "Fix", files={"a.py": "x = 2\n"}, branch="fix")
    return app


@pytest.fixture
def call(github: SimulatedGitHub, app: App) -> Any:
    """A request as the installation: (method, path below the repository, body) -> answer."""
    headers = token(github, app)

    def ask(method: str, path: str, body: Any = None) -> requests.Response:
        url = f"{github.api_url}/repos/{NAME}{path}"
        return requests.request(method, url, json=body, headers=headers, timeout=5, allow_redirects=False)

    return ask


SHA = "0" * 40
PUT = {"message": "m", "content": base64.b64encode(b"y").decode()}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "/issues/1/comments", {"body": " "}, 422, "missing_field"),
        ("POST", "/issues/1/comments", {"body": "x" * 65_537}, 422, "maximum is 65536 characters"),
        ("POST", "/issues/1/comments", {"text": "x"}, 422, "wasn't supplied"),
        ("POST", "/issues/9/comments", {"body": "x"}, 404, "Not Found"),
        ("POST", "/issues/1/labels", {"labels": ["x" * 51]}, 422, "Label"),
        ("DELETE", "/issues/1/labels/none", None, 404, "Label does not exist"),
        ("PATCH", "/issues/comments/1", {"body": "x"}, 404, "Not Found"),
        ("GET", "/pulls/1", None, 404, "Not Found"),
        ("POST", "/pulls/2/reviews", {"event": "COMMENT"}, 422, "can't be blank"),
        ("POST", "/pulls/2/reviews", {"event": "COMMENT", "body": "x", "commit_id": SHA}, 422, "not part"),
        ("POST", "/pulls", {"head": "fix", "base": "main", "title": "t"}, 422, "already exists"),
        ("POST", "/pulls", {"head": "gone", "base": "main", "title": "t"}, 422, "head"),
        ("POST", "/check-runs", {"name": "n", "head_sha": SHA}, 422, "No commit found"),
        ("PATCH", "/check-runs/5", {"conclusion": "success"}, 404, "Not Found"),
        ("GET", f"/commits/{SHA}/pulls", None, 422, "No commit found"),
        ("POST", "/git/refs", {"ref": "draft", "sha": SHA}, 422, "must start with"),
        ("POST", "/git/refs", {"ref": "refs/heads/main", "sha": SHA}, 422, "already exists"),
        ("POST", "/git/refs", {"ref": "refs/heads/new", "sha": SHA}, 422, "does not exist"),
        ("GET", "/contents/gone.py", None, 404, "Not Found"),
        ("GET", "/tarball/gone", None, 404, "No commit found"),
        ("GET", f"/git/blobs/{SHA}", None, 404, "Not Found"),
        ("PUT", "/contents/a.py", PUT, 422, "sha"),
        ("PUT", "/contents/a.py", {**PUT, "sha": SHA}, 409, "does not match"),
        ("PUT", "/contents/new.py", {**PUT, "content": "?"}, 422, "Base64"),
        ("PUT", "/contents/new.py", {**PUT, "branch": "gone"}, 404, "not found"),
        ("PUT", "/contents/.github/workflows/x.yml", PUT, 403, "not accessible by integration"),
        ("POST", "/issues/comments/1/reactions", {"content": "eyes"}, 404, "Not Found"),
        ("GET", "/nonsense", None, 404, "Not Found"),
    ],
)
def test_it_refuses(call: Any, method: str, path: str, body: Any, status: int, message: str) -> None:
    answer = call(method, path, body)
    assert (answer.status_code, message in answer.text) == (status, True), answer.text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"conclusion": "success", "output": {"title": "t"}}, "summary"),
        ({"conclusion": "success", "output": {"title": "t", "summary": "x" * 65_536}}, "too long"),
    ],
)
def test_a_check_with_missing_or_too_many_fields_is_refused(
    github: SimulatedGitHub, call: Any, wrong: dict[str, Any], message: str
) -> None:
    pull = github.find(NAME, 2).pull
    assert pull is not None
    answer = call("POST", "/check-runs", {"name": "n", "head_sha": pull.head_sha, **wrong})
    assert (answer.status_code, message in answer.text) == (422, True), answer.text


@pytest.mark.parametrize(
    ("path", "body", "number"),
    [
        ("/issues/1/comments", {"body": "x"}, 1),
        ("/issues/2/comments", {"body": "x"}, 2),
        ("/pulls/2/reviews", {"event": "COMMENT", "body": "x"}, 2),
    ],
)
def test_an_app_may_not_write_in_a_locked_conversation(
    github: SimulatedGitHub, call: Any, path: str, body: Any, number: int
) -> None:
    github.lock(NAME, number, by="octo")
    assert call("GET", f"/issues/{number}").json()["locked"] is True
    answer = call("POST", path, body)
    assert (answer.status_code, "because issue is locked." in answer.text) == (403, True)


def test_an_app_may_not_edit_comments_of_others(github: SimulatedGitHub, call: Any) -> None:
    comment = github.comment(NAME, 1, "mine", "alice")
    assert call("PATCH", f"/issues/comments/{comment}", {"body": "ours"}).status_code == 403
    assert github.comments(NAME, 1) == ["mine"]


def test_a_body_that_is_no_json_is_refused(github: SimulatedGitHub, app: App) -> None:
    url = f"{github.api_url}/app/hook/deliveries/1/attempts"
    answer = requests.post(url, data="{", headers=signed(app), timeout=5)
    assert (answer.status_code, answer.json()["message"]) == (400, "Problems parsing JSON")


def test_a_suspended_installation_is_shut_out(github: SimulatedGitHub, app: App, call: Any) -> None:
    [installation] = github.world.installations.values()
    installation.suspended = True
    assert call("GET", "/issues/1").status_code == 403


def test_threads_replies_and_reruns_are_announced(github: SimulatedGitHub, app: App, call: Any) -> None:
    app.webhook_url = "http://127.0.0.1:9/nobody"
    pull = github.find(NAME, 2).pull
    assert pull is not None
    comment = {"path": "a.py", "line": 1, "body": "Why?"}
    call("POST", "/pulls/2/reviews", {"event": "COMMENT", "comments": [comment]})
    [first] = github.review_comments(NAME, 2)
    answer = github.reply(NAME, first.id, "Because.", by="alice")
    github.resolve(NAME, first.id, by="alice")
    check = call("POST", "/check-runs", {"name": "n", "head_sha": pull.head_sha, "conclusion": "neutral"})
    github.rerequest(NAME, check.json()["id"], by="alice")
    github.commit(NAME, {"a.py": "x = 3\n"}, branch="fix", by="alice")
    events = [parse(delivery.event, json.loads(delivery.body)) for delivery in app.deliveries]
    assert [event.kind for event in events if event] == [
        "review_comment_created",
        "review_comment_created",
        "review_thread_resolved",
        "check_rerequested",
        "pull_request_synchronized",
    ]
    assert [comment.in_reply_to for comment in github.review_comments(NAME, 2)] == [None, first.id]
    assert [comment.line for comment in github.review_comments(NAME, 2)] == [None, None]
    assert answer == github.review_comments(NAME, 2)[1].id
