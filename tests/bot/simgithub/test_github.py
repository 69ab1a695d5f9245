"""The simulated GitHub behaves like the real one in everything that Bouncer depends on."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
import requests
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.core.events import Event
from bot.github.webhook import load, parse, verify
from bot.simgithub import App, SimulatedGitHub
from tests.conformance.checking import violations

NAME = "octo/demo"
SECRET = "it's a secret"


class Hook:
    """A receiver that verifies and parses what is delivered."""

    def __init__(self, server: HTTPServer) -> None:
        self.status = 202
        self.events: queue.Queue[tuple[str, Event | None]] = queue.Queue()
        self.url = server.url_for("/webhook")
        server.expect_request("/webhook").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        verify(request.data, request.headers["X-Hub-Signature-256"], [SECRET])
        event = parse(request.headers["X-GitHub-Event"], load(request.data, request.headers["Content-Type"]))
        self.events.put((request.headers["X-GitHub-Delivery"], event))
        return Response(status=self.status)

    def event_types(self) -> list[str]:
        """Return the events since the last call."""
        events = []
        while not self.events.empty():
            event = self.events.get()[1]
            events.append(event.kind if event else "nothing")
        return events


@pytest.fixture
def hook(httpserver: HTTPServer) -> Hook:
    return Hook(httpserver)


@pytest.fixture
def github() -> Iterator[SimulatedGitHub]:
    with SimulatedGitHub() as github:
        yield github
        assert violations(github.requests) == []


@pytest.fixture
def app(github: SimulatedGitHub, hook: Hook) -> App:
    app = github.create_app(webhook_url=hook.url, webhook_secret=SECRET)
    github.create_repository(NAME, {"a.py": "x = 1\n"})
    github.install(app, NAME)
    assert hook.event_types() == ["installation_changed"]
    return app


def signed(app: App, **claims: Any) -> dict[str, str]:
    now = int(time.time())
    content = {"iat": now - 60, "exp": now + 300, "iss": str(app.id), **claims}
    return {"Authorization": f"Bearer {jwt.encode(content, app.private_key, 'RS256')}"}


def token(github: SimulatedGitHub, app: App, **body: Any) -> dict[str, str]:
    [installation] = github.world.installations.values()
    url = f"{github.api_url}/app/installations/{installation.id}/access_tokens"
    answer = requests.post(url, json=body or None, headers=signed(app), timeout=5)
    assert answer.status_code == 201, answer.text
    return {"Authorization": f"token {answer.json()['token']}"}


def test_actions_of_people_are_announced_signed_and_in_order(
    github: SimulatedGitHub, app: App, hook: Hook
) -> None:
    number = github.open_issue(NAME, "Reading fails", "Nothing works.")
    github.edit(NAME, number, body="More.")
    comment = github.comment(NAME, number, "Which?", "bob")
    github.edit_comment(NAME, comment, "Which one?", by="bob")
    github.delete_comment(NAME, comment, by="bob")
    github.label(NAME, number, "bug", by="octo")
    github.close(NAME, number, reason="not_planned", by="octo")
    github.reopen(NAME, number)
    assert hook.event_types() == [
        "issue_opened",
        "issue_edited",
        "comment_created",
        "comment_edited",
        "comment_deleted",
        "issue_labeled",
        "issue_closed",
        "issue_reopened",
    ]


def test_a_deleted_or_transferred_issue_is_gone_and_its_number_too(
    github: SimulatedGitHub, app: App, hook: Hook
) -> None:
    github.create_repository("octo/other")
    first, second = (github.open_issue(NAME, "Reading fails") for _ in range(2))
    pull = github.open_pull(NAME, "Fix", files={"a.py": "x = 2\n"}, closes=[first, second])
    github.delete(NAME, first, by="octo")
    assert github.transfer(NAME, second, "octo/other", by="octo") == 1
    place = f"{github.api_url}/repos/{NAME}/issues"
    deleted, moved = (requests.get(f"{place}/{number}", timeout=5) for number in (first, second))
    assert (deleted.status_code, moved.status_code, moved.json()["number"]) == (410, 200, 1)
    record = github.find(NAME, pull).pull
    assert record is not None
    assert record.closes == []
    assert github.open_issue(NAME, "Another") == pull + 1
    assert hook.event_types()[-3:] == ["issue_removed", "issue_removed", "issue_opened"]


def test_changes_of_a_pull_request_are_announced(github: SimulatedGitHub, app: App, hook: Hook) -> None:
    number = github.open_pull(NAME, "Fix", files={"a.py": "x = 2\n"}, draft=True, fork=True)
    github.ready(NAME, number)
    first = github.find(NAME, number).pull
    assert first is not None
    before = first.head_sha
    assert github.push(NAME, number, {"b.py": "y\n"}) != before
    github.edit(NAME, number, title="Fix it")
    github.merge(NAME, number, by="octo")
    assert hook.event_types() == [
        "pull_request_opened",
        "pull_request_readied",
        "pull_request_synchronized",
        "pull_request_edited",
        "pull_request_closed",
    ]


def test_actions_of_the_app_are_announced_as_its_bot(github: SimulatedGitHub, app: App, hook: Hook) -> None:
    number = github.open_issue(NAME, "Reading fails")
    url = f"{github.api_url}/repos/{NAME}/issues/{number}/comments"
    requests.post(url, json={"body": "hello"}, headers=token(github, app), timeout=5)
    github.settle()
    events = [hook.events.get()[1] for _ in range(2)]
    assert [(event.kind, event.sender.login, event.sender.is_bot) for event in events if event] == [
        ("issue_opened", "alice", False),
        ("comment_created", "bouncer[bot]", True),
    ]


def test_an_app_gets_only_the_events_that_it_subscribed_to(github: SimulatedGitHub, hook: Hook) -> None:
    app = github.create_app(webhook_url=hook.url, webhook_secret=SECRET, events=["issue_comment"])
    github.create_repository(NAME)
    github.install(app, NAME)
    number = github.open_issue(NAME, "Reading fails")
    github.comment(NAME, number, "Hi")
    assert hook.event_types() == ["installation_changed", "comment_created"]


def test_a_receiver_that_is_down_is_a_failed_delivery(github: SimulatedGitHub) -> None:
    app = github.create_app(webhook_url="http://127.0.0.1:9/webhook")
    github.create_repository(NAME)
    github.install(app, NAME)
    assert [delivery.status_code for delivery in app.deliveries] == [502]


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"Authorization": "token nonsense"}, 401), ({"Authorization": "Basic eDp5"}, 401)],
)
def test_requests_without_credentials_are_refused(
    github: SimulatedGitHub, app: App, headers: dict[str, str], status: int
) -> None:
    assert requests.get(f"{github.api_url}/app", headers=headers, timeout=5).status_code == status
    comments = f"{github.api_url}/repos/{NAME}/issues/1/comments"
    assert requests.post(comments, json={"body": "x"}, headers=headers, timeout=5).status_code == status


def test_only_public_repositories_are_readable_without_credentials(github: SimulatedGitHub, app: App) -> None:
    github.create_repository("acme/secret", private=True)
    for name, status in ((NAME, 200), ("acme/secret", 404)):
        assert requests.get(f"{github.api_url}/repos/{name}", timeout=5).status_code == status


@pytest.mark.parametrize("claims", [{"exp": 1}, {"exp": int(time.time()) + 4000}, {"iss": "1"}])
def test_a_json_web_token_must_be_the_app_s_and_fresh(
    github: SimulatedGitHub, app: App, claims: dict[str, Any]
) -> None:
    headers = signed(app, **claims)
    assert requests.get(f"{github.api_url}/app", headers=headers, timeout=5).status_code == 401


def test_a_token_has_only_its_own_permissions(github: SimulatedGitHub, app: App) -> None:
    number = github.open_issue(NAME, "Reading fails")
    narrow = token(github, app, permissions={"issues": "read"})
    place = f"{github.api_url}/repos/{NAME}"
    assert requests.get(f"{place}/issues/{number}", headers=narrow, timeout=5).status_code == 200
    refused = requests.post(f"{place}/issues/{number}/comments", json={"body": "x"}, headers=narrow, timeout=5)
    assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
    assert requests.get(f"{place}/contents/a.py", headers=narrow, timeout=5).status_code == 403


def test_a_token_for_one_repository_does_not_see_another(github: SimulatedGitHub, app: App) -> None:
    github.create_repository("octo/secret", private=True)
    [installation] = github.world.installations.values()
    installation.repositories.append("octo/secret")
    narrow = token(github, app, repositories=["demo"])
    url = f"{github.api_url}/repos/octo/secret"
    assert requests.get(url, headers=narrow, timeout=5).status_code == 404


def test_a_revoked_or_expired_token_is_refused(github: SimulatedGitHub, app: App) -> None:
    place = f"{github.api_url}/repos/{NAME}"
    first, second = token(github, app), token(github, app)
    github.world.tokens[first["Authorization"].removeprefix("token ")].revoked = True
    assert requests.get(place, headers=first, timeout=5).status_code == 401
    github.advance(minutes=61)
    assert requests.get(place, headers=second, timeout=5).status_code == 401


# Registering an app

MANIFEST = {
    "name": "bouncer",
    "url": "https://bouncer.example.com",
    "hook_attributes": {"url": "https://bouncer.example.com/webhook"},
    "redirect_url": "https://bouncer.example.com/setup/callback",
    "default_permissions": {"issues": "write"},
    "default_events": ["issues"],
}


def registered(github: SimulatedGitHub) -> requests.Response:
    form = {"manifest": json.dumps(MANIFEST), "confirmed": "1", "name": "Bouncer of Octo"}
    url = f"{github.web_url}/settings/apps/new"
    return requests.post(url, params={"state": "abc"}, data=form, timeout=5, allow_redirects=False)


def converted(github: SimulatedGitHub, back: str) -> requests.Response:
    code = back.partition("code=")[2].partition("&")[0]
    return requests.post(f"{github.api_url}/app-manifests/{code}/conversions", timeout=5)


def test_a_manifest_becomes_an_app_once_and_within_an_hour(github: SimulatedGitHub) -> None:
    back, late = registered(github).headers["Location"], registered(github).headers["Location"]
    assert back.startswith("https://bouncer.example.com/setup/callback?code=")
    assert back.endswith("&state=abc")
    answer = converted(github, back)
    assert answer.status_code == 201
    app = answer.json()
    assert app["slug"] == "bouncer-of-octo"
    assert app["pem"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert app["webhook_secret"]
    assert converted(github, back).status_code == 404
    github.advance(minutes=61)
    assert converted(github, late).status_code == 404
