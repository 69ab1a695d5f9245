"""``bouncer serve`` where no GitHub App is known: set up in the browser, then at work without a restart."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from bot.simgithub import SimulatedGitHub
from tests.bot.pipeline.rig import free_port
from tests.bot.web.setup.conftest import form_of

REPOSITORY = "octo/demo"
SECONDS = 60.0


@pytest.fixture
def github() -> Iterator[SimulatedGitHub]:
    with SimulatedGitHub() as github:
        github.create_repository(REPOSITORY)
        yield github


class Serving:
    """``bouncer serve`` in a folder of its own."""

    def __init__(self, folder: Path, github: SimulatedGitHub, **more: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = folder / "log"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GITHUB_API_URL": github.api_url,
            "GITHUB_WEB_URL": github.web_url,
            "PORT": self.url.rpartition(":")[2],
            "BOUNCER_MODEL": "openai:gpt-5-mini",
            "OPENAI_API_KEY": "nobody-answers",
            "OPENAI_BASE_URL": "http://127.0.0.1:9",
            "BOUNCER_SANDBOX": "off",
            **more,
        }
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bot", "serve"],
                cwd=folder,
                env=environment | {"PYTHONPATH": str(Path(__file__).parents[3])},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def said(self, pattern: str) -> str:
        """The first match in what was printed, waited for."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if match := re.search(pattern, self.log.read_text()):
                return match[1]
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        raise AssertionError(f"{pattern!r} was not said: {self.log.read_text()}")

    def up(self) -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                if requests.get(f"{self.url}/healthz", timeout=5).ok:
                    return
            except requests.ConnectionError:
                time.sleep(0.1)
        raise AssertionError(self.log.read_text())


@pytest.fixture
def serving(tmp_path: Path, github: SimulatedGitHub) -> Iterator[Serving]:
    serving = Serving(tmp_path, github)
    yield serving
    serving.process.send_signal(signal.SIGTERM)
    serving.process.wait(40)


def test_set_up_in_the_browser_then_the_first_delivery_is_accepted(
    serving: Serving, github: SimulatedGitHub, tmp_path: Path
) -> None:
    link = serving.said(r"/setup\?link=(\S+)")
    serving.up()
    assert serving.log.read_text().count(f"/setup?link={link}") == 2, "it is printed again below the first lines"
    assert requests.post(f"{serving.url}/webhook", data="{}", timeout=5).status_code == 503
    browser = requests.Session()
    page = browser.post(f"{serving.url}/setup/begin", data={"link": link}, timeout=10).text
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token is not None
    choice = {
        "token": token[1],
        "owner": "user",
        "name": "bouncer",
        "web_url": github.web_url,
        "public_url": serving.url,
    }
    confirm = browser.post(f"{serving.url}/setup", data=choice, timeout=10).text
    action, manifest = form_of(confirm)
    done = browser.post(action, data={"manifest": manifest, "confirmed": "1"}, timeout=20)
    assert "Bouncer uses it already" in done.text
    [app] = github.world.apps.values()
    github.install(app, REPOSITORY)
    github.open_issue(REPOSITORY, "Reading fails")
    assert [delivery.status_code for delivery in app.deliveries] == [202, 202]
    serving.said(r"(worker_started)")
    log_text = serving.log.read_text()
    assert app.webhook_secret not in log_text
    assert app.private_key.splitlines()[3] not in log_text
    assert (tmp_path / "bouncer-data" / "credentials.json").stat().st_mode & 0o077 == 0


def test_set_up_is_reachable_before_a_model_is_named(github: SimulatedGitHub, tmp_path: Path) -> None:
    serving = Serving(tmp_path, github, BOUNCER_MODEL="")
    try:
        link = serving.said(r"/setup\?link=(\S+)")
        assert serving.said("(BOUNCER_MODEL is not set)")
        serving.up()
        page = requests.post(f"{serving.url}/setup/begin", data={"link": link}, timeout=10)
        assert page.ok
        assert 'name="token"' in page.text
        assert "worker_started" not in serving.log.read_text()
    finally:
        serving.process.send_signal(signal.SIGTERM)
        serving.process.wait(40)


def test_half_of_the_credentials_is_a_mistake_not_a_first_start(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot", "serve", "--github-app-id", "5", "--port", str(free_port())],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("bouncer: GITHUB_WEBHOOK_SECRET is not set")
    assert done.stderr.count("\n") == 1
