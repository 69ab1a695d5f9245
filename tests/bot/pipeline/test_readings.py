"""``bouncer.yml`` is kept until its branch is pushed to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from bot.core.config import RepoConfig
from bot.core.errors import ForgeError
from bot.core.events import BranchPushed
from bot.core.subjects import Actor, Repository
from bot.github.http import Client, Holder, Transport
from bot.pipeline.inbox import Inbox
from bot.pipeline.queue import Queue
from bot.pipeline.readings import FRESH_SECONDS, Configurations, configuration
from bot.pipeline.store import Database, migrate, open_database
from tests.bot.github.conftest import NAME, Site, site

__all__ = ["site"]
PATH = ".github/bouncer.yml"
SHARED = "octo/.github"


class Kept:
    """What a worker keeps, and what it asked for."""

    def __init__(self, site: Site, database: Database) -> None:
        self.site = site
        self.now = 1000.0
        self.configurations = Configurations(database, lambda: self.now)
        self.queue = Queue(database)
        self.inbox = Inbox(database, self.queue)

    def config(self) -> RepoConfig:
        forge = self.site.forge
        repository = self.site.github.world.repositories[NAME]
        about = {"id": repository.id, "owner": "octo", "name": "demo", "default_branch": "main"}
        return self.configurations.of(1, forge.about().model_copy(update=about), forge)[0]

    def label(self) -> str:
        return self.config().triage.label

    def asked(self, repository: str = NAME) -> list[int]:
        path = f"/repos/{repository}/contents/{PATH}"
        return [request.status for request in self.site.github.requests if request.path == path]

    def pushed(self, delivery: str, repository: str = NAME) -> None:
        owner, _, name = repository.partition("/")
        about = Repository(id=1, owner=owner, name=name)
        self.inbox.accept(delivery, BranchPushed(sender=Actor(id=1, login="octo"), repository=about))


@pytest.fixture
def kept(site: Site, tmp_path: Path) -> Iterator[Kept]:
    database = open_database(f"sqlite:///{tmp_path}/kept.db")
    migrate(database)
    kept = Kept(site, database)
    yield kept
    kept.queue.close()
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


def test_the_owner_s_file_holds_for_every_repository_that_says_nothing_else(kept: Kept) -> None:
    kept.site.github.create_repository(SHARED, {PATH: "triage:\n  label: unclear\n  authors: all\n"})
    kept.site.github.commit(NAME, {PATH: "triage:\n  authors: external\n"})
    assert [kept.label() for _ in range(5)] == ["unclear"] * 5
    assert kept.config().triage.authors == "external"
    kept.site.github.commit(NAME, {PATH: "triage:\n  label: needs-info\n"})
    kept.pushed("d-1")
    assert kept.label() == "needs-info", "what a repository says counts, be it the default"
    assert (kept.asked(), kept.asked(SHARED)) == ([200, 200], [200])


def test_a_push_to_the_owner_s_file_counts_everywhere_and_unchanged_costs_nothing(kept: Kept) -> None:
    kept.site.github.create_repository(SHARED, {PATH: "triage:\n  label: unclear\n"})
    kept.site.github.install(kept.site.registered, SHARED)
    assert kept.label() == "unclear"
    kept.pushed("d-1", SHARED)
    assert kept.label() == kept.label() == "unclear"
    kept.site.github.commit(SHARED, {PATH: "triage:\n  label: vague\n"})
    kept.pushed("d-2", SHARED)
    assert kept.label() == kept.label() == "vague"
    assert (kept.asked(), kept.asked(SHARED)) == ([404], [200, 304, 200])


def test_a_private_repository_of_the_owner_s_is_nobody_s_default(kept: Kept) -> None:
    kept.site.github.create_repository(SHARED, {PATH: "triage:\n  label: unclear\n"}, private=True)
    assert kept.label() == "needs-info"


def test_an_owner_s_file_is_not_read_through_a_redirect(kept: Kept) -> None:
    """GitHub redirects from a renamed or transferred repository; its new owner decides nothing here."""
    github = kept.site.github
    github.create_repository("evil/.github", {PATH: "triage:\n  label: evil\n"})
    location = f"{github.api_url}/repos/evil/.github/contents/{PATH}"
    github.fail("redirect", "GET", f"/repos/{SHARED}/contents", location=location, times=9)
    assert kept.label() == "needs-info"
    asked = [request.path for request in github.requests]
    assert any(path.startswith(f"/repos/{SHARED}/contents") for path in asked)
    assert not any("evil" in path for path in asked)


def test_a_repository_s_own_file_is_read_through_a_redirect_to_itself_only(kept: Kept) -> None:
    github = kept.site.github
    repository = kept.site.forge.about()
    for place in ("/repos/evil/demo/contents/x", f"/repositories/{repository.id}0/contents/x"):
        github.fail("redirect", "GET", f"/repos/{NAME}/contents", location=f"{github.api_url}{place}")
        with pytest.raises(ForgeError, match="another repository"):
            configuration(kept.site.forge, repository)


def test_a_redirect_is_followed_below_the_path_that_may_be_read(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/repos/octo/demo/x").respond_with_data(
        status=301, headers={"Location": httpserver.url_for("/repositories/7/x")}
    )
    httpserver.expect_request("/repositories/7/x").respond_with_json({"id": 1})
    with closing(Transport()) as transport:
        client = Client(Holder(), httpserver.url_for(""), transport)
        assert client.value("/repos/octo/demo/x", redirects="/repositories/7/") == {"id": 1}
        for redirects in ("", "/repositories/70/"):
            with pytest.raises(ForgeError, match="another repository"):
                client.value("/repos/octo/demo/x", redirects=redirects)
