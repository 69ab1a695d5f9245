"""``bouncer.yml`` is kept until its branch is pushed to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.core.events import BranchPushed
from bot.core.model import Actor
from bot.jobs.configurations import FRESH_SECONDS, Configurations
from bot.jobs.inbox import Inbox
from bot.store import Database, migrate, open_database
from tests.bot.forge.conftest import NAME, Site, site

__all__ = ["site"]
PATH = ".github/bouncer.yml"


class Kept:
    """What a worker keeps, and what it asked for."""

    def __init__(self, site: Site, database: Database) -> None:
        self.site = site
        self.now = 1000.0
        self.configurations = Configurations(database, lambda: self.now)
        self.acceptor = Inbox(database)

    def label(self) -> str:
        forge = self.site.forge
        repository = self.site.github.world.repositories[NAME]
        about = {"id": repository.id, "owner": "octo", "name": "demo", "default_branch": "main"}
        config, _ = self.configurations.of(1, forge.about().model_copy(update=about), forge)
        return config.triage.label

    def asked(self) -> list[int]:
        return [each.status for each in self.site.github.requests if each.path.endswith(PATH)]

    def pushed(self, delivery: str, repository: str = NAME) -> None:
        about = self.site.app.forge(self.site.installation.id, repository)[0].about()
        self.acceptor.accept(delivery, BranchPushed(sender=Actor(id=1, login="octo"), repository=about))


@pytest.fixture
def kept(site: Site, tmp_path: Path) -> Iterator[Kept]:
    database = open_database(f"sqlite:///{tmp_path}/kept.db")
    migrate(database)
    kept = Kept(site, database)
    yield kept
    kept.acceptor.close()
    database.close()


def test_it_is_read_once_however_many_jobs_there_are(kept: Kept) -> None:
    kept.site.github.commit(NAME, {PATH: "triage:\n  label: unclear\n"})
    assert [kept.label() for _ in range(5)] == ["unclear"] * 5
    assert kept.asked() == [200]


def test_that_there_is_none_is_kept_as_well(kept: Kept) -> None:
    assert [kept.label() for _ in range(5)] == ["needs-info"] * 5
    assert kept.asked() == [404]


def test_after_a_push_to_its_branch_it_is_looked_at_and_unchanged_costs_nothing(kept: Kept) -> None:
    kept.site.github.commit(NAME, {PATH: "triage:\n  label: unclear\n"})
    assert kept.label() == "unclear"
    kept.pushed("d-1")
    assert kept.label() == kept.label() == "unclear"
    kept.site.github.commit(NAME, {PATH: "triage:\n  label: vague\n"})
    kept.pushed("d-2")
    assert kept.label() == kept.label() == "vague"
    assert kept.asked() == [200, 304, 200]


def test_a_push_elsewhere_is_no_cause_to_look(kept: Kept) -> None:
    kept.label()
    kept.pushed("d-1", "octo/secret")
    kept.label()
    assert kept.asked() == [404]


def test_an_app_that_hears_of_no_pushes_notices_a_change_some_minutes_later(kept: Kept) -> None:
    kept.label()
    kept.site.github.commit(NAME, {PATH: "triage:\n  label: unclear\n"})
    assert kept.label() == "needs-info"
    kept.now += FRESH_SECONDS
    assert kept.label() == "unclear"
