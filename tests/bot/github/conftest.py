"""One repository on the simulated GitHub, with the app installed on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from bot.core.actions import InlineComment
from bot.github.app import GitHubApp
from bot.github.reader import GitHubForge
from bot.github.writer import GitHubWriter
from bot.simgithub import App, InstallationState, SimulatedGitHub
from tests.conformance.checking import violations

NAME = "octo/demo"
FILES: dict[str, str | bytes | None] = {
    "README.md": "# demo\n",
    "src/table.py": "def read(path):\n    return open(path).read()\n",
    "logo.png": b"\x89PNG\0\x01",
    "latin.txt": b"caf\xe9\n",
}


@dataclass
class Site:
    """The simulated GitHub with the app installed on one repository."""

    github: SimulatedGitHub
    registered: App
    installation: InstallationState
    app: GitHubApp

    @property
    def forge(self) -> GitHubForge:
        return self.app.forge(self.installation.id, NAME)[0]

    @property
    def writer(self) -> GitHubWriter:
        return self.app.forge(self.installation.id, NAME)[1]


def minted(site: Site) -> int:
    """Count the tokens that the app got."""
    return sum("access_tokens" in request.path and request.status == 201 for request in site.github.requests)


@pytest.fixture
def site() -> Iterator[Site]:
    """A site for one test."""
    with open_site() as site:
        yield site


@contextmanager
def open_site() -> Iterator[Site]:
    """Check that GitHub's own description allows every request."""
    with SimulatedGitHub() as github:
        registered = github.create_app()
        github.create_repository(NAME, FILES)
        github.create_repository("octo/secret", private=True)
        installation = github.install(registered, NAME, "octo/secret")
        with GitHubApp(registered.id, registered.private_key, github.api_url) as app:
            yield Site(github, registered, installation, app)
        assert violations(github.requests) == []


@pytest.fixture(scope="session")
def private_key() -> str:
    """A key that belongs to no app of a site."""
    with SimulatedGitHub() as github:
        github.create_app()
        return github.create_app().private_key


@dataclass
class Scene:
    """Contents of the contract's repository, by the numbers and ids that GitHub gave."""

    site: Site
    issue: int
    comment: int
    pull: int
    large: int
    head: str
    finding: int


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """A site that the tests of a module only read."""
    with open_site() as site:
        yield set_up(site)


def set_up(site: Site) -> Scene:
    """Make everything that the contract reads."""
    github, writer = site.github, site.writer
    issue = github.open_issue(NAME, "Reading fails", "Nothing works.\r\nReally.", "alice", ["bug"])
    comment = github.comment(NAME, issue, "Which version?", "carol")
    github.react(NAME, comment, "+1", by="alice")
    github.react(NAME, comment, "-1", by="bob")
    github.react(NAME, comment, "heart", by="dave")
    for number in range(120):
        github.comment(NAME, issue, f"me too {number}", "bob")
    changed = {"src/table.py": "def read(path):\n    with open(path) as file:\n        return file.read()\n"}
    pull = github.open_pull(
        NAME, "Close the file", f"Fixes #{issue}", files=changed, fork=True, author="mallory", closes=[issue]
    )
    head = site.forge.pull_request(pull).head_sha
    review = InlineComment(path="src/table.py", line=2, body="Who closes it?")
    writer.create_review(pull, head, "", (review,))
    finding = site.forge.review_comments(pull)[0].id
    github.resolve(NAME, finding, by="mallory")
    many = {f"generated/{number:03}.txt": f"{number}\n" for number in range(310)}
    large = github.open_pull(NAME, "Generate", files=many, branch="generate", draft=True)
    github.grant(NAME, "carol", "triage")
    return Scene(site, issue, comment, pull, large, head, finding)


@pytest.fixture(scope="module")
def forge(scene: Scene) -> GitHubForge:
    """The reader of the scene's repository."""
    return scene.site.forge
