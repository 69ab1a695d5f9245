"""Workers die; their places are freed at once, and what they were running is taken over, though not for ever."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.core.errors import OperatorError
from bot.pipeline.admin import Jobs
from bot.pipeline.queue import Queue
from bot.pipeline.runner import MAX_DEATHS
from bot.pipeline.store import Database
from bot.pipeline.worker import MAX_WORKERS, Consumer, Lease, Pace, Recovery, take_lease
from tests import forked
from tests.bot.pipeline.builders import make_inbox, opened
from tests.bot.pipeline.rig import ROOT, wait


@pytest.fixture
def lease(database: Database) -> Iterator[Lease]:
    lease = take_lease(database)
    assert lease.number == 0
    yield lease
    lease.lock.release()


@pytest.fixture
def queue(database: Database) -> Iterator[Queue]:
    queue = Queue(database)
    yield queue
    queue.close()


@pytest.fixture
def recovery(database: Database, queue: Queue, lease: Lease) -> Recovery:
    recovery = Recovery(database, queue, lease)
    recovery.report_alive()
    return recovery


@pytest.fixture
def delivered(database: Database, queue: Queue) -> Jobs:
    make_inbox(database, queue, "triage").accept("d", opened())
    return Jobs(database)


def dying(url: str) -> int:
    log = Path(os.devnull)
    return forked.start(("tests.bot.pipeline.worker_process", "--die", url), os.environ, ROOT, log).wait(60)


def test_two_processes_never_share_a_place_and_a_killed_one_frees_its_own(database, database_url, lease, tmp_path):
    def hold() -> tuple[forked.Process, int]:
        log = tmp_path / f"{uuid.uuid4()}.log"
        process = forked.start(
            ("tests.bot.pipeline.worker_process", "--hold", database_url), os.environ, ROOT, log
        )
        wait(lambda: log.exists() and log.read_text().endswith("\n"))
        return process, int(log.read_text())

    first, first_place = hold()
    second, second_place = hold()
    assert (first_place, second_place) == (1, 2)
    # A process that is stopped is not dead: what it is in the middle of may still happen.
    os.kill(first.pid, signal.SIGSTOP)
    assert database.take_lock("worker-1") is None
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    wait(lambda: (lock := database.take_lock("worker-1")) and (lock.release() or True), 5)
    third, three = hold()
    assert three == 1
    for process in (second, third):
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def test_more_workers_than_places_get_one_clear_line(database):
    locks = [database.take_lock(f"worker-{number}") for number in range(MAX_WORKERS)]
    with pytest.raises(OperatorError, match="64 workers"):
        take_lease(database)
    for lock in locks:
        lock.release()


def test_what_a_dead_worker_was_running_is_taken_over_once(database, database_url, lease, recovery, delivered):
    assert dying(database_url) == 9
    assert delivered.get("d:triage").state == "running"
    ran: list[str] = []
    executor = Consumer(
        database, lease.executor, lambda job: ran.append(job.id) or "", Pace(polling_seconds=0.05, apart=0)
    )
    try:
        time.sleep(1.0)
        assert ran == [], "the engine by itself takes back nothing"
        assert recovery.take_over() == 1
        wait(lambda: ran == ["d:triage"])
        wait(lambda: delivered.get("d:triage").state == "done")
        assert recovery.take_over() == 0
    finally:
        executor.close(0)


def test_nothing_is_taken_from_a_worker_that_lives(database, database_url, recovery, delivered):
    assert dying(database_url) == 9
    locks = []
    # PostgreSQL takes a moment to notice that the session of the dead has ended.
    wait(lambda: locks.append(database.take_lock("worker-1")) or locks[-1])
    assert recovery.take_over() == 0
    assert delivered.get("d:triage").state == "running"
    locks[-1].release()
    wait(lambda: recovery.take_over() == 1)


def test_what_was_cancelled_is_not_brought_back_by_the_death_of_its_worker(
    database, database_url, recovery, delivered
):
    assert dying(database_url) == 9
    delivered.cancel("d:triage")
    assert recovery.take_over() == 0
    assert delivered.get("d:triage").state == "cancelled"


def test_deaths_are_counted_for_as_long_as_the_attempt_lives(database, database_url, queue, recovery, delivered):
    for deaths in range(2):
        assert queue.deaths(delivered.get("d:triage")) == deaths
        assert dying(database_url) == 9
        assert recovery.take_over() == 1
    assert queue.deaths(delivered.get("d:triage")) == 2 < MAX_DEATHS
    delivered.cancel("d:triage")
    assert queue.deaths(delivered.retry("d:triage")) == 0


@pytest.mark.parametrize("ahead", [0, -3600, 3600])
def test_a_worker_is_seen_until_it_ends_by_the_clock_of_the_database(database, recovery, ahead):
    database.clock = lambda: time.time() + ahead
    jobs = Jobs(database)
    recovery.report_alive()
    assert jobs.worker_age() < 5
    recovery.report_end()
    assert jobs.worker_age() is None
