"""Failed deliveries are repeated, and run once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select

from bot.core.errors import TransientError
from bot.github.app import GitHubApp, HookDelivery
from bot.pipeline.store import Database
from bot.pipeline.store.tables import DELIVERIES
from bot.pipeline.worker import Reconciler, is_due
from bot.settings import Settings
from bot.simgithub import App, SimulatedGitHub
from bot.web.app import Backend, create_app
from tests.bot.pipeline.rig import free_port
from tests.serving import served

NAME = "octo/demo"
SECRET = "signs what is delivered"


class Receiver:
    """Our own web server, which can be away."""

    def __init__(self, database_url: str) -> None:
        self.backend = Backend(database_url)
        self.port = free_port()
        self._app = create_app(Settings(), self.backend, lambda: (SECRET,))
        self._serving = ExitStack()

    def start(self) -> None:
        self._serving.enter_context(served(self._app, self.port))

    def stop(self) -> None:
        self._serving.close()


@pytest.fixture
def database(sqlite: Database) -> Database:
    return sqlite


@pytest.fixture
def receiver(database: Database) -> Iterator[Receiver]:
    receiver = Receiver(database.url)
    yield receiver
    receiver.stop()
    receiver.backend.close()


@pytest.fixture
def github() -> Iterator[SimulatedGitHub]:
    with SimulatedGitHub() as github:
        github.create_repository(NAME)
        yield github


@pytest.fixture
def registered(github: SimulatedGitHub, receiver: Receiver) -> App:
    url = f"http://127.0.0.1:{receiver.port}/webhook"
    return github.create_app(webhook_url=url, webhook_secret=SECRET)


@pytest.fixture
def app(github: SimulatedGitHub, registered: App) -> Iterator[GitHubApp]:
    with GitHubApp(registered.id, registered.private_key, github.api_url) as app:
        yield app


def kinds(database: Database) -> list[str]:
    """Return the stored deliveries in order."""
    with database.read() as connection:
        return list(connection.execute(select(DELIVERIES.c.kind).order_by(DELIVERIES.c.seq)).scalars())


def attempts(registered: App) -> list[int]:
    return [delivery.status_code for delivery in registered.deliveries]


def test_missed_deliveries_arrive_at_the_next_round_and_once(
    github: SimulatedGitHub, registered: App, app: GitHubApp, receiver: Receiver, database: Database
) -> None:
    github.install(registered, NAME)
    github.open_issue(NAME, "Reading fails")
    assert attempts(registered) == [502, 502]
    receiver.start()
    reconciler = Reconciler(app, database)
    assert reconciler.round() == 2
    github.settle()
    assert kinds(database) == ["installation_changed", "issue_opened"]
    assert reconciler.round() == 0
    github.settle()
    assert attempts(registered) == [502, 502, 202, 202]


def test_what_was_recorded_but_answered_too_late_is_not_delivered_again(
    github: SimulatedGitHub, registered: App, app: GitHubApp, receiver: Receiver, database: Database
) -> None:
    receiver.start()
    github.install(registered, NAME)
    github.open_issue(NAME, "Reading fails")
    for delivery in registered.deliveries:
        delivery.status_code = 504
    assert Reconciler(app, database).round() == 0
    assert kinds(database) == ["installation_changed", "issue_opened"]


def test_what_nobody_wanted_to_hear_of_is_not_delivered_forever(
    github: SimulatedGitHub, registered: App, app: GitHubApp, receiver: Receiver, database: Database
) -> None:
    """An ignored event leaves no record here; GitHub knows that its second attempt went well."""
    github.install(registered, NAME)
    number = github.open_issue(NAME, "Reading fails")
    receiver.start()
    reconciler = Reconciler(app, database)
    reconciler.round()
    github.settle()
    receiver.stop()
    github.edit(NAME, number)
    receiver.start()
    assert reconciler.round() == 1
    github.settle()
    assert attempts(registered)[-2:] == [502, 204]
    assert reconciler.round() == 0


def test_after_a_restore_only_deliveries_that_were_stored_are_requested(
    github: SimulatedGitHub, registered: App, app: GitHubApp, receiver: Receiver, database: Database
) -> None:
    receiver.start()
    github.install(registered, NAME)
    github.edit(NAME, github.open_issue(NAME, "Reading fails"))
    github.settle()
    assert attempts(registered) == [202, 202, 204]
    database.execute(delete(DELIVERIES))
    reconciler, yesterday = Reconciler(app, database), datetime.now(UTC) - timedelta(days=1)
    assert [reconciler.ask_again(yesterday), github.settle(), reconciler.ask_again(yesterday)] == [2, None, 0]


def test_only_one_of_several_workers_does_the_rounds(
    github: SimulatedGitHub, registered: App, app: GitHubApp, database: Database
) -> None:
    github.install(registered, NAME)
    first = Reconciler(app, database)
    second = Reconciler(app, database)
    assert first.round() == 1
    before = len(github.requests)
    assert second.round() == 0
    assert len(github.requests) == before


def test_the_round_begins_at_once_and_a_fault_of_github_does_not_end_it(
    github: SimulatedGitHub, registered: App, app: GitHubApp, receiver: Receiver, database: Database
) -> None:
    github.install(registered, NAME)
    receiver.start()
    github.fail("server_error", path="/app/hook/deliveries")
    stop = threading.Event()
    reconciler = Reconciler(app, database)
    thread = threading.Thread(target=reconciler.run, args=(stop, 0.2))
    thread.start()
    end = datetime.now(UTC) + timedelta(seconds=20)
    while not kinds(database) and datetime.now(UTC) < end:
        stop.wait(0.05)
    stop.set()
    thread.join()
    assert kinds(database) == ["installation_changed"]
    again = Reconciler(app, database)
    assert again.round() == 0
    assert database.take_lock("reconciler") is None


def test_github_s_refusal_is_passed_on_by_a_single_round(
    github: SimulatedGitHub, app: GitHubApp, database: Database
) -> None:
    github.fail("rate_limited", path="/app/hook/deliveries")
    with pytest.raises(TransientError):
        Reconciler(app, database).round()


@pytest.mark.parametrize(
    ("attempts", "minutes", "again"),
    [(1, 0, True), (2, 1, False), (2, 2, True), (3, 3, False), (3, 4, True), (8, 127, False), (8, 128, True)],
)
def test_a_receiver_that_stays_away_is_asked_less_and_less_often(attempts: int, minutes: int, again: bool) -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    delivery = HookDelivery(
        id=1, guid="a", event="issues", delivered_at=now - timedelta(minutes=minutes), attempts=attempts
    )
    assert is_due(delivery, now) is again
