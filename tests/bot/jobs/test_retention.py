"""Old jobs are forgotten, in our tables and the queue's; what could still be redelivered or retried is not."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from bot.core import events
from bot.core.actions import Decision
from bot.core.model import Subject
from bot.jobs.accept import Acceptor
from bot.jobs.dispatch import Dispatcher
from bot.jobs.retention import DAY, KEEP_DEAD_SECONDS, KEEP_SECONDS, Retention
from bot.jobs.store import Jobs
from bot.ledger import Database, Ledger
from bot.ledger.tables import DELIVERIES
from tests.bot.jobs.builders import opened
from tests.bot.jobs.test_dispatch import Clock, Line


class Forgets(Line):
    def __init__(self) -> None:
        super().__init__()
        self.forgotten: list[str] = []

    def forget(self, workflows: list[str]) -> None:
        self.forgotten += workflows


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue() -> Forgets:
    return Forgets()


@pytest.fixture
def sweep(database: Database, queue: Forgets, clock: Clock):
    return Retention(database, queue, clock=clock).sweep


@pytest.fixture
def jobs(database: Database, queue: Forgets, clock: Clock) -> Jobs:
    """d-done, d-dead, d-open and d-tried, and a ping, all of the same moment."""
    acceptor = Acceptor(database, clock)
    names = ("done", "dead", "open", "tried")
    for number, name in enumerate(names):
        acceptor.accept(f"d-{name}", opened(number + 1))
    acceptor.accept("d-ping", events.Pinged(sender=opened().sender))
    acceptor.close()
    Dispatcher(database, queue, lambda event: ("triage",) if event.kind != "pinged" else (), {}, clock).step()
    jobs = Jobs(database, clock)
    for name in ("done", "dead", "tried"):
        jobs.claim(f"d-{name}:triage", 0)
    jobs.finish("d-done:triage", 0, "posted")
    jobs.bury("d-dead:triage", 0, "gave up")
    jobs.again("d-tried:triage", 0, clock.now, "away")
    jobs.claim("d-tried:triage", 1)
    jobs.finish("d-tried:triage", 1, "posted")
    return jobs


def remembered(database: Database) -> set[str]:
    with database.read() as connection:
        return set(connection.scalars(select(DELIVERIES.c.id)))


def test_nothing_goes_while_github_may_redeliver(jobs, sweep, clock, database):
    clock.now += KEEP_SECONDS - 1
    assert KEEP_SECONDS > 3 * DAY
    assert sweep() == 0
    assert len(remembered(database)) == 5


def test_what_ended_goes_with_all_its_attempts_and_what_has_not_stays(jobs, sweep, clock, database, queue):
    clock.now += KEEP_SECONDS + 1
    assert sweep() == 3
    assert remembered(database) == {"d-dead", "d-open"}
    assert sorted(queue.forgotten) == ["d-done:triage", "d-tried:triage", "d-tried:triage:1"]
    assert sweep() == 0


def test_a_dead_letter_waits_a_month_for_somebody(jobs, sweep, clock, database):
    clock.now += KEEP_DEAD_SECONDS + 1
    sweep()
    assert remembered(database) == {"d-open"}


def test_the_record_of_what_was_decided_stays(jobs, sweep, clock, ledger: Ledger):
    decision = Decision(kind="triage", subject=Subject(repository="acme/rocket", number=1, revision="text:1"))
    ledger.decisions.record("d-done:triage", [decision], "")
    clock.now += KEEP_SECONDS + 1
    sweep()
    assert ledger.decisions.decisions("acme/rocket#1") == (decision,)


def test_the_number_of_deliveries_ever_does_not_start_again(jobs, sweep, clock, database):
    with database.read() as connection:
        before = connection.scalar(select(func.max(DELIVERIES.c.seq)))
    clock.now += 100 * DAY
    jobs.cancel("d-open:triage")
    sweep()
    acceptor = Acceptor(database, clock)
    acceptor.accept("d-new", opened())
    acceptor.close()
    with database.read() as connection:
        assert connection.scalar(select(func.max(DELIVERIES.c.seq))) > before
