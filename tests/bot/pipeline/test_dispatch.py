"""From deliveries to jobs: one for each task, in order, and none for what was overtaken."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from bot import router
from bot.core import events
from bot.pipeline.inbox import Inbox
from bot.pipeline.store import Database
from bot.pipeline.store.tables import DELIVERIES
from bot.pipeline.worker import DEBOUNCE
from tests.bot.pipeline.builders import make_dispatcher, opened, pushed
from tests.bot.pipeline.line import Line


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def line(database: Database):
    return Line(database)


@pytest.fixture
def accept(database: Database, clock):
    inbox = Inbox(database, clock)
    yield inbox.accept
    inbox.close()


@pytest.fixture
def dispatcher(database: Database, line, clock):
    return make_dispatcher(database, line, clock=clock)


def test_each_task_of_a_delivery_is_a_job_in_the_order_of_the_table(accept, dispatcher, line):
    accept("d-1", opened())
    assert dispatcher.step() == 1
    assert list(line.attempts) == [f"d-1:{task}" for task in router.tasks(opened())]
    jobs = list(line.attempts.values())
    assert {job.partition for job in jobs} == {"acme/rocket#7"}
    assert [job.order for job in jobs] == sorted({job.order for job in jobs})


def test_a_step_that_is_repeated_after_a_crash_changes_nothing(accept, dispatcher, line, database):
    accept("d-1", opened())
    dispatcher.step()
    before = dict(line.attempts)
    with database.write() as connection:
        connection.execute(update(DELIVERIES).values(dispatched_at=None))
    dispatcher.step()
    assert line.attempts == before
    assert dispatcher.step() == 0


def test_an_event_for_nobody_is_taken_note_of_and_makes_no_job(accept, dispatcher, line, database):
    accept("d-1", events.Pinged(sender=opened().sender))
    dispatcher.step()
    assert line.attempts == {}
    with database.read() as connection:
        assert connection.scalar(select(DELIVERIES.c.dispatched_at)) is not None


def test_a_push_waits_for_the_next_one(accept, database, line, clock):
    accept("d-1", pushed("a" * 40))
    make_dispatcher(database, line, debounce=True, clock=clock).step()
    assert set(line.states().values()) == {"waiting"}
    assert {job.due for job in line.list()} == {clock.now + DEBOUNCE[events.PullRequestSynchronized]}


def test_what_cannot_be_read_is_kept_and_does_not_stop_the_rest(accept, dispatcher, line, database):
    accept("d-1", opened())
    with database.write() as connection:
        connection.execute(update(DELIVERIES).values(event='{"kind": "of another time"}'))
    accept("d-2", opened())
    dispatcher.step()
    assert {job.delivery for job in line.list()} == {"d-2"}
    with database.read() as connection:
        problem = connection.scalar(select(DELIVERIES.c.problem).where(DELIVERIES.c.id == "d-1"))
    assert "cannot be read" in problem
