"""The first minutes of three people, as the documentation tells them: steps, program time and words to read.

    python -m tests.bench people [--issues 500]

A maintainer judges a backlog from a fresh clone, an operator sets the App up, a contributor answers a question.
GitHub is simulated and the model's replies are scripted, so a real model's time is not in it. A step is a command
or a click. Reading counts 238 words a minute (Brysbaert 2019, silent reading of English non-fiction), and a step
15 s of the person's own time, which is an assumption.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import requests

from bot.simgithub import SimulatedGitHub
from tests.bot.pipeline.rig import ROOT, free_port, wait
from tests.bot.web.setup.conftest import form_of
from tests.e2e.provider import Provider, provider
from tests.e2e.site import Browser, site

WORDS_A_MINUTE = 238
STEP_SECONDS = 15
HOME = "octo/demo"


class Walk:
    """The words that one person reads, their steps, and how long the program took for each."""

    def __init__(self, person: str) -> None:
        self.person = person
        self.steps: list[tuple[str, float]] = []
        self.words = 0

    def read(self, text: str) -> None:
        self.words += len(text.split())

    def step(self, name: str, seconds: float) -> None:
        """Note a step of the person, and how long the program took."""
        self.steps.append((name, seconds))

    def show(self) -> None:
        waiting, reading = sum(seconds for _, seconds in self.steps), 60 * self.words / WORDS_A_MINUTE
        total = waiting + reading + STEP_SECONDS * len(self.steps)
        print(f"\n{self.person}: {len(self.steps)} steps, {self.words} words, {total / 60:.1f} minutes")
        print(f"  program {waiting:.0f} s, reading {reading:.0f} s, own steps {STEP_SECONDS * len(self.steps)} s")
        for name, seconds in self.steps:
            print(f"  {seconds:6.1f} s  {name}")


class Clock:
    """The seconds since it was last read."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self) -> float:
        last, self._last = self._last, time.monotonic()
        return self._last - last


def section(page: str, start: str, end: str) -> str:
    """Return a page from one heading to another."""
    text = (ROOT / page).read_text()
    return text[text.index(start) : text.index(end)]


def run(command: list[str], folder: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "BOUNCER_"))}
    return subprocess.run(
        command, cwd=folder, env=inherited | environment, check=True, capture_output=True, text=True
    ).stdout


def maintainer(folder: Path, github: SimulatedGitHub, model: Provider, issues: int) -> Walk:
    """README, "500 issues and 20 minutes"."""
    path = Walk("maintainer, from a fresh clone to the page of a backlog")
    path.read(section("README.md", "## 500 issues and 20 minutes", "## Install it"))
    github.create_repository(HOME)
    for number in range(issues):
        github.open_issue(HOME, f"Reading file {number} fails", "It does not work any more.")
    clock = Clock()
    run(["git", "clone", "-q", str(ROOT), "bouncer"], folder)
    path.step("clone", clock())
    checkout = folder / "bouncer"
    run([sys.executable, "-m", "venv", ".venv"], checkout)
    run([".venv/bin/pip", "install", "-q", "."], checkout)
    path.step("install", clock())
    path.step("name a model and its key", 0)
    variables = {"GITHUB_API_URL": github.api_url, "GITHUB_WEB_URL": github.web_url, **model.environment}
    command = [".venv/bin/bouncer", "backlog", HOME, "--limit", str(issues), "--yes", "--out", "page.html"]
    printed = run(command, checkout, **variables)
    path.step(f"bouncer backlog: {printed.splitlines()[0]}", clock())
    path.step("open the page", 0)
    return path


