"""Answers that GitHub does not document become one of our errors, never a crash or an invented value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from bot.core.errors import ForgeError, NotFound, TransientError
from bot.core.subjects import Actor
from bot.github import http
from bot.github.archive import Archives
from bot.github.http import Client, Transport
from bot.github.identity import Identity
from bot.github.protocol import Reactions
from bot.github.reader import GitHubForge
from bot.github.writer import GitHubWriter
from tests.bot.github.test_replay import QUESTIONS

REPO = "/repos/octo/demo"


@pytest.fixture
def client(httpserver: HTTPServer) -> Iterator[Client]:
    with closing(Transport()) as transport:
        yield Client(Identity("secret"), httpserver.url_for(""), transport)


@pytest.fixture
def forge(client: Client, tmp_path: Path) -> GitHubForge:
    ours = Actor(id=1, login="bouncer[bot]", is_bot=True)
    return GitHubForge(client, "octo/demo", lambda ask: ours, Archives(tmp_path))


@pytest.fixture
def writer(client: Client) -> GitHubWriter:
    return GitHubWriter(client, client, "octo/demo")


#: A diff is text, and our account is not read from these answers.
ASKED = [name for name in QUESTIONS if name not in ("identity", "diff", "checkout", "sources")]

ODD: list[Any] = [None, [], {}, [None], [1], "text", 5, {"message": "hm"}, [{"x": 1}], {"data": None}]

#: Answers of calls for which an empty list or object is valid.
EMPTY: list[Any] = [(), "none", {}, Reactions()]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("question", ASKED)
def test_an_undocumented_answer_is_a_transient_error(
    httpserver: HTTPServer, forge: GitHubForge, question: str, odd: Any
) -> None:
    httpserver.expect_request(re.compile(".*")).respond_with_json(odd)
    with suppress(TransientError, NotFound):
        assert QUESTIONS[question](forge) in EMPTY


def test_a_new_comment_without_an_id_is_a_transient_error(httpserver: HTTPServer, writer: GitHubWriter) -> None:
    httpserver.expect_request(f"{REPO}/issues/1/comments").respond_with_json({}, status=201)
    with pytest.raises(TransientError):
        writer.create_comment(1, "hello")


def test_an_unfinished_answer_is_a_transient_error(httpserver: HTTPServer, forge: GitHubForge) -> None:
    httpserver.expect_request(REPO).respond_with_json({}, status=202)
    with pytest.raises(TransientError, match="still preparing"):
        forge.about()
    assert len(httpserver.log) == 1


def test_an_answer_over_its_deadline_is_abandoned(
    httpserver: HTTPServer, forge: GitHubForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "DEADLINE", -1.0)
    httpserver.expect_request(REPO).respond_with_json({"full_name": "octo/demo"})
    with pytest.raises(TransientError, match="took longer"):
        forge.about()


def test_an_endless_list_is_abandoned(
    httpserver: HTTPServer, forge: GitHubForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_PAGES", 3)
    place = f"{REPO}/issues/1/comments"
    link = f'<{httpserver.url_for(place)}?page=2>; rel="next"'
    httpserver.expect_request(place).respond_with_json([{"id": 1}], headers={"Link": link})
    with pytest.raises(ForgeError, match="more than 3 pages"):
        forge.comments(1)
    assert len(httpserver.log) == 3


def test_the_next_page_is_requested_from_our_own_host(httpserver: HTTPServer, forge: GitHubForge) -> None:
    place = f"{REPO}/issues/1/comments"
    link = f'<https://elsewhere.example.com{place}?page=2>; rel="next"'
    first = {"per_page": "100"}
    httpserver.expect_request(place, query_string=first).respond_with_json([{"id": 1}], headers={"Link": link})
    httpserver.expect_request(place, query_string={"page": "2"}).respond_with_json([{"id": 2}])
    assert [comment.id for comment in forge.comments(1)] == [1, 2]


def test_a_redirect_to_nowhere_is_refused(httpserver: HTTPServer, forge: GitHubForge) -> None:
    httpserver.expect_request(REPO).respond_with_data("", status=301, headers={"Location": ""})
    with pytest.raises(ForgeError, match="another repository"):
        forge.about()


def test_a_renamed_repository_is_followed_with_its_query(httpserver: HTTPServer, forge: GitHubForge) -> None:
    target = httpserver.url_for("/repositories/5/contents/a?ref=main")
    httpserver.expect_request(f"{REPO}/contents/a").respond_with_data("", status=301, headers={"Location": target})
    httpserver.expect_request("/repositories/5/contents/a", query_string={"ref": "main"}).respond_with_json(
        {"type": "file", "encoding": "base64", "content": "eA=="}
    )
    assert forge.file("a", "main") == b"x"


@pytest.mark.parametrize(("status", "follows"), [(301, True), (302, False), (307, True)])
def test_a_write_follows_a_redirect_only_if_it_was_not_applied(
    httpserver: HTTPServer, writer: GitHubWriter, status: int, follows: bool
) -> None:
    target = httpserver.url_for("/repositories/5/issues/1/comments")
    httpserver.expect_request(f"{REPO}/issues/1/comments").respond_with_data(
        "", status=status, headers={"Location": target}
    )
    bodies: list[bytes] = []

    def accept(request: Request) -> Response:
        bodies.append(request.get_data())
        return Response('{"id": 7}', 201)

    httpserver.expect_request("/repositories/5/issues/1/comments").respond_with_handler(accept)
    if follows:
        assert writer.create_comment(1, "hello") == 7
        assert bodies == [b'{"body": "hello"}']
    else:
        with pytest.raises(ForgeError, match="redirects a write"):
            writer.create_comment(1, "hello")


@pytest.mark.parametrize(
    ("errors", "error", "status"),
    [
        ([{"type": "NOT_FOUND", "message": "no"}], NotFound, None),
        ([{"extensions": {"code": "undefinedField"}, "message": "no"}], NotFound, None),
        ([{"type": "FORBIDDEN", "message": "no"}], ForgeError, 403),
        ([{"type": "RATE_LIMITED", "message": "no"}], TransientError, None),
        ([{"message": "something went wrong"}], TransientError, None),
        ("odd", TransientError, None),
    ],
)
def test_graphql_errors_count_although_the_status_is_200(
    httpserver: HTTPServer, forge: GitHubForge, errors: Any, error: type[Exception], status: int | None
) -> None:
    httpserver.expect_request("/graphql").respond_with_json({"data": None, "errors": errors})
    with pytest.raises(error) as caught:
        forge.linked_issues(1)
    assert type(caught.value) is error
    if isinstance(caught.value, TransientError):
        assert caught.value.wait == (60 if "RATE" in str(errors) else None)
    else:
        assert getattr(caught.value, "status", None) == status


def test_links_are_paged_and_hidden_ones_are_omitted(httpserver: HTTPServer, forge: GitHubForge) -> None:
    def answer(request: Request) -> Response:
        after = json.loads(request.get_data())["variables"]["after"]
        node = {"number": 2 if after else 1, "repository": {"nameWithOwner": "octo/demo"}}
        info = {"hasNextPage": not after, "endCursor": "next"}
        page = {"closingIssuesReferences": {"nodes": [node, None], "pageInfo": info}}
        return Response(json.dumps({"data": {"repository": {"pullRequest": page}}}))

    httpserver.expect_request("/graphql").respond_with_handler(answer)
    assert [link.number for link in forge.linked_issues(1)] == [1, 2]


def test_a_file_over_one_megabyte_is_read_by_its_hash(httpserver: HTTPServer, forge: GitHubForge) -> None:
    httpserver.expect_request(f"{REPO}/contents/large").respond_with_json(
        {"type": "file", "encoding": "none", "content": "", "sha": "abc"}
    )
    httpserver.expect_request(f"{REPO}/git/blobs/abc").respond_with_json(
        {"encoding": "base64", "content": "bGFyZ2U="}
    )
    assert forge.file("large", "main") == b"large"


@pytest.mark.parametrize(
    ("answer", "role"),
    [
        ({"permission": "write", "role_name": "maintain"}, "maintain"),
        ({"permission": "read", "role_name": "triage"}, "triage"),
        ({"permission": "write", "role_name": "release manager"}, "write"),
        (
            {
                "permission": "read",
                "role_name": "security triage",
                "user": {"permissions": {"pull": True, "triage": True, "push": False}},
            },
            "triage",
        ),
        ({"permission": "admin"}, "admin"),
        ({"permission": "odd", "role_name": "odder"}, "none"),
        ({}, "none"),
    ],
)
def test_a_custom_role_counts_as_its_strongest_standard_role(
    httpserver: HTTPServer, forge: GitHubForge, answer: dict[str, Any], role: str
) -> None:
    httpserver.expect_request(f"{REPO}/collaborators/alice/permission").respond_with_json(answer)
    assert forge.permission("alice") == role


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (429, {"Retry-After": "7"}, 7),
        (429, {"Retry-After": "999999"}, 3600),
        (429, {"Retry-After": "nan"}, 60),
        (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, 60),
        (429, {}, 60),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}, 1),
        (429, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999999999"}, 3600),
        (429, {"x-ratelimit-remaining": "5", "x-ratelimit-reset": "99999999999"}, 60),
        (403, {}, 60),  # read from its text
    ],
)
def test_the_requested_wait_is_limited(
    httpserver: HTTPServer, forge: GitHubForge, status: int, headers: dict[str, str], wait: float
) -> None:
    words = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    httpserver.expect_request(REPO).respond_with_json({"message": words}, status=status, headers=headers)
    with pytest.raises(TransientError) as caught:
        forge.about()
    assert caught.value.wait == wait


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_of_dots_is_not_found(forge: GitHubForge, name: str) -> None:
    assert forge.permission(name) == "none"
    with pytest.raises(NotFound):
        forge.head(name)


def test_untrusted_text_stays_one_segment_of_the_address(httpserver: HTTPServer, forge: GitHubForge) -> None:
    httpserver.expect_request(f"{REPO}/collaborators/a/../../../user?x=1#y/permission").respond_with_json(
        {"permission": "read"}
    )
    assert forge.permission("a/../../../user?x=1#y") == "read"
    assert (
        httpserver.log[0][0]
        .environ["RAW_URI"]
        .endswith("/collaborators/a%2F..%2F..%2F..%2Fuser%3Fx%3D1%23y/permission")
    )


@pytest.mark.parametrize("status", [400, 403, 404, 429, 500])
def test_a_token_that_a_gateway_repeats_is_removed_from_errors(
    httpserver: HTTPServer, forge: GitHubForge, status: int
) -> None:
    httpserver.expect_request(REPO).respond_with_json({"message": "denied: Bearer secret"}, status=status)
    with pytest.raises((ForgeError, TransientError)) as caught:
        forge.about()
    assert str(caught.value).endswith("denied: Bearer [token]")


def test_a_connection_error_shows_no_token_and_no_address(client: Client, httpserver: HTTPServer) -> None:
    httpserver.stop()
    with pytest.raises(TransientError) as caught:
        client.get("/repos/octo/demo")
    assert str(caught.value) == "GET /repos/octo/demo: no answer from GitHub (ConnectError)"
    httpserver.start()
