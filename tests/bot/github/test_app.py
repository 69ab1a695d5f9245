"""The app: permissions of its tokens, its forges, and failed deliveries."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from pytest_httpserver import HTTPServer

from bot.core.errors import ForgeError, NotFound, NotInstalled, SettingsError, TransientError
from bot.github.app import WRITE, GitHubApp
from bot.github.archive import Archives
from bot.github.http import Client, Transport
from bot.github.identity import InstallationIdentity, load_key
from bot.github.reader import GitHubForge
from bot.github.registration import manifest
from bot.simgithub import SimulatedGitHub
from tests.bot.github.conftest import NAME, Site, minted


def test_tokens_have_the_permissions_of_their_use_in_one_repository(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    sha = site.forge.head("main")
    site.writer.create_comment(number, "hello")
    site.writer.create_branch("draft", sha)
    bodies = [request.body for request in site.github.requests if request.path.endswith("access_tokens")]
    assert [body["repositories"] for body in bodies] == [["demo"]] * 3
    assert [body["permissions"] for body in bodies] == [
        {"contents": "read", "issues": "read", "pull_requests": "read", "checks": "read"},
        {"contents": "read", "issues": "write", "pull_requests": "write", "checks": "write"},
        {"contents": "write", "pull_requests": "write"},
    ]


def test_a_wrong_clock_is_corrected_by_githubs(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    key, address = site.registered.private_key, site.github.api_url
    for ahead in (-7200, -400, 120, 7200):
        before = len(site.github.requests)
        with GitHubApp(site.registered.id, key, address, clock=lambda ahead=ahead: time.time() + ahead) as app:
            forge, _ = app.forge(site.installation.id, NAME)
            assert [forge.issue(number).number for _ in range(3)] == [number] * 3
        refused = [request for request in site.github.requests[before:] if request.status == 401]
        assert len(refused) == 1, "GitHub refuses the first signature alone"


@pytest.mark.parametrize("api", ["rest", "graphql"])
def test_a_permission_that_is_granted_later_works_at_once(site: Site, api: str) -> None:
    now, number = [1_000_000.0], site.github.open_pull(NAME, "Read", files={"a.py": "a = 1\n"})
    site.installation.permissions = {"metadata": "read", "contents": "read", "issues": "write"}
    mint = partial(site.app._mint, site.installation.id, NAME, WRITE)
    identity = InstallationIdentity(site.installation.id, "key", mint, clock=lambda: now[0])
    with closing(Transport()) as transport, closing(Archives()) as archives:
        client = Client(identity, site.github.api_url, transport)
        forge = GitHubForge(client, NAME, site.app._identity, archives)
        read = partial(forge.pull_request if api == "rest" else forge.linked_issues, number)
        for mints, seconds in ((1, 5), (1, 5), (2, 5)):
            with pytest.raises(ForgeError, match="Resource not accessible by integration"):
                read()
            # A permission that stays away costs no token for each request.
            assert minted(site) == mints
            now[0] += seconds
        site.installation.permissions = site.registered.permissions
        now[0] += 5
        read()
        assert minted(site) == 3


@pytest.mark.parametrize(("valid_for", "used_for"), [(3600, 3300), (-3600, 60)])
def test_a_token_is_replaced_before_it_expires_and_used_for_a_minute(valid_for: int, used_for: int) -> None:
    """If our clock is far ahead, every token looks expired."""
    now, numbers = 1_000_000.0, count()

    def mint() -> tuple[str, datetime]:
        return f"token {next(numbers)}", datetime.fromtimestamp(now + valid_for, UTC)

    identity = InstallationIdentity(1, "key", mint, clock=lambda: now)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: identity.token, range(64))) == {"token 0"}
    now += used_for - 1
    assert identity.token == "token 0"
    now += 1
    assert identity.token == "token 1"


def test_a_permission_that_was_never_granted_does_not_stop_the_others() -> None:
    with SimulatedGitHub() as github:
        registered = github.create_app(permissions={"issues": "write", "contents": "read"})
        github.create_repository(NAME)
        installation = github.install(registered, NAME)
        number = github.open_issue(NAME, "Reading fails")
        with GitHubApp(registered.id, registered.private_key, github.api_url) as app:
            forge, writer = app.forge(installation.id, NAME)
            assert forge.issue(number).number == number
            writer.create_comment(number, "hello")
        assert github.comments(NAME, number) == ["hello"]


@pytest.mark.parametrize("removal", ["repository", "installation"])
def test_a_repository_that_the_app_was_removed_from_is_named_as_such(site: Site, removal: str) -> None:
    if removal == "repository":
        site.installation.repositories.clear()
    else:
        site.github.world.installations.clear()
    for read in (lambda: site.forge.issue(1), lambda: site.forge.permission("mia")):
        with pytest.raises(NotInstalled):
            read()


def test_the_app_reads_its_permissions_events_and_webhook(site: Site) -> None:
    app = site.app.app()
    assert (app.slug, app.id) == ("bouncer", site.registered.id)
    assert manifest().gaps(app.permissions, app.events) == ()
    assert site.app.webhook_url() == ""


def test_an_installation_is_found_by_its_repository(site: Site) -> None:
    installation = site.app.installation_for("octo", "demo")
    assert (installation.id, installation.account, installation.suspended) == (site.installation.id, "octo", False)
    assert site.app.installations() == (installation,)
    with pytest.raises(NotFound):
        site.app.installation_for("octo", "elsewhere")


def test_a_key_of_another_app_is_named_by_github_and_tried_again_later(site: Site, private_key: str) -> None:
    with (
        GitHubApp(site.registered.id, private_key, site.github.api_url) as app,
        pytest.raises(TransientError, match="JSON web token could not be decoded"),
    ):
        app.app()


# Deliveries


def test_a_delivery_that_never_succeeded_is_listed_and_redelivered(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/webhook").respond_with_data(status=500)
    with SimulatedGitHub() as github:
        registered = github.create_app(webhook_url=httpserver.url_for("/webhook"))
        github.create_repository(NAME)
        github.install(registered, NAME)
        yesterday = datetime.now(UTC) - timedelta(days=1)
        with GitHubApp(registered.id, registered.private_key, github.api_url) as app:
            for number in range(60):
                github.open_issue(NAME, f"Issue {number}")
            failed = app.failed_deliveries(yesterday)
            assert [delivery.event for delivery in failed] == ["installation"] + ["issues"] * 60
            assert failed[0].delivered_at <= failed[-1].delivered_at
            httpserver.clear_all_handlers()
            httpserver.expect_request("/webhook").respond_with_data(status=202)
            app.redeliver(failed[-1].id)
            github.settle()
            remaining = app.failed_deliveries(yesterday)
            assert [delivery.guid for delivery in remaining] == [delivery.guid for delivery in failed[:-1]]
            assert app.failed_deliveries(datetime.now(UTC) + timedelta(hours=1)) == ()


# Settings


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, password: bytes | None = None) -> str:
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        protection = serialization.BestAvailableEncryption(password)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection).decode()


def parsed(text: str) -> rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(text.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def test_a_key_may_stand_on_one_line_or_in_quotes(private_key: str) -> None:
    numbers = parsed(private_key).private_numbers()
    one_line = private_key.replace("\n", "\\n")
    for form in (one_line, f'"{one_line}"', private_key.replace("\n", "\r\n"), f"  {private_key}  "):
        assert load_key(form).private_numbers() == numbers
    assert load_key(pem(parsed(private_key))).private_numbers() == numbers


def test_a_wrong_key_is_explained_in_one_line_that_shows_none_of_it(private_key: str) -> None:
    key = parsed(private_key)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    middle = private_key.splitlines()[5]
    for text, reason in [
        ("", "the private key is empty"),
        ("secret", "not a PEM private key"),
        (public.decode(), "this is a public key"),
        (private_key.replace(middle, ""), "damaged or cut off"),
        (pem(key, b"password"), "protected by a password"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "GitHub Apps use RSA keys"),
    ]:
        with pytest.raises(SettingsError) as caught:
            load_key(text, "key.pem")
        message = str(caught.value)
        assert message.startswith("key.pem: ")
        assert reason in message
        assert "\n" not in message
        assert middle not in message


@pytest.mark.parametrize("url", ["github.example.com", "ftp://x", "https://", "https://me:pw@host/api/v3", ""])
def test_an_invalid_address_is_named_in_the_error(url: str, private_key: str) -> None:
    with pytest.raises(SettingsError, match="GITHUB_API_URL"):
        GitHubApp(1, private_key, url)


def test_an_empty_app_id_is_named_in_the_error(private_key: str) -> None:
    with pytest.raises(SettingsError, match="GITHUB_APP_ID"):
        GitHubApp(" ", private_key)


def test_the_public_github_and_an_enterprise_server_are_reached_alike(site: Site) -> None:
    pull = site.github.open_pull(NAME, "Change", files={"a": "b"}, closes=[1])
    for prefix in ("", "/api/v3", "/api/v3/"):
        with GitHubApp(site.registered.id, site.registered.private_key, site.github.web_url + prefix) as app:
            forge, _ = app.forge(site.installation.id, NAME)
            assert forge.pull_request(pull).number == pull
            assert [issue.number for issue in forge.linked_issues(pull)] == [1]
