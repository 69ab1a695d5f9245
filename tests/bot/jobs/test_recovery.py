"""Workers die; their slots are freed at once, and what they were running is taken over, though not for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from bot.errors import OperatorError
from bot.jobs.accept import Acceptor
from bot.jobs.queue import Queue, executor
from bot.jobs.recovery import MAX_WORKERS, SETTLED_SECONDS, Reaper, Slot, take_slot
from bot.jobs.store import Jobs
from bot.ledger import Database
from tests.bot.jobs.builders import opened
from tests.bot.jobs.rig import ROOT, wait

HOLD = """
import sys, time
from bot.ledger import open_database
from bot.jobs.recovery import take_slot
print(take_slot(open_database(sys.argv[1]).locks).number, flush=True)
time.sleep(60)
"""


@pytest.fixture
def slot(database: Database) -> Iterator[Slot]:
    slot = take_slot(database.locks)
    assert slot.number == 0
    yield slot
    slot.release()


@pytest.fixture
def delivered(database: Database) -> Jobs:
    acceptor = Acceptor(database, lambda: time.time() - 2 * SETTLED_SECONDS)
    acceptor.accept("d", opened())
    acceptor.close()
    return Jobs(database)


def dying(url: str) -> int:
    command = [sys.executable, "-m", "tests.bot.jobs.dying", url]
    return subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode


def test_two_processes_never_share_a_slot_and_a_killed_one_frees_its_own(database, database_url, slot):
    def hold() -> tuple[subprocess.Popen[bytes], int]:
        process = subprocess.Popen([sys.executable, "-c", HOLD, database_url], stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdout
        return process, int(process.stdout.readline())

    first, one = hold()
    second, two = hold()
    assert (one, two) == (1, 2)
    # A process that is stopped is not dead: what it is in the middle of may still happen.
    os.kill(first.pid, signal.SIGSTOP)
    assert database.locks.take(executor(1)) is None
    first.kill()
    first.wait()
    first.stdout.close()
    wait(lambda: (lock := database.locks.take(executor(1))) and (lock.release() or True), 5)
    third, three = hold()
    assert three == 1
    for process in (second, third):
        process.kill()
        process.wait()
        process.stdout.close()


def test_more_workers_than_slots_get_one_clear_line(database):
    locks = [database.locks.take(executor(number)) for number in range(MAX_WORKERS)]
    with pytest.raises(OperatorError, match="64 workers"):
        take_slot(database.locks)
    for lock in locks:
        lock.release()


def test_what_a_dead_worker_was_running_is_taken_over(database, database_url, slot, delivered):
    assert dying(database_url) == 9
    assert delivered.get("d:triage").state == "running"
    ran: list[tuple[object, ...]] = []
    queue = Queue(database, 0, lambda *job: ran.append(job[:3]), polling_seconds=0.05)
    try:
        time.sleep(1.5)
        assert ran == [], "the queue by itself takes back only what its own slot was running"
        reaper = Reaper(database, queue, delivered, slot)
        assert queue.executors() == {executor(1)}
        assert reaper.take_over() == 1
        wait(lambda: ran == [("d:triage", 0, "acme/rocket#7")])
        assert reaper.take_over() == 0
    finally:
        queue.close(0)


def test_nothing_is_taken_from_a_worker_that_lives(database, database_url, slot, delivered):
    assert dying(database_url) == 9
    alive = database.locks.take(executor(1))
    ran: list[object] = []
    queue = Queue(database, 0, lambda *job: ran.append(job), polling_seconds=0.05)
    try:
        assert Reaper(database, queue, delivered, slot).take_over() == 0
        time.sleep(0.5)
        assert ran == []
    finally:
        queue.close(0)
        alive.release()


def test_a_job_that_kills_every_worker_becomes_a_dead_letter(database, database_url, slot, delivered):
    assert [dying(database_url) for _ in range(3)] == [9, 9, 0]
    queue = Queue(database, 0, lambda *_: None)
    try:
        assert Reaper(database, queue, delivered, slot).settle() == 1
        job = delivered.get("d:triage")
        assert (job.state, job.error) == ("dead", "its worker died 9 times while it ran")
        assert delivered.retry("d:triage").workflow == "d:triage:1"
    finally:
        queue.close(0)


def test_a_job_that_the_queue_lost_is_started_anew(database, slot, delivered):
    from bot.jobs.dispatch import Dispatcher

    class Nowhere:
        def start(self, *_: object) -> None: ...
        def drop(self, _: object) -> None: ...

    Dispatcher(database, Nowhere(), lambda event: ("triage",), {}).step()
    queue = Queue(database, 0, lambda *_: None)
    try:
        assert Reaper(database, queue, delivered, slot).settle() == 1
        job = delivered.get("d:triage")
        assert (job.state, job.attempt, job.error) == ("waiting", 1, "the queue ended it: LOST")
    finally:
        queue.close(0)


def test_a_worker_is_seen_until_it_ends(database, slot):
    jobs = Jobs(database)
    queue = Queue(database, 0, lambda *_: None)
    try:
        reaper = Reaper(database, queue, jobs, slot)
        assert jobs.worker_age() is None
        reaper.seen()
        reaper.seen()
        assert jobs.worker_age() < 5
        reaper.gone()
        assert jobs.worker_age() is None
    finally:
        queue.close(0)
