"""Log-in with GitHub for several operators, over HTTP, as a browser does it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from bot.github.oauth import GitHubLogin, Visitor
from bot.settings import Settings
from bot.simgithub import SimulatedGitHub
from bot.simgithub.simulation import PERMISSIONS
from bot.web.app import Backend
from bot.web.dashboard import Admins
from tests.bot.web.dashboard.conftest import dashboard
from tests.bot.web.dashboard.test_access import guess_often
from tests.serving import served


@dataclass
class Desk:
    """A dashboard that knows a GitHub, and a browser."""

    github: SimulatedGitHub
    url: str
    browser: requests.Session = field(default_factory=requests.Session)

    def get(self, path: str) -> requests.Response:
        return self.browser.get(path if path.startswith("http") else self.url + path, timeout=10)

    def authorize(self, login: str, path: str = "/login/github") -> str:
        """Confirm on GitHub as an account, and return the address that GitHub redirects to."""
        self.github.sign_in(login)
        at_github = self.get(path)
        assert "Authorize bouncer" in at_github.text
        return self.browser.post(at_github.url, timeout=10, allow_redirects=False).headers["Location"]


@pytest.fixture
def desk(backend: Backend) -> Iterator[Desk]:
    with SimulatedGitHub() as github:
        registered = github.create_app(owner="acme", permissions={**PERMISSIONS, "members": "read"})
        login = GitHubLogin(registered.client_id, registered.client_secret, github.web_url, github.api_url)
        with served(dashboard(backend, github=login, bouncer_admins="ann,org:acme")) as url:
            registered.callback_urls = (f"{url}/login/github/callback",)
            yield Desk(github, url)


def test_a_named_account_comes_in_and_what_it_does_carries_its_name(desk: Desk, backend: Backend) -> None:
    assert desk.get("/jobs").url.endswith("/login?next=/jobs")
    page = desk.get(desk.authorize("ann", "/login/github?next=/jobs"))
    assert (page.status_code, page.url) == (200, f"{desk.url}/jobs")
    token = re.search(r'name="token" value="([^"]+)"', page.text)
    assert token
    desk.browser.post(f"{desk.url}/pause", data={"token": token[1], "repository": ""}, timeout=10)
    assert backend.ledger.installations.pauses()[""].by == "ann"
    assert "Log out ann" in desk.get("/").text


def test_members_of_a_named_organization_come_in_and_others_do_not(desk: Desk) -> None:
    desk.github.join("acme", "mia")
    desk.github.join("acme", "invited", "pending")
    for login in ("stranger", "invited"):
        refused = desk.get(desk.authorize(login))
        assert refused.status_code == 403
        assert re.search(rf"{login} \(id \d+\) may not open this dashboard", refused.text)
        assert desk.get("/").url.endswith("/login?next=/")
    assert desk.get(desk.authorize("mia")).url == f"{desk.url}/"


def give_away(desk: Desk, login: str) -> None:
    """The account is deleted, or renamed, and another person takes its name."""
    with desk.github.world.lock:
        user = desk.github.world.user(login)
        user.id += 1_000_000


@pytest.mark.parametrize(("login", "admins"), [("ann", "ann"), ("mia", "acme")])
def test_a_name_that_github_gave_out_again_is_refused(desk: Desk, login: str, admins: str) -> None:
    desk.github.join("acme", "mia")
    assert desk.get(desk.authorize(login)).status_code == 200
    give_away(desk, admins)
    stranger = Desk(desk.github, desk.url)
    refused = stranger.get(stranger.authorize(login))
    assert refused.status_code == 403
    assert "belonged to another account" in refused.text


def test_an_account_that_was_renamed_still_comes_in(desk: Desk) -> None:
    assert desk.get(desk.authorize("ann")).status_code == 200
    with desk.github.world.lock:
        ann, anna = desk.github.world.user("ann"), desk.github.world.user("anna")
        ann.id, anna.id = anna.id, ann.id
    later = Desk(desk.github, desk.url)
    assert later.get(later.authorize("anna")).status_code == 200


def test_an_id_names_an_account_and_is_no_login(backend: Backend) -> None:
    admins = Admins.parse(Settings(bouncer_admins="583231, Ann, org:Acme").bouncer_admins)
    logins = backend.ledger.logins
    assert admins.admit(Visitor(id=583231, login="octocat", organizations={}), logins)
    assert not admins.admit(Visitor(id=7, login="583231", organizations={}), logins)


def test_an_answer_that_another_browser_asked_for_is_refused(desk: Desk) -> None:
    answer = desk.authorize("ann")
    victim = Desk(desk.github, desk.url)
    victim.get("/login")
    assert victim.get(answer).status_code == 403
    assert victim.get(answer.replace("state=", "state=x")).status_code == 403
    assert victim.get("/").url.endswith("/login?next=/")


def test_a_code_works_once_and_only_in_the_browser_that_asked(desk: Desk) -> None:
    answer = urlsplit(desk.authorize("ann"))
    code = parse_qs(answer.query)["code"][0]
    thief = Desk(desk.github, desk.url)
    own = parse_qs(urlsplit(thief.authorize("stranger")).query)["state"][0]
    stolen = thief.get(f"/login/github/callback?code={code}&state={own}")
    assert stolen.status_code == 403
    assert "bad_verification_code" in stolen.text
    again = desk.get(answer.geturl())
    assert again.status_code == 403


def test_the_way_back_never_leaves_the_site(desk: Desk) -> None:
    page = desk.get(desk.authorize("ann", "/login/github?next=https://evil.example/"))
    assert page.url == f"{desk.url}/"


def test_a_missing_permission_is_named(desk: Desk) -> None:
    desk.github.join("acme", "mia")
    next(iter(desk.github.world.apps.values())).permissions = PERMISSIONS
    refused = desk.get(desk.authorize("mia"))
    assert refused.status_code == 403
    assert "Members (read)" in refused.text


def test_repeated_codes_have_to_wait_and_github_is_not_asked(desk: Desk, backend: Backend) -> None:
    guess_often(backend)
    refused = desk.get(desk.authorize("ann"))
    assert (refused.status_code, desk.github.world.user_tokens) == (429, {})


def test_an_unreachable_github_is_reported(desk: Desk) -> None:
    answer = desk.authorize("ann")
    desk.github.fail("reset", path="/user")
    away = desk.get(answer)
    assert away.status_code == 502
    assert "did not answer" in away.text


def test_no_token_is_stored(desk: Desk, backend: Backend) -> None:
    desk.get(desk.authorize("ann"))
    (token,) = desk.github.world.user_tokens
    connection = backend.ledger.database.engine.raw_connection()
    assert not any(token in line for line in connection.driver_connection.iterdump())  # type: ignore[union-attr]
    connection.close()
