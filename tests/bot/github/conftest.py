"""One repository on the simulated GitHub, and every implementation of a forge that reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.core.actions import InlineComment
from bot.core.errors import NotFound
from bot.github.app import GitHubApp
from bot.github.offline import ReplayForge, Snapshot
from bot.github.protocol import Forge
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
    check: int


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
    check = writer.create_check("bouncer / verify", head, "key", "neutral", "Not judged", "no issue", "")
    many = {f"generated/{number:03}.txt": f"{number}\n" for number in range(310)}
    large = github.open_pull(NAME, "Generate", files=many, branch="generate", draft=True)
    github.grant(NAME, "carol", "triage")
    return Scene(site, issue, comment, pull, large, head, finding, check)


def record_everything(scene: Scene, folder: Path) -> Snapshot:
    """Record the answers of a live forge to every call of the contract."""
    forge = scene.site.forge
    on_pulls = {"pull_requests": forge.pull_request, "diffs": forge.diff, "linked_issues": forge.linked_issues}
    names = ("README.md", "latin.txt", ".github/bouncer.yml", "src", "../../octo/secret/README.md")
    calls: list[tuple[str, Any, Callable[[Any], object]]] = [
        *(("issues", number, forge.issue) for number in (scene.issue, 999)),
        *(("comments", number, forge.comments) for number in (scene.issue, scene.pull)),
        *((field, number, ask) for number in (scene.pull, scene.large) for field, ask in on_pulls.items()),
        ("pull_requests", scene.issue, forge.pull_request),
        ("linked_issues", 999, forge.linked_issues),
        ("review_comments", scene.pull, forge.review_comments),
        ("reviews", scene.pull, forge.reviews),
        ("resolved_threads", scene.pull, forge.resolved_threads),
        ("check_runs", f"{scene.head}:bouncer / verify", lambda key: forge.check_runs(*key.split(":"))),
        ("check_runs", f"{scene.head}:another", lambda key: forge.check_runs(*key.split(":"))),
        ("pulls_for_commit", scene.head, forge.pulls_for_commit),
        *(("permissions", login, forge.permission) for login in ("octo", "carol", "mallory", "nobody-at-all")),
        ("reactions", f"issue:{scene.comment}", lambda key: forge.reactions(scene.comment)),
        ("reactions", f"review:{scene.finding}", lambda key: forge.reactions(scene.finding, review=True)),
        *(("heads", ref, forge.head) for ref in ("main", "gone")),
        *(("files", f"main:{name}", lambda key: forge.file(key.partition(":")[2], "main")) for name in names),
    ]
    answers: dict[str, dict[Any, object]] = defaultdict(dict)
    missing = []
    for field, key, ask in calls:
        try:
            answers[field][key] = ask(key)
        except NotFound:
            missing.append(f"{field} {key}")
    forge.checkout("main", folder)
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    single = {"about": forge.about(), "identity": forge.identity(), "checkouts": {"main": files}}
    return Snapshot(repository=NAME, missing=tuple(missing), **single, **answers)


@pytest.fixture(scope="module")
def snapshot(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The answers of a live forge to every call of the contract."""
    return record_everything(scene, tmp_path_factory.mktemp("recorded"))


@pytest.fixture(params=["github", "replay"])
def forge(request: pytest.FixtureRequest, scene: Scene, snapshot: Snapshot) -> Iterator[Forge]:
    """Every implementation of ``Forge``, for the same repository."""
    before = len(scene.site.github.requests)
    if request.param == "github":
        yield scene.site.forge
    else:
        yield ReplayForge(snapshot)
        assert len(scene.site.github.requests) == before
