"""A worker does its rounds, stops when told, and ends by itself when its lease is no longer its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from bot import router
from bot.pipeline.admin import Jobs
from bot.pipeline.inbox import Inbox
from bot.pipeline.publisher import Publisher
from bot.pipeline.queue import Queue
from bot.pipeline.retention import KEEP_DAYS
from bot.pipeline.runner import Runner
from bot.pipeline.store import Database, Ledger
from bot.pipeline.store.counters import CounterBuffer
from bot.pipeline.store.database import CLASS
from bot.pipeline.worker import Pace, Worker
from tests.bot.pipeline.builders import opened
from tests.bot.pipeline.rig import wait


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


@pytest.fixture
def worker(ledger: Ledger, database: Database) -> Worker:
    """One whose operator has paused it: jobs end without a GitHub."""
    publisher = Publisher(ledger.postings)
    queue = Queue(database)
    inbox = Inbox(database, queue)
    runner = Runner(queue, inbox, ledger, lambda event: pytest.fail("asked for services"), publisher, paused=True)
    pace = Pace(concurrency=2, polling_seconds=0.05)
    return Worker(ledger, queue, inbox, runner, CounterBuffer(), pace, KEEP_DAYS)


class Running:
    def __init__(self, worker: Worker) -> None:
        self.stop = threading.Event()
        self.kept: bool | None = None
        self._thread = threading.Thread(target=self._run, args=(worker,))
        self._thread.start()

    def _run(self, worker: Worker) -> None:
        self.kept = worker.run(self.stop)

    def end(self) -> None:
        self.stop.set()
        self._thread.join(40)

    def ended(self) -> bool:
        return not self._thread.is_alive()


@pytest.fixture
def running(worker: Worker) -> Iterator[Running]:
    running = Running(worker)
    yield running
    running.end()
    assert running.ended()


def test_what_is_delivered_is_worked_on_until_the_worker_stops(database, jobs, running):
    queue = Queue(database)
    inbox = Inbox(database, queue)
    for number in range(5):
        inbox.accept(f"d-{number}", opened(number + 1))
    queue.close()
    wait(lambda: jobs.counts() == {"done": 5 * len(router.tasks(opened()))}, 30, "all jobs done")
    assert {job.outcome for job in jobs.list()} == {"skipped: paused by the operator"}
    assert jobs.worker_age() < 10
    running.end()
    assert running.kept is True
    assert jobs.worker_age() is None


# A file's lock cannot be lost by a process that lives.
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_worker_that_lost_its_lease_ends(database, jobs, running):
    wait(lambda: jobs.worker_age() is not None, 30, "the worker is up")
    with database.engine.connect() as connection:
        # As after a network failure: the server has forgotten who held which lock.
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
                " WHERE locktype = 'advisory' AND datname = current_database() AND classid = :ours"
            ),
            {"ours": CLASS},
        )
    wait(running.ended, 30, "the worker ended")
    assert running.kept is False
