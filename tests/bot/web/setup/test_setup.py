"""Set-up in the browser: from the link in the terminal to an app on GitHub, and all that can go wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import requests

from bot.core.errors import SettingsError
from bot.github.app import GitHubApp
from bot.github.registration import FILE, Credentials, stored
from bot.settings import Settings
from bot.web.app import Backend, create_app
from bot.web.setup import Guard, Setup, api_of, blueprint, choose, unreachable
from tests.bot.web.setup.conftest import LINK, Browser, Site, form_of

KNOWN = Settings(github_api_url="https://api.github.example", github_web_url="https://github.example")


def test_from_the_link_to_an_app_that_works(site: Site, browser: Browser) -> None:
    page = browser.choose(test_pulls="yes")
    assert "contents</td><td>write" in page.text
    back = browser.create(page).headers["Location"]
    done = browser.open(back)
    assert done.status_code == 200
    assert "bouncer (id " in done.text
    assert f"{site.github.web_url}/apps/bouncer/installations/new" in done.text
    credentials = stored(site.folder)
    assert credentials is not None
    [app] = site.github.world.apps.values()
    assert (credentials.app_id, credentials.webhook_secret) == (app.id, app.webhook_secret)
    assert app.webhook_url == f"{site.url}/webhook"
    assert app.permissions["contents"] == "write"
    with GitHubApp(credentials.app_id, credentials.private_key, credentials.api_url) as github:
        assert github.app().slug == "bouncer"


@pytest.mark.parametrize(("mode", "in_shadow"), [("shadow", True), ("live", False)])
def test_the_chosen_mode_applies_unless_the_environment_sets_one(
    site: Site, browser: Browser, mode: str, in_shadow: bool
) -> None:
    done = browser.open(browser.create(browser.choose(mode=mode)).headers["Location"])
    assert ("BOUNCER_MODE=live" in done.text) == in_shadow
    for next_step in ("Install it on your repositories", "bouncer doctor", "bouncer calibrate OWNER/REPO"):
        assert next_step in done.text
    settings = Settings(_env_file=None, bouncer_data_dir=site.folder)  # type: ignore[call-arg]
    assert settings.completed().in_shadow == in_shadow
    settings = settings.model_copy(update={"bouncer_mode": "live"})
    assert not settings.completed().in_shadow


def test_the_name_follows_from_the_owner(site: Site, browser: Browser) -> None:
    page = browser.choose(name="", owner="organization", organization="octo").text
    assert "<strong>bouncer-octo</strong>" in page


def test_change_keeps_the_form_as_it_was_filled(site: Site, browser: Browser) -> None:
    page = browser.choose(name="my-bouncer", mode="live", test_pulls="yes", change="yes").text
    assert 'value="my-bouncer"' in page
    assert re.search(r'id="mode-live"[^>]* checked', page)
    assert re.search(r'id="test_pulls"[^>]* checked', page)


def test_the_environment_wins_over_what_was_stored(site: Site, browser: Browser) -> None:
    browser.open(browser.create(browser.choose()).headers["Location"])
    settings = Settings(
        _env_file=None,  # type: ignore[call-arg]
        bouncer_data_dir=site.folder,
        github_app_id=5,
    )
    assert settings.completed() is settings


def test_the_key_can_go_to_the_terminal_instead(site: Site, browser: Browser) -> None:
    done = browser.open(browser.create(browser.choose(keep="terminal")).headers["Location"])
    assert "are shown in the terminal" in done.text
    [lines] = site.printed
    assert not site.folder.exists()
    names = [line.partition("=")[0] for line in lines.splitlines()]
    assert names == [
        "GITHUB_APP_ID",
        "GITHUB_WEBHOOK_SECRET",
        "GITHUB_API_URL",
        "GITHUB_WEB_URL",
        "GITHUB_APP_PRIVATE_KEY",
        "GITHUB_APP_CLIENT_ID",
        "GITHUB_APP_CLIENT_SECRET",
        "BOUNCER_MODE",
    ]
    # They work as a .env file.
    place = site.folder.parent / ".env"
    place.write_text(site.printed[0] + "\n")
    settings = Settings(_env_file=place)  # type: ignore[call-arg]
    key = settings.private_key()
    assert key is not None
    with GitHubApp(settings.github_app_id or 0, key, settings.github_api_url) as github:
        assert github.app().slug == "bouncer"


def test_no_page_shows_a_key_or_a_secret(site: Site, browser: Browser) -> None:
    pages = [browser.open("/setup").text, (confirm := browser.choose()).text]
    pages.append(browser.open(browser.create(confirm).headers["Location"]).text)
    pages.append(browser.open("/setup").text)
    [app] = site.github.world.apps.values()
    for page in pages:
        assert app.webhook_secret not in page
        assert app.client_secret not in page
        assert app.private_key.splitlines()[3] not in page
        assert LINK not in page


def test_a_webhook_proxy_takes_the_deliveries_in_development(site: Site, browser: Browser) -> None:
    page = browser.choose(webhook_url="https://smee.example.com/AbC123")
    _, manifest = form_of(page.text)
    assert json.loads(manifest)["hook_attributes"]["url"] == "https://smee.example.com/AbC123"
    assert json.loads(manifest)["redirect_url"] == f"{site.url}/setup/callback"


def test_an_address_that_github_can_hardly_reach_is_pointed_out() -> None:
    for private in ("http://localhost:8000", "http://127.0.0.1", "http://10.0.0.7/x", "http://bouncer"):
        assert unreachable(private)
    for public in ("https://bouncer.example.com", "https://140.82.112.3"):
        assert not unreachable(public)


# Who may


def test_the_link_works_once(site: Site, browser: Browser) -> None:
    other = Browser(site)
    for answer in (other.open(f"/setup?link={LINK}"), other.begin()):
        assert answer.status_code == 403
        assert "This link cannot be used" in answer.text
    assert other.open("/setup").status_code == 403
    assert browser.open(f"/setup?link={LINK}").status_code == 200
    assert browser.begin().status_code == 200


def test_the_link_leaves_the_address(site: Site) -> None:
    answer = requests.post(f"{site.url}/setup/begin", data={"link": LINK}, timeout=5, allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/setup")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert LINK not in cookie


def test_the_pages_carry_what_keeps_other_sites_away(site: Site, browser: Browser) -> None:
    page = browser.open("/setup")
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-store"
    confirm = browser.choose().headers["Content-Security-Policy"]
    assert f"form-action 'self' {site.github.web_url};" in confirm


def test_the_app_s_key_is_not_fetched_in_the_clear(site: Site, browser: Browser) -> None:
    page = browser.choose(web_url="http://github.example.com")
    assert page.status_code == 422
    assert "Use https://" in page.text


@pytest.mark.parametrize(
    ("trusted", "expected"), [(True, "https://bouncer.example.com"), (False, "http://localhost")]
)
def test_headers_of_a_proxy_count_only_if_the_operator_allows_it(
    site: Site, tmp_path: Path, trusted: bool, expected: str
) -> None:
    setup = Setup(Guard(LINK), KNOWN, site.keep)
    backend = Backend(f"sqlite:///{tmp_path / 'unused.db'}")
    settings = Settings(bouncer_trust_proxy=int(trusted))
    app = create_app(settings, backend, lambda: (), [lambda _: blueprint(setup)])
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "bouncer.example.com"}
    client = app.test_client()
    entered = client.post("/setup/begin", data={"link": LINK}, headers=forwarded)
    assert ("Secure" in entered.headers["Set-Cookie"]) is trusted
    assert f'value="{expected}"' in client.get("/setup", headers=forwarded).text


# What can go wrong between here and GitHub


def test_an_answer_of_github_counts_once(site: Site, browser: Browser) -> None:
    site.fails = True
    back = browser.create(browser.choose()).headers["Location"]
    failed = browser.open(back)
    assert failed.status_code == 500
    assert "could not be stored" in failed.text
    again = browser.open(back)
    assert again.status_code == 400
    assert "was used already" in again.text


def test_a_set_up_that_took_more_than_an_hour_starts_again(site: Site, browser: Browser) -> None:
    back = browser.create(browser.choose()).headers["Location"]
    site.clock.now += 3601
    answer = browser.open(back)
    assert answer.status_code == 400
    assert "More than an hour" in answer.text


def test_an_expired_code_is_explained(site: Site, browser: Browser) -> None:
    back = browser.create(browser.choose()).headers["Location"]
    site.github.advance(minutes=61)
    answer = browser.open(back)
    assert answer.status_code == 400
    assert "older than an hour" in answer.text
    assert "Start again" in answer.text


def test_a_refusal_on_github_is_explained(site: Site, browser: Browser) -> None:
    action, _ = form_of(browser.choose().text)
    state = action.partition("state=")[2]
    answer = browser.open(f"/setup/callback?error=access_denied&state={state}")
    assert answer.status_code == 400
    assert "GitHub did not create the app" in answer.text


def test_while_github_is_away_the_same_page_can_be_loaded_again(site: Site, browser: Browser) -> None:
    back = browser.create(browser.choose()).headers["Location"]
    site.github.fail("bad_gateway", path="conversions")
    answer = browser.open(back)
    assert answer.status_code == 502
    assert "Load this page again" in answer.text
    assert "bouncer (id " in browser.open(back).text


def test_once_done_there_is_nothing_left_to_do(site: Site, browser: Browser) -> None:
    browser.open(browser.create(browser.choose()).headers["Location"])
    for path in ("/setup", "/setup/callback?code=a&state=b"):
        answer = browser.open(path)
        assert answer.status_code == 410
        assert "Set-up is done" in answer.text


def test_github_sends_people_to_a_page_that_tells_nothing_of_this_server(site: Site) -> None:
    url = f"{site.url}/setup/installed?installation_id=5&setup_action=<script>"
    answer = requests.get(url, timeout=5)
    assert answer.status_code == 200
    assert "<script>" not in answer.text


# Rules

FORM = {"name": "bouncer", "web_url": "https://github.example", "public_url": "https://bouncer.example/"}


@pytest.mark.parametrize(
    ("web", "api"),
    [
        ("https://github.example", "https://api.github.example"),
        ("https://ghes.example", "https://ghes.example/api/v3"),
        ("https://ghes.example:8443", "https://ghes.example:8443/api/v3"),
        ("https://octocorp.ghe.com", "https://api.octocorp.ghe.com"),
    ],
)
def test_the_api_follows_from_the_address_that_people_know(web: str, api: str) -> None:
    assert api_of(web, KNOWN) == api


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 35}, "name"),
        ({"owner": "organization", "organization": ""}, "organization"),
        ({"web_url": "github.example"}, "web_url"),
        ({"public_url": "https://"}, "public_url"),
        ({"public_url": "https://host:port"}, "public_url"),
        ({"webhook_url": "smee"}, "webhook_url"),
    ],
)
def test_a_wrong_field_is_named(changed: dict[str, str], field: str) -> None:
    choice, wrong = choose({**FORM, **changed}, KNOWN)
    assert choice is None
    assert set(wrong) == {field}


def test_a_damaged_credentials_file_is_named_and_not_shown(site: Site) -> None:
    site.folder.mkdir()
    (site.folder / FILE).write_text('{"private_key": "-----BEGIN')
    with pytest.raises(SettingsError, match="damaged; delete it and set up again") as caught:
        stored(site.folder)
    assert "BEGIN" not in str(caught.value)


def test_credentials_show_no_secret_in_a_trace() -> None:
    value = Credentials(
        app_id=1, slug="b", private_key="KEY", webhook_secret="HOOK", api_url="https://a", web_url="https://b"
    )
    assert "KEY" not in repr(value)
    assert "HOOK" not in repr(value)