def operator(folder: Path, github: SimulatedGitHub, model: Provider) -> Walk:
    """docs/install.md, "From a checkout", without the proxy; the first shadow decision is the end."""
    path = Walk("operator, from an installed program to the first decision on the dashboard")
    path.read(section("docs/install.md", "## From a checkout", "## With Docker\n"))
    clock, password = Clock(), "correct horse battery"
    path.step("write the variables into .env", 0)
    url, log = f"http://127.0.0.1:{free_port()}", folder / "log"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "GITHUB_API_URL": github.api_url,
        "GITHUB_WEB_URL": github.web_url,
        "PORT": url.rpartition(":")[2],
        "BOUNCER_SANDBOX": "off",
        "BOUNCER_ADMIN_PASSWORD": password,
        **model.environment,
    }
    command = [sys.executable, "-m", "bot", "serve"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        wait(lambda: "/setup?link=" in log.read_text(), 60, "a link in the terminal")
        wait(lambda: up(url), 60, "the server answers")
        path.step("bouncer serve", clock())
        browser = requests.Session()
        link = log.read_text().partition("/setup?link=")[2].split()[0]
        page = browser.post(f"{url}/setup/begin", data={"link": link}, timeout=10).text
        path.read(re.sub(r"<[^>]*>", " ", page))
        path.step("open the link", clock())
        app = set_up(path, clock, browser, page, url, github)
        github.install(app, HOME)
        path.step("install it on a repository", clock())
        number = github.open_issue(HOME, "Writing fails", "It does not work any more.")
        dashboard = Browser(url, password)
        wait(lambda: f"{HOME}#{number}" in dashboard.get("/decisions"), 60, "the first decision")
        path.step("log in, and see the first decision", clock())
    finally:
        process.terminate()
        process.wait(40)
    return path


def up(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=5).ok
    except requests.ConnectionError:
        return False


def set_up(
    path: Walk, clock: Clock, browser: requests.Session, page: str, url: str, github: SimulatedGitHub
) -> Any:
    """Walk the pages of set-up, and return the App that GitHub created."""
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token is not None
    choice = {"token": token[1], "owner": "user", "name": "bouncer", "mode": "shadow"}
    addresses = {"web_url": github.web_url, "public_url": url}
    confirm = browser.post(f"{url}/setup", data=choice | addresses, timeout=10).text
    path.read(re.sub(r"<[^>]*>", " ", confirm))
    path.step("choose the account and shadow mode", clock())
    action, manifest = form_of(confirm)
    done = browser.post(action, data={"manifest": manifest, "confirmed": "1"}, timeout=20)
    path.read(re.sub(r"<[^>]*>", " ", done.text))
    path.step("create the App on GitHub", clock())
    [app] = github.world.apps.values()
    return app


def contributor(folder: Path) -> Walk:
    """A reporter who is asked a question, follows "what this bot does", and answers."""
    path = Walk("contributor, from a vague issue to a cleared one")
    with site(folder) as shop:
        home, clock = shop.repository("acme/first-issue"), Clock()
        number = shop.github.open_issue(home, "It breaks", "It does not work any more.", author="carl")
        wait(lambda: shop.comments_on(home, number), 60, "the question")
        path.step("open an issue, and get a question", clock())
        path.read(shop.comments_on(home, number)[0])
        path.read((ROOT / "docs/got-a-comment.md").read_text())
        path.step('read "what this bot does"', 0)
        clock()
        shop.github.comment(home, number, "With version 4.2 `load` fails on an empty file.", "carl")
        wait(lambda: "needs-info" not in shop.github.labels(home, number), 120, "the issue is cleared")
        path.step("answer in a comment, and the label goes", clock())
        path.read(shop.comments_on(home, number)[0])
    return path


def main() -> None:
    """Walk the three paths and print them."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench people")
    parser.add_argument("--issues", type=int, default=500)
    options = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name, provider() as model:
        folder = Path(name)
        folders = [folder / person for person in ("maintainer", "operator", "contributor")]
        for item in folders:
            item.mkdir()
        with SimulatedGitHub() as github:
            maintainer(folders[0], github, model, options.issues).show()
            operator(folders[1], github, model).show()
        contributor(folders[2]).show()


if __name__ == "__main__":
    main()
