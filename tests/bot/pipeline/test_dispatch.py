"""From deliveries to jobs: one for each task, in order, and none for what was overtaken."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from bot import router
from bot.core import events
from bot.pipeline.inbox import DEBOUNCE_SECONDS
from bot.pipeline.queue import Queue
from bot.pipeline.store import Database
from bot.pipeline.store.tables import DELIVERIES
from tests.bot.pipeline.builders import ANA, make_inbox, opened
from tests.bot.pipeline.driven import bury
from tests.builders import pull_pushed


@pytest.fixture
def inbox(database: Database, queue):
    return make_inbox(database, queue)


def uninstalled(account, repositories, before):
    """Delete nothing."""


def test_each_task_of_a_delivery_is_a_job_in_the_order_of_the_table(inbox, queue):
    assert inbox.accept("d-1", opened())
    jobs = sorted(queue.list(), key=lambda job: job.position)
    assert [job.id for job in jobs] == [f"d-1:{task}" for task in router.tasks(opened())]
    assert len({job.partition for job in jobs}) == 1
    assert [job.order for job in jobs] == sorted({job.order for job in jobs})


def test_a_delivery_is_stored_with_its_jobs_or_not_at_all(database):
    queue = Queue(database)

    class Broken(Queue):
        def enqueue(self, *arguments: object) -> None:
            raise OSError("the engine cannot be reached")

    broken = Broken(database)
    with pytest.raises(OSError, match="cannot be reached"):
        make_inbox(database, broken).accept("d-1", opened())
    assert database.scalar(select(DELIVERIES.c.id)) is None
    assert make_inbox(database, queue).accept("d-1", opened())
    assert {job.delivery for job in queue.list()} == {"d-1"}
    queue.close()
    broken.close()


def test_what_an_older_release_stored_without_jobs_gets_them_once(inbox, queue, database):
    inbox.accept("d-1", opened())
    before = queue.list()
    database.execute(update(DELIVERIES).values(dispatched_at=None))
    assert inbox.take_up(uninstalled) == 1
    assert queue.list() == before
    assert inbox.take_up(uninstalled) == 0


def test_an_event_for_nobody_is_taken_note_of_and_makes_no_job(inbox, queue, database):
    inbox.accept("d-1", events.Pinged(sender=opened().sender))
    assert queue.list() == ()
    assert database.scalar(select(DELIVERIES.c.dispatched_at)) is not None


def test_a_push_waits_for_the_next_one(database, queue, clock):
    make_inbox(database, queue, debounce=True).accept("d-1", pull_pushed())
    assert set(queue.states().values()) == {"waiting"}
    assert {job.due for job in queue.list()} == {clock.now + DEBOUNCE_SECONDS}


def test_what_cannot_be_read_is_kept_and_does_not_stop_the_rest(inbox, queue, database):
    inbox.accept("d-1", opened())
    queue.forget_repository("acme/rocket", before=9)
    database.execute(update(DELIVERIES).values(event='{"kind": "of another time"}', dispatched_at=None))
    inbox.accept("d-2", opened())
    inbox.take_up(uninstalled)
    assert {job.delivery for job in queue.list()} == {"d-2"}
    problem = database.scalar(select(DELIVERIES.c.problem).where(DELIVERIES.c.id == "d-1"))
    assert "cannot be read" in problem


def test_jobs_go_on_when_the_permission_that_they_lacked_is_granted(inbox, queue, database):
    for number, installation in ((1, 1), (2, 1), (3, 2)):
        inbox.accept(f"d-{number}", opened(number).model_copy(update={"installation": installation}))
    lacking = "refused: POST /repos/a/b/check-runs: GitHub answered 403: Resource not accessible by integration"
    bury(database, lacking, "d-1:triage", "d-3:triage")
    inbox.accept("d-4", opened(4))
    bury(database, "refused: GitHub answered 422: Validation Failed", "d-4:triage")
    accepted = {"sender": ANA, "account": "acme", "installation": 1, "action": "new_permissions_accepted"}
    inbox.accept("d-5", events.InstallationChanged(**accepted))
    assert inbox.take_up(uninstalled) == 1
    dead = {job.id for job in queue.list(("dead",))}
    assert dead == {"d-3:triage", "d-4:triage"}
    again = queue.get("d-1:triage")
    assert (again.state, again.attempt, queue.get("d-2:triage").state) == ("queued", 1, "done")
