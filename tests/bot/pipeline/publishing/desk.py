"""A publisher with one repository on the simulated GitHub; what is sent is held against GitHub's own API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.core.actions import Action, Decision, Task
from bot.core.config import RepoConfig
from bot.core.subjects import Subject
from bot.features.services import NoHistory, Services
from bot.github.app import GitHubApp
from bot.github.reader import GitHubForge
from bot.github.writer import GitHubWriter
from bot.models.prompts import Prompts
from bot.pipeline.publisher import Published, Publisher
from bot.pipeline.store import Database, Ledger, open_database
from bot.router import SLASH_COMMANDS
from bot.simgithub import SimulatedGitHub
from tests.conformance.checking import violations
from tests.databases import migrated_sqlite
from tests.scripted import ScriptedModel

NAME = "octo/demo"
SECRET = "hunter2-hunter2"


@dataclass
class Desk:
    """Everything that a test needs to publish and to check the result."""

    github: SimulatedGitHub
    ledger: Ledger
    publisher: Publisher
    services: Services
    writer: GitHubWriter
    forge: GitHubForge

    def publish(
        self, *actions: Action, number: int, revision: str = "", kind: Task = "triage", job: str = "d:triage"
    ) -> Published:
        if not revision and kind == "triage":
            revision = self.forge.issue(number).revision
        if not revision and kind in ("review", "verify"):
            revision = self.forge.pull_request(number).revision
        subject = Subject(repository=NAME, number=number, revision=revision)
        decision = Decision(kind=kind, subject=subject, verdict="VAGUE", actions=actions)
        return self.publisher.publish(decision, job, self.services, self.writer)

    def forgetful(self, folder: Path) -> Desk:
        """The same with an empty register, as after a crash between a write and its record."""
        url = migrated_sqlite(folder / f"forgot-{len(list(folder.iterdir()))}.db")
        ledger = Ledger(open_database(url))
        return replace(self, ledger=ledger, publisher=Publisher(ledger.postings, [SECRET]))

    def written(self) -> list[tuple[str, str]]:
        """Method and path of every write so far."""
        return [
            (request.method, request.path)
            for request in self.github.requests
            if request.method != "GET" and not request.path.startswith(("/app", "/graphql"))
        ]


@contextmanager
def make_desk(database: Database) -> Iterator[Desk]:
    """A publisher, a repository, and the app installed on it."""
    ledger = Ledger(database)
    with SimulatedGitHub() as github:
        registered = github.create_app()
        github.create_repository(NAME, {"README.md": "# demo\n", "table.py": "def read():\n    return 1\n"})
        installation = github.install(registered, NAME)
        with GitHubApp(registered.id, registered.private_key, github.api_url) as app:
            forge, writer = app.forge(installation.id, NAME)
            services = Services(
                commands=SLASH_COMMANDS,
                prompts=Prompts(),
                forge=forge,
                model=ScriptedModel(),
                config=RepoConfig.model_validate({"reproduce": {"mode": "pull"}}),
                clock=lambda: datetime(2026, 11, 1, tzinfo=UTC),
                history=NoHistory(),
                repository=forge.about(),
            )
            publisher = Publisher(ledger.postings, [SECRET])
            yield Desk(github, ledger, publisher, services, writer, forge)
        assert violations(github.requests) == []
