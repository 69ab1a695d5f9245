"""From deliveries to jobs: one for each task, in order, and none for what was overtaken."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import select, update

from bot import router
from bot.core import events
from bot.jobs.accept import Acceptor
from bot.jobs.dispatch import DEBOUNCE, Dispatcher
from bot.jobs.store import Jobs
from bot.ledger import Database
from bot.ledger.tables import DELIVERIES
from tests.bot.jobs.builders import edited, opened, pushed, said


class Line:
    """A queue that only remembers."""

    def __init__(self) -> None:
        self.started: list[tuple[str, str, int]] = []
        self.dropped: list[str] = []

    def start(self, workflow: str, job: str, attempt: int, partition: str, order: int) -> None:
        self.started.append((workflow, partition, order))

    def drop(self, workflows: Sequence[str]) -> None:
        self.dropped += workflows


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def line():
    return Line()


@pytest.fixture
def jobs(database: Database, clock):
    return Jobs(database, clock)


@pytest.fixture
def accept(database: Database, clock):
    acceptor = Acceptor(database, clock)
    yield acceptor.accept
    acceptor.close()


@pytest.fixture
def dispatcher(database: Database, line, clock):
    return Dispatcher(database, line, router.tasks, {}, clock)


def states(jobs: Jobs) -> dict[str, str]:
    return {job.id: job.state for job in jobs.list()}


def test_each_task_of_a_delivery_is_a_job_in_the_order_of_the_table(accept, dispatcher, line, jobs):
    accept("d-1", opened())
    assert dispatcher.step() > 0
    assert set(states(jobs)) == {f"d-1:{task}" for task in router.tasks(opened())}
    assert [workflow for workflow, _, _ in line.started] == ["d-1:config", "d-1:triage"]
    assert {partition for _, partition, _ in line.started} == {"acme/rocket#7"}
    orders = [order for _, _, order in line.started]
    assert orders == sorted(set(orders))


def test_a_step_that_is_repeated_after_a_crash_changes_nothing(accept, dispatcher, line, jobs, database):
    accept("d-1", opened())
    dispatcher.step()
    before = jobs.list()
    with database.write() as connection:
        connection.execute(update(DELIVERIES).values(dispatched_at=None))
    dispatcher.step()
    assert jobs.list() == before
    assert dispatcher.step() == 0


def test_an_event_for_nobody_is_taken_note_of_and_makes_no_job(accept, dispatcher, jobs, database):
    accept("d-1", events.Pinged(sender=opened().sender))
    dispatcher.step()
    assert jobs.list() == ()
    with database.read() as connection:
        assert connection.scalar(select(DELIVERIES.c.dispatched_at)) is not None


def test_an_edit_takes_the_place_of_the_judgement_that_is_still_waiting(accept, dispatcher, line, jobs):
    accept("d-1", opened())
    dispatcher.step()
    accept("d-2", edited())
    dispatcher.step()
    assert states(jobs)["d-1:triage"] == "superseded"
    assert jobs.get("d-1:triage").superseded_by == "d-2:triage"
    assert states(jobs)["d-2:triage"] == "queued"
    assert line.dropped == ["d-1:triage"]


def test_a_running_job_is_superseded_but_keeps_its_place_in_the_queue(accept, dispatcher, line, jobs):
    accept("d-1", opened())
    dispatcher.step()
    assert jobs.claim("d-1:triage", 0)
    accept("d-2", edited())
    dispatcher.step()
    assert not jobs.wanted("d-1:triage", 0)
    assert line.dropped == []


def test_a_command_is_never_lost(accept, dispatcher, jobs):
    accept("d-1", said("/bouncer accept"))
    accept("d-2", said("/bouncer help"))
    accept("d-3", edited())
    dispatcher.step()
    assert {states(jobs)[f"d-{number}:commands"] for number in (1, 2)} == {"queued"}


def test_other_issues_are_left_alone(accept, dispatcher, jobs):
    accept("d-1", opened(1))
    accept("d-2", edited(2))
    dispatcher.step()
    assert "superseded" not in states(jobs).values()


def test_a_hundred_pushes_in_a_burst_leave_one_review_of_the_last_head(accept, database, line, jobs, clock):
    dispatcher = Dispatcher(database, line, lambda event: ("review",), DEBOUNCE, clock)
    for number in range(100):
        accept(f"d-{number}", pushed(f"{number:040x}"))
        clock.now += 0.5
        dispatcher.step()
    clock.now += 10
    dispatcher.step()
    assert [workflow for workflow, _, _ in line.started] == ["d-99:review"]
    assert jobs.counts() == {"superseded": 99, "queued": 1}


def test_what_cannot_be_read_is_kept_and_does_not_stop_the_rest(accept, dispatcher, jobs, database):
    accept("d-1", opened())
    with database.write() as connection:
        connection.execute(update(DELIVERIES).values(event='{"kind": "of another time"}'))
    accept("d-2", opened())
    dispatcher.step()
    assert {job.delivery for job in jobs.list()} == {"d-2"}
    with database.read() as connection:
        problem = connection.scalar(select(DELIVERIES.c.problem).where(DELIVERIES.c.id == "d-1"))
    assert "cannot be read" in problem


def test_a_waiting_job_whose_event_cannot_be_read_stops_nobody(accept, dispatcher, jobs, database):
    accept("d-1", opened())
    dispatcher.step()
    with database.write() as connection:
        connection.execute(update(DELIVERIES).values(event='{"kind": "of another time"}'))
    accept("d-2", edited())
    dispatcher.step()
    assert states(jobs)["d-2:triage"] == "queued"


def test_reproduction_waits_for_the_verdict_of_triage_however_often_that_is_tried(
    accept, dispatcher, line, jobs, clock
):
    accept("d-1", opened())
    dispatcher.step()
    jobs.claim("d-1:triage", 0)
    jobs.again("d-1:triage", 0, clock.now + 60, "GitHub answered 503")
    clock.now += 61
    dispatcher.step()
    assert "d-1:reproduce" not in [workflow for workflow, _, _ in line.started]
    jobs.claim("d-1:triage", 1)
    jobs.finish("d-1:triage", 1, "posted")
    dispatcher.step()
    assert line.started[-1][0] == "d-1:reproduce"


def test_a_job_whose_moment_has_not_come_is_not_queued(accept, dispatcher, line, jobs, clock):
    accept("d-1", opened())
    dispatcher.step()
    jobs.claim("d-1:triage", 0)
    jobs.again("d-1:triage", 0, clock.now + 60, "GitHub asked for a minute")
    line.started.clear()
    dispatcher.step()
    assert line.started == []
    clock.now += 61
    dispatcher.step()
    assert [workflow for workflow, _, _ in line.started] == ["d-1:triage:1"]
