"""``bouncer.yml`` is kept until its branch is pushed to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from pytest_httpserver import HTTPServer

from bot.core.config import RepoConfig
from bot.core.errors import ForgeError
from bot.core.events import BranchPushed
from bot.core.subjects import Actor, Repository
from bot.github.http import Client, Transport
from bot.github.identity import Identity
from bot.pipeline.inbox import Inbox
from bot.pipeline.queue import Queue
from bot.pipeline.readings import FRESH_SECONDS, Configurations, configuration
from bot.pipeline.store import Database
from tests.bot.github.conftest import NAME, Site, site

__all__ = ["site"]
PATH = ".github/bouncer.yml"
SHARED = "octo/.github"


class Kept:
    """A worker's configurations, and the requests that it made for them."""

    def __init__(self, site: Site, database: Database) -> None:
        self.site = site
        self.now = 1000.0
        self.configurations = Configurations(database, lambda: self.now)
        self.queue = Queue(database)
        self.inbox = Inbox(database, self.queue)

    def config(self, branch: str = "main") -> RepoConfig:
        forge = self.site.forge
        repository = self.site.github.world.repositories[NAME]
        about = {"id": repository.id, "owner": "octo", "name": "demo", "default_branch": branch}
        return self.configurations.of(1, forge.about().model_copy(update=about), forge)[0]

    def label(self) -> str:
        return self.config().triage.label

    def reads_of_configuration(self, repository: str = NAME) -> list[int]:
        path = f"/repos/{repository}/contents/{PATH}"
        return [request.status for request in self.site.github.requests if request.path == path]

    def pushed(self, delivery: str, repository: str = NAME) -> None:
        owner, _, name = repository.partition("/")
        about = Repository(id=1, owner=owner, name=name)
        self.inbox.accept(delivery, BranchPushed(sender=Actor(id=1, login="octo"), repository=about))


@pytest.fixture
def worker(site: Site, sqlite: Database) -> Iterator[Kept]:
    worker = Kept(site, sqlite)
    yield worker
    worker.queue.close()


def test_it_is_read_once_however_many_jobs_there_are(worker: Kept) -> None:
    assert [worker.label() for _ in range(5)] == ["needs-info"] * 5
    assert worker.reads_of_configuration() == [404], "that there is none is kept as well"
    worker.site.github.commit(NAME, {PATH: "triage:\n  label: unclear\n"})
    worker.pushed("d-1")
    assert [worker.label() for _ in range(5)] == ["unclear"] * 5
    assert worker.reads_of_configuration() == [404, 200]


@pytest.mark.parametrize("home", [NAME, SHARED])
def test_a_push_to_its_branch_makes_a_conditional_read(worker: Kept, home: str) -> None:
    github = worker.site.github
    if home == SHARED:
        github.create_repository(SHARED)
        github.install(worker.site.registered, SHARED)
    github.commit(home, {PATH: "triage:\n  label: unclear\n"})
    assert worker.label() == "unclear"
    worker.pushed("d-1", home)
    assert worker.label() == worker.label() == "unclear"
    github.commit(home, {PATH: "triage:\n  label: vague\n"})
    worker.pushed("d-2", home)
    assert worker.label() == worker.label() == "vague"
    assert worker.reads_of_configuration(home) == [200, 304, 200]
    if home == SHARED:
        assert worker.reads_of_configuration() == [404]


def test_a_push_elsewhere_is_no_cause_to_look(worker: Kept) -> None:
    worker.label()
    worker.pushed("d-1", "octo/secret")
    worker.label()
    assert worker.reads_of_configuration() == [404]


def test_an_app_without_push_events_notices_a_change_some_minutes_later(worker: Kept) -> None:
    worker.label()
    worker.site.github.commit(NAME, {PATH: "triage:\n  label: unclear\n"})
    assert worker.label() == "needs-info"
    worker.now += FRESH_SECONDS
    assert worker.label() == "unclear"


def test_the_owners_file_is_the_default_of_every_repository(worker: Kept) -> None:
    worker.site.github.create_repository(SHARED, {PATH: "triage:\n  label: unclear\n  authors: all\n"})
    worker.site.github.commit(NAME, {PATH: "triage:\n  authors: external\n"})
    assert [worker.label() for _ in range(5)] == ["unclear"] * 5
    assert worker.config().triage.authors == "external"
    worker.site.github.commit(NAME, {PATH: "triage:\n  label: needs-info\n"})
    worker.pushed("d-1")
    assert worker.label() == "needs-info", "what a repository says counts, be it the default"
    assert (worker.reads_of_configuration(), worker.reads_of_configuration(SHARED)) == ([200, 200], [200])


@pytest.mark.parametrize(
    ("text", "modes"),
    [("not: [yaml", ("shadow", "off")), ("gate:\n  mode: shadwo\n", ("shadow", "comment"))],
)
def test_a_mistake_overrides_the_owner_s_modes(worker: Kept, text: str, modes: tuple[str, str]) -> None:
    shared = "gate:\n  mode: draft\nreproduce:\n  mode: comment\n"
    worker.site.github.create_repository(SHARED, {PATH: shared})
    worker.site.github.commit(NAME, {PATH: text})
    config = worker.config()
    assert (config.gate.mode, config.reproduce.mode) == modes


def test_an_event_from_before_the_default_branch_was_renamed_finds_it(worker: Kept) -> None:
    worker.site.github.commit(NAME, {PATH: "triage:\n  mode: shadow\n"})
    assert worker.config(branch="master").triage.mode == "shadow"


def test_a_private_repository_of_the_owner_s_is_nobody_s_default(worker: Kept) -> None:
    worker.site.github.create_repository(SHARED, {PATH: "triage:\n  label: unclear\n"}, private=True)
    assert worker.label() == "needs-info"


def test_an_owner_s_file_is_not_read_through_a_redirect(worker: Kept) -> None:
    """GitHub redirects from a renamed or transferred repository; its new owner decides nothing here."""
    github = worker.site.github
    github.create_repository("evil/.github", {PATH: "triage:\n  label: evil\n"})
    location = f"{github.api_url}/repos/evil/.github/contents/{PATH}"
    github.fail("redirect", "GET", f"/repos/{SHARED}/contents", location=location, times=9)
    assert worker.label() == "needs-info"
    paths = [request.path for request in github.requests]
    assert any(path.startswith(f"/repos/{SHARED}/contents") for path in paths)
    assert not any("evil" in path for path in paths)


def test_a_repository_s_own_file_is_read_through_a_redirect_to_itself_only(worker: Kept) -> None:
    github = worker.site.github
    repository = worker.site.forge.about()
    for place in ("/repos/evil/demo/contents/x", f"/repositories/{repository.id}0/contents/x"):
        github.fail("redirect", "GET", f"/repos/{NAME}/contents", location=f"{github.api_url}{place}")
        with pytest.raises(ForgeError, match="another repository"):
            configuration(worker.site.forge, repository)


def test_a_redirect_is_followed_below_the_path_that_may_be_read(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/repos/octo/demo/x").respond_with_data(
        status=301, headers={"Location": httpserver.url_for("/repositories/7/x")}
    )
    httpserver.expect_request("/repositories/7/x").respond_with_json({"id": 1})
    with closing(Transport()) as transport:
        client = Client(Identity(), httpserver.url_for(""), transport)
        assert client.value("/repos/octo/demo/x", redirects="/repositories/7/") == {"id": 1}
        for redirects in ("", "/repositories/70/"):
            with pytest.raises(ForgeError, match="another repository"):
                client.value("/repos/octo/demo/x", redirects=redirects)
