"""Failed deliveries are repeated, and run once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
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
from tests.bot.pipeline.rig import free_port, wait
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


@dataclass
class World:
    """A GitHub on which our App is registered, and our database."""

    github: SimulatedGitHub
    registered: App
    app: GitHubApp
    receiver: Receiver
    database: Database

    def kinds(self) -> list[str]:
        """Return the stored deliveries in order."""
        return list(self.database.scalars(select(DELIVERIES.c.kind).order_by(DELIVERIES.c.seq)))

    def attempts(self) -> list[int]:
        return [delivery.status_code for delivery in self.registered.deliveries]

    def happens(self) -> int:
        """The App is installed and an issue is opened; the issue's number."""
        self.github.install(self.registered, NAME)
        return self.github.open_issue(NAME, "Reading fails")


@pytest.fixture
def world(sqlite: Database) -> Iterator[World]:
    receiver = Receiver(sqlite.url)
    url = f"http://127.0.0.1:{receiver.port}/webhook"
    with SimulatedGitHub() as github:
        github.create_repository(NAME)
        registered = github.create_app(webhook_url=url, webhook_secret=SECRET)
        with GitHubApp(registered.id, registered.private_key, github.api_url) as app:
            yield World(github, registered, app, receiver, sqlite)
        receiver.stop()
        receiver.backend.close()


def test_missed_deliveries_arrive_at_the_next_round_and_once(world: World) -> None:
    world.happens()
    assert world.attempts() == [502, 502]
    world.receiver.start()
    reconciler = Reconciler(world.app, world.database)
    assert reconciler.round() == 2
    world.github.settle()
    assert world.kinds() == ["installation_changed", "issue_opened"]
    assert reconciler.round() == 0
    world.github.settle()
    assert world.attempts() == [502, 502, 202, 202]


def test_what_was_recorded_but_answered_too_late_is_not_delivered_again(world: World) -> None:
    world.receiver.start()
    world.happens()
    for delivery in world.registered.deliveries:
        delivery.status_code = 504
    assert Reconciler(world.app, world.database).round() == 0
    assert world.kinds() == ["installation_changed", "issue_opened"]


def test_what_nobody_wanted_to_hear_of_is_not_delivered_forever(world: World) -> None:
    """An ignored event leaves no record here; GitHub knows that its second attempt went well."""
    number = world.happens()
    world.receiver.start()
    reconciler = Reconciler(world.app, world.database)
    reconciler.round()
    world.github.settle()
    world.receiver.stop()
    world.github.edit(NAME, number)
    world.receiver.start()
    assert reconciler.round() == 1
    world.github.settle()
    assert world.attempts()[-2:] == [502, 204]
    assert reconciler.round() == 0


def test_after_a_restore_only_deliveries_that_were_stored_are_requested(world: World) -> None:
    world.receiver.start()
    world.github.edit(NAME, world.happens())
    world.github.settle()
    assert world.attempts() == [202, 202, 204]
    world.database.execute(delete(DELIVERIES))
    reconciler, yesterday = Reconciler(world.app, world.database), datetime.now(UTC) - timedelta(days=1)
    assert [reconciler.ask_again(yesterday), world.github.settle(), reconciler.ask_again(yesterday)] == [
        2,
        None,
        0,
    ]


def test_only_one_of_several_workers_does_the_rounds(world: World) -> None:
    world.github.install(world.registered, NAME)
    first, second = (Reconciler(world.app, world.database) for _ in range(2))
    assert first.round() == 1
    before = len(world.github.requests)
    assert second.round() == 0
    assert len(world.github.requests) == before


def test_the_round_begins_at_once_and_a_fault_of_github_does_not_end_it(world: World) -> None:
    world.github.install(world.registered, NAME)
    world.receiver.start()
    world.github.fail("server_error", path="/app/hook/deliveries")
    stop = threading.Event()
    thread = threading.Thread(target=Reconciler(world.app, world.database).run, args=(stop, 0.2))
    thread.start()
    wait(world.kinds, 20, "delivered in the second round")
    stop.set()
    thread.join()
    assert world.kinds() == ["installation_changed"]
    assert Reconciler(world.app, world.database).round() == 0
    assert world.database.take_lock("reconciler") is None


def test_github_s_refusal_is_passed_on_by_a_single_round(world: World) -> None:
    world.github.fail("rate_limited", path="/app/hook/deliveries")
    with pytest.raises(TransientError):
        Reconciler(world.app, world.database).round()


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
