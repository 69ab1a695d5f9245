"""A server without credentials, and the simulated GitHub that it is set up with."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests
from flask import Flask

from bot.core.errors import SettingsError
from bot.github.registration import Credentials, store
from bot.settings import Settings
from bot.simgithub import SimulatedGitHub
from bot.web import public
from bot.web.setup import Choice, Guard, Setup, blueprint
from tests.bot.pipeline.conftest import Clock
from tests.serving import served

LINK = "one-time-link"


@dataclass
class Site:
    """The server under test, and what it kept."""

    github: SimulatedGitHub
    url: str
    guard: Guard
    clock: Clock
    folder: Path
    printed: list[str] = field(default_factory=list)
    fails: bool = False

    def keep(self, credentials: Credentials, choice: Choice) -> None:
        if self.fails:
            raise SettingsError("BOUNCER_DATA_DIR: cannot write")
        credentials = credentials.model_copy(update={"mode": choice.mode})
        if choice.keep == "terminal":
            self.printed.append(credentials.environment())
        else:
            store(self.folder, credentials)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    clock = Clock()
    with SimulatedGitHub() as github:
        github.create_repository("octo/demo")
        app = Flask("bot.web")
        with served(app) as url:
            site = Site(github, url, Guard(LINK, clock), clock, tmp_path / "data")
            settings = Settings(github_api_url=github.api_url, github_web_url=github.web_url)
            app.register_blueprint(blueprint(Setup(site.guard, settings, site.keep)))
            app.register_blueprint(public.blueprint())
            yield site


class Browser:
    """A browser without scripts: forms and cookies."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.session = requests.Session()

    def open(self, path: str) -> requests.Response:
        url = path if path.startswith("http") else self._site.url + path
        return self.session.get(url, timeout=10)

    def begin(self, link: str = LINK) -> requests.Response:
        """Press the button behind the link."""
        return self.session.post(f"{self._site.url}/setup/begin", data={"link": link}, timeout=10)

    def choose(self, **fields: str) -> requests.Response:
        """Fill the first page in and press Continue."""
        page = self.open("/setup").text
        token = re.search(r'name="token" value="([^"]+)"', page)
        assert token is not None, page
        values = {
            "token": token[1],
            "owner": "user",
            "name": "bouncer",
            "web_url": self._site.github.web_url,
            "public_url": self._site.url,
            "keep": "file",
            **fields,
        }
        return self.session.post(f"{self._site.url}/setup", data=values, timeout=10)

    def create(self, page: requests.Response) -> requests.Response:
        """Go to GitHub with the manifest, confirm there, and stop before coming back."""
        action, manifest = form_of(page.text)
        fields = {"manifest": manifest, "confirmed": "1", "name": "bouncer"}
        answer = self.session.post(action, data=fields, timeout=10, allow_redirects=False)
        assert answer.status_code == 302, answer.text
        return answer


def form_of(page: str) -> tuple[str, str]:
    """Return the target of the confirming form, and the manifest in it."""
    action = re.search(r'<form method="post" action="([^"]+)"', page)
    manifest = re.search(r'name="manifest" value="([^"]+)"', page)
    assert action is not None, page
    assert manifest is not None
    return html.unescape(action[1]), html.unescape(manifest[1])


@pytest.fixture
def browser(site: Site) -> Browser:
    """A browser that opened the link."""
    browser = Browser(site)
    assert "Begin" in browser.open(f"/setup?link={LINK}").text
    assert browser.begin().status_code == 200
    return browser
