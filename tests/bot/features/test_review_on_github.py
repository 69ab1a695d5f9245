"""A review that stands on GitHub although the head moved before the rest was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.core import events
from bot.core.actions import Decision
from bot.core.config import RepoConfig
from bot.features.services import Services
from bot.github.app import GitHubApp
from bot.models.prompts import Prompts
from bot.models.protocol import Prompt
from bot.pipeline.publisher import Publisher
from bot.pipeline.store import Ledger, migrate, open_database
from bot.router import SLASH_COMMANDS, decide
from bot.simgithub import SimulatedGitHub
from tests.bot.features.conftest import NOON
from tests.bot.features.reviews import reply
from tests.builders import event, finding
from tests.scripted import ScriptedModel

NAME = "acme/rocket"
BASE = "def load(path):\n    with open(path) as file:\n        return parse(file)\n    raise Missing(path)\n"
BROKEN = BASE.replace("return parse(file)", "data = parse(file)\n        return data.value")
WORSE = "import os\n\n\n" + BROKEN.replace("    raise", "    cache[path] = data\n    raise")

FIRST = finding(line=None, suggestion="        return data.get('value')")
SECOND = finding(quote="cache[path] = data", comment="Grows without end.", category="memory", symbol="cache")


def careful(prompt: Prompt) -> dict[str, Any]:
    """Reports what is wrong with the change that it is shown, every time again."""
    findings = ((FIRST, "return data.value\n"), (SECOND, "cache[path] = data"))
    return reply(*(finding for finding, code in findings if code in prompt.user))


class Site:
    """One pull request, the app on it, and a memory: what happens is decided, recorded and published."""

    def __init__(self, github: SimulatedGitHub, app: GitHubApp, installation: int, ledger: Ledger) -> None:
        self.github, self.ledger = github, ledger
        self.model = ScriptedModel(careful)
        self.writer: Any
        self.forge, self.writer = app.forge(installation, NAME)
        self.publisher = Publisher(ledger.postings)
        self.number = github.open_pull(NAME, "Read values", files={"src/app.py": BROKEN})
        self.jobs = 0

    def push(self, content: str) -> None:
        self.github.push(NAME, self.number, {"src/app.py": content})

    def review(self) -> Decision:
        """Deal with the pull request as it stands, as the worker does."""
        services = Services(
            commands=SLASH_COMMANDS,
            prompts=Prompts(),
            forge=self.forge,
            model=self.model,
            config=RepoConfig(),
            clock=lambda: NOON,
            history=self.ledger.decisions,
            repository=self.forge.about(),
        )
        self.jobs += 1
        job = f"{self.jobs}:review"
        pushed = event(
            events.PullRequestSynchronized,
            self.forge.pull_request(self.number),
            repository=self.forge.about(),
        )
        (decision,) = self.ledger.decisions.record(job, decide(pushed, services, only="review"), "c")
        published = self.publisher.publish(decision, job, services, self.writer)
        self.ledger.decisions.settle(job, 0, published.outcome)
        return decision


class Hurried:
    """A writer that sees a push during each review."""

    def __init__(self, inner: Any, then: Callable[[], object]) -> None:
        self.inner, self._then = inner, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def create_review(self, *arguments: Any) -> int:
        id_: int = self.inner.create_review(*arguments)
        self._then()
        return id_


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    database = open_database(f"sqlite:///{tmp_path}/bouncer.db")
    migrate(database)
    with SimulatedGitHub() as github:
        registered = github.create_app(owner="acme")
        github.create_repository(NAME, {"src/app.py": BASE, "README.md": "# rocket\n"})
        installation = github.install(registered, NAME)
        with GitHubApp(registered.id, registered.private_key, github.api_url) as app:
            yield Site(github, app, installation.id, Ledger(database))
    database.close()


def test_posted_findings_are_not_posted_again_after_a_moved_head(site: Site) -> None:
    site.review()
    second = WORSE.replace("return data.value", "return data")
    site.push(second)
    site.writer = Hurried(site.writer, lambda: site.push("\n" + second))
    site.review()
    assert site.github.comments(NAME, site.number) == []
    assert len(site.github.review_comments(NAME, site.number)) == 2
    site.writer = site.writer.inner
    assert site.review().record.counts["posted"] == 0
    assert len(site.github.review_comments(NAME, site.number)) == 2
    (summary,) = site.github.comments(NAME, site.number)
    assert "No longer in the change:\n- `src/app.py`: Fails for an empty file" in summary
