"""Faults of GitHub and of the connection to it: transient errors with their wait, or final ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.errors import ForgeError, NotFound, TransientError
from bot.github.app import GitHubApp
from bot.github.http import Exchange
from bot.simgithub.faults import Kind
from tests.bot.github.conftest import NAME, Site, minted

TOKENS = "access_tokens"


def test_a_refused_token_is_replaced_once_and_the_request_succeeds(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    site.forge.issue(number)
    for token in site.github.world.tokens.values():
        token.revoked = True
    assert site.forge.issue(number).title == "Reading fails"
    assert site.writer.create_comment(number, "hello") > 0
    assert site.github.comments(NAME, number) == ["hello"]
    assert minted(site) == 3


def test_credentials_refused_twice_are_a_transient_error(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    site.github.fail("unauthorized", path="/issues/", times=10)
    with pytest.raises(TransientError, match="401: Bad credentials"):
        site.forge.issue(number)
    assert [request.status for request in site.github.requests if "/issues/" in request.path] == [401, 401]
    assert minted(site) == 2


def test_a_rate_limit_states_the_wait_that_github_asks_for(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    kinds: list[tuple[Kind, float, float]] = [
        ("rate_limited", 40, 43),
        ("secondary_limit", 42, 42),
        ("too_many", 42, 42),
    ]
    for kind, least, most in kinds:
        for ask in (lambda: site.forge.issue(number), lambda: site.writer.create_comment(number, "hello")):
            site.github.fail(kind, path="/issues/", wait=42)
            with pytest.raises(TransientError) as caught:
                ask()
            assert caught.value.wait is not None
            assert least <= caught.value.wait <= most
    assert site.github.comments(NAME, number) == []


@pytest.mark.parametrize("kind", ["server_error", "bad_gateway", "reset", "html", "malformed"])
def test_a_fault_of_github_is_transient_and_not_retried_here(site: Site, kind: Kind) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    for ask in (lambda: site.forge.issue(number), lambda: site.writer.create_comment(number, "hello")):
        before = len(site.github.requests)
        site.github.fail(kind, path="/issues/")
        with pytest.raises(TransientError) as caught:
            ask()
        assert caught.value.wait is None
        assert "<html>" not in str(caught.value)
        requests = [request for request in site.github.requests[before:] if TOKENS not in request.path]
        assert len(requests) == (0 if kind == "reset" else 1)
    assert site.forge.issue(number).title == "Reading fails"
    assert site.github.comments(NAME, number) == []


def test_a_lost_answer_to_a_write_is_an_error_without_a_second_comment(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    site.github.fail("lost", "POST", "/comments")
    with pytest.raises(TransientError, match="no answer from GitHub"):
        site.writer.create_comment(number, "hello")
    assert site.github.comments(NAME, number) == ["hello"]


@pytest.mark.parametrize("kind", ["server_error", "reset", "too_many", "malformed"])
def test_a_fault_during_minting_is_transient(site: Site, kind: Kind) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    site.github.fail(kind, path=TOKENS)
    with pytest.raises(TransientError):
        site.forge.issue(number)
    assert site.forge.issue(number).title == "Reading fails"


def test_a_fault_on_a_later_page_gives_no_shorter_list(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    for count in range(150):
        site.github.comment(NAME, number, f"{count}")
    site.github.fail("server_error", path="/comments$", after=1)
    with pytest.raises(TransientError):
        site.forge.comments(number)
    assert len(site.forge.comments(number)) == 150


def test_a_forbidden_request_is_a_final_error(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    site.github.fail("forbidden", path="/issues/")
    with pytest.raises(ForgeError) as caught:
        site.writer.create_comment(number, "hello")
    assert (type(caught.value), caught.value.status) == (ForgeError, 403)
    assert "Resource not accessible by integration" in str(caught.value)


def test_a_validation_error_quotes_github(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    with pytest.raises(ForgeError, match=r"422: .*body is too long \(maximum is 65536 characters\)"):
        site.writer.create_comment(number, "x" * 65_537)
    with pytest.raises(NotFound):
        site.writer.create_comment(999, "hello")


def test_a_huge_answer_is_refused(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    site.github.fail("huge", path="/issues/")
    with pytest.raises(ForgeError, match="larger than 32 MB"):
        site.forge.issue(number)


def test_credentials_never_follow_a_redirect_to_another_host(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    elsewhere = site.github.web_url.replace("127.0.0.1", "localhost")
    site.github.fail("redirect", path="/issues/", location=f"{elsewhere}/api/v3/steal")
    before = len(site.github.requests)
    with pytest.raises(ForgeError, match="another host; credentials are not sent there"):
        site.forge.issue(number)
    assert not [request for request in site.github.requests[before:] if "steal" in request.path]


def test_a_redirect_loop_is_refused(site: Site) -> None:
    number = site.github.open_issue(NAME, "Reading fails")
    place = f"{site.github.api_url}/repos/{NAME}/issues/{number}"
    site.github.fail("redirect", path=f"/issues/{number}$", location=place, times=50)
    with pytest.raises(ForgeError, match="in a circle"):
        site.forge.issue(number)


def test_a_broken_archive_download_is_transient(site: Site, tmp_path: Path) -> None:
    for path in ("tarball", "_codeload"):
        site.github.fail("server_error", path=path)
        with pytest.raises(TransientError):
            site.forge.checkout("main", tmp_path)
    site.github.fail("reset", path="_codeload")
    with pytest.raises(TransientError, match="the archive's download broke"):
        site.forge.checkout("main", tmp_path)


def test_every_request_is_observed_with_the_remaining_quota(site: Site) -> None:
    exchanges: list[Exchange] = []
    number = site.github.open_issue(NAME, "Reading fails")
    with GitHubApp(
        site.registered.id, site.registered.private_key, site.github.api_url, observe=exchanges.append
    ) as app:
        forge, _ = app.forge(site.installation.id, NAME)
        site.github.fail("reset", path="/issues/")
        with pytest.raises(TransientError):
            forge.issue(number)
        forge.issue(number)
    assert [(call.installation, call.method, call.status) for call in exchanges] == [
        (None, "POST", 201),
        (site.installation.id, "GET", 0),
        (site.installation.id, "GET", 200),
    ]
    assert exchanges[-1].remaining is not None
    assert 0 < exchanges[-1].remaining < 5000
