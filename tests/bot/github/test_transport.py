"""All installations share one HTTP client, and nothing of one account is sent with another one's requests."""

from __future__ import annotations

import gc
import ssl
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from types import FunctionType, ModuleType

import httpx2
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from bot.core.http_client import HttpClient
from bot.github.http import Client, Transport
from bot.github.identity import Identity
from bot.models import anthropic, openai
from bot.models.remote import CappedClient
from tests.bot.github.conftest import Site


def reachable(roots: Sequence[object]) -> list[object]:
    """Return all objects that these refer to, directly or not, without modules and classes."""
    parts: dict[int, object] = {}
    waiting = list(roots)
    while waiting:
        part = waiting.pop()
        if id(part) in parts or isinstance(part, type | ModuleType):
            continue
        parts[id(part)] = part
        waiting += (part.__closure__ or ()) if isinstance(part, FunctionType) else gc.get_referents(part)
    return list(parts.values())


def test_installations_share_one_client_and_one_tls_context(site: Site) -> None:
    first = site.app.forge(site.installation.id, "octo/demo")[0].about()
    clients: list[object] = [site.app]
    for index in range(3):
        name = f"owner-{index}/project"
        site.github.create_repository(name)
        number = site.github.open_issue(name, "Reading fails")
        forge, writer = site.app.forge(site.github.install(site.registered, name).id, name)
        assert forge.about().full_name == name != first.full_name
        writer.create_comment(number, "Which version?")
        clients += [forge, writer]
    parts = reachable(clients)
    for kind in (httpx2.Client, ssl.SSLContext):
        assert sum(isinstance(part, kind) for part in parts) == 1


def test_clients_of_models_share_the_tls_context(httpserver: HTTPServer) -> None:
    connections = [
        connect(f"model-{index}", "sk-secret", httpserver.url_for(""))
        for connect in (openai.connect, anthropic.connect)
        for index in range(3)
    ]
    assert len(connections) == 6
    assert sum(isinstance(part, ssl.SSLContext) for part in reachable(connections)) == 1


def of_github(url: str) -> Generator[Callable[[str], object]]:
    with closing(Transport()) as transport:
        yield lambda token: Client(Identity(token), url, transport).get("/user")


def of_a_model(url: str) -> Generator[Callable[[str], object]]:
    with CappedClient() as client:
        yield lambda token: client.post(f"{url}/user", headers={"Authorization": token})


@pytest.mark.parametrize("connect", [of_github, of_a_model])
def test_a_cookie_of_one_account_is_not_sent_with_another(
    httpserver: HTTPServer, connect: Callable[[str], Generator[Callable[[str], object]]]
) -> None:
    answer = Response('{"login": "alice"}', headers={"Set-Cookie": "session=of-alice; Path=/"})
    httpserver.expect_request("/user").respond_with_response(answer)
    ask = next(asks := connect(httpserver.url_for("").rstrip("/")))
    ask("token-of-alice")
    ask("token-of-bob")
    asks.close()
    assert len(httpserver.log) == 2
    assert all("Cookie" not in request.headers for request, _ in httpserver.log)


def test_no_client_follows_a_redirect_with_its_key(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/there").respond_with_data("{}")
    httpserver.expect_request("/here").respond_with_data("", 307, {"Location": httpserver.url_for("/there")})
    with HttpClient(5.0) as plain, CappedClient() as capped:
        for client in (plain, capped):
            assert client.post(httpserver.url_for("/here"), headers={"x-api-key": "sk-secret"}).status_code == 307
    assert [request.path for request, _ in httpserver.log] == ["/here", "/here"]
