"""The behaviour of dbos on which the program relies, pinned for every upgrade."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import pytest
from sqlalchemy import text

from bot.pipeline.job import LANES, OPEN, GaveUp, Job, State
from bot.pipeline.queue import Queue
from bot.pipeline.store import Database
from bot.pipeline.worker import Consumer, Pace
from tests.bot.pipeline.builders import job
from tests.bot.pipeline.rig import wait


class Runs:
    """Notes what ran, and how many at once about each subject."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.done: list[str] = []
        self.busiest: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._seconds = seconds
        self._lock = threading.Lock()
        self.all_busiest = 0

    def __call__(self, job: Job) -> str:
        with self._lock:
            subject = f"{job.repository}#{job.number}"
            self._running[subject] = self._running.get(subject, 0) + 1
            self.busiest[subject] = max(self.busiest.get(subject, 0), self._running[subject])
            self.all_busiest = max(self.all_busiest, sum(self._running.values()))
        time.sleep(self._seconds)
        with self._lock:
            self._running[subject] -= 1
            self.done.append(job.workflow)
        return "posted"


@pytest.fixture
def queue(database: Database) -> Iterator[Queue]:
    queue = Queue(database)
    yield queue
    queue.close()


@contextmanager
def running(database: Database, run: Callable[[Job], str], **options: Any) -> Iterator[None]:
    pace = Pace(**{"polling_seconds": 0.05, "concurrency": 4, "apart": 0.0, **options})
    executor = Consumer(database, "worker-of-a-test", run, pace)
    try:
        yield
    finally:
        executor.close(0)


def put(queue: Queue, *jobs: Job, delay: float = 0.0) -> None:
    with queue.transaction() as connection:
        for item in jobs:
            queue.enqueue(connection, item, delay)


def test_an_attempt_runs_once_and_the_next_attempt_runs_again(database, queue):
    runs = Runs()
    with running(database, runs):
        for _ in range(3):
            put(queue, job())
        wait(lambda: queue.get("d:triage").state == "done")
        put(queue, job(), job(attempt=1))
        wait(lambda: queue.get("d:triage").attempt == 1 and queue.get("d:triage").state == "done")
    assert runs.done == ["d:triage", "d:triage:1"]
    assert queue.get("d:triage").outcome == "posted"


def test_a_job_without_repository_is_refused_with_its_transaction(queue):
    with pytest.raises(ValueError, match="wait forever"):
        put(queue, job(), job().model_copy(update={"repository": ""}))
    assert queue.get("d:triage") is None


def test_a_busy_installation_leaves_room_for_a_quiet_one(database, queue):
    runs = Runs(seconds=0.1)
    put(queue, *(job(f"busy-{number}", number, installation=1) for number in range(120)))
    put(queue, job("quiet", 1, order=999, installation=2))
    with running(database, runs, concurrency=LANES + 2):
        wait(lambda: "quiet:triage" in runs.done)
        # The busy one fills its lanes at every look for work; the quiet one has a free thread from the first on.
        assert len(runs.done) <= 4 * LANES
        queue.forget_repository("acme/rocket", before=10_000)
    assert runs.all_busiest <= LANES + 1


def test_writes_of_an_installation_are_spaced_and_delay_no_other_one(database, queue):
    starts: dict[int, list[float]] = {1: [], 2: []}

    def run(job: Job) -> str:
        starts[job.installation].append(time.monotonic())
        return "posted"

    put(queue, *(job(f"busy-{number}", number, installation=1, stage="publish") for number in range(30)))
    put(queue, job("quiet", 1, order=999, installation=2, stage="publish"))
    with running(database, run, apart=0.5):
        wait(lambda: starts[2] and len(starts[1]) >= 4)
        queue.forget_repository("acme/rocket", before=10_000)
    assert starts[2][0] < starts[1][3]
    # One start may come late on a busy machine, so only the sum of the pauses says something.
    assert starts[1][-1] - starts[1][0] > 0.5 * (len(starts[1]) - 1) - 0.45


def test_jobs_of_a_subject_run_in_turn_and_subjects_run_at_the_same_time(database, queue):
    runs = Runs(seconds=0.15)
    put(queue, *(job(f"d-{n}-{seq}", n, seq) for seq in (3, 2, 1, 4) for n in (1, 3)))
    with running(database, runs):
        wait(lambda: len(runs.done) == 8)
    assert runs.busiest == {"acme/rocket#1": 1, "acme/rocket#3": 1}
    assert runs.all_busiest == 2
    assert [item for item in runs.done if item.startswith("d-1")] == [f"d-1-{n}:triage" for n in (1, 2, 3, 4)]


def test_jobs_are_counted_in_the_database_as_they_are_listed(database, queue):
    def run(job: Job) -> str:
        if job.number == 1:
            raise GaveUp("too often")
        return "posted"

    put(queue, *(job(f"ended-{number}", number) for number in range(4)))
    first, second = job("again"), job("again", attempt=1)
    put(queue, first, second)
    with running(database, run):
        wait(lambda: not queue.list(OPEN))
    queue.enqueue_next(first, second)
    put(queue, job("later"), delay=60.0)
    put(queue, *(job(f"open-{number}", number) for number in range(3)))
    states = get_args(State)
    counts = queue.counts(states)
    assert counts == Counter(item.state for item in queue.list(states))
    assert counts == {"done": 4, "dead": 1, "waiting": 1, "queued": 3}
    assert queue.counts(["dead", "running"]) == {"dead": 1}
    assert queue.counts(states, newest=4) == {"waiting": 1, "queued": 3}, "the newest of all attempts"


def test_only_what_waits_for_a_worker_is_overdue(queue):
    assert queue.oldest_due() is None
    put(queue, job("later", due=10.0), delay=60.0)
    put(queue, job("paced", due=20.0, stage="publish"))
    assert queue.oldest_due() is None, "the one waits for its time, the other for the pace of writes"
    put(queue, job("young", due=40.0), job("old", due=30.5))
    assert queue.oldest_due() == 30.5


def test_what_is_delayed_waits_and_then_runs(database, queue):
    runs = Runs()
    put(queue, job(), delay=1.0)
    assert queue.get("d:triage").state == "waiting"
    assert [item.id for item in queue.open_among(["d:triage", "e:triage"])] == ["d:triage"]
    with running(database, runs):
        wait(lambda: runs.done == ["d:triage"])


def test_what_is_cancelled_never_starts(database, queue):
    runs = Runs()
    put(queue, job("d"), job("e", order=2))
    queue.cancel(job("d"))
    with running(database, runs):
        wait(lambda: runs.done == ["e:triage"])
    assert queue.get("d:triage").state == "cancelled"
    assert queue.counts(("done", "cancelled")) == {"done": 1, "cancelled": 1}


def test_what_never_started_is_ended_as_superseded_in_one_go(database, queue):
    runs = Runs()
    put(queue, job("d"), job("e", order=2))
    put(queue, job("f", order=3), delay=60)
    assert queue.end_superseded([], "e:triage") == queue.open_among([]) == ()
    assert queue.end_superseded(["d:triage", "f:triage", "unknown:triage"], "e:triage") == ("d:triage", "f:triage")
    with running(database, runs):
        wait(lambda: queue.get("e:triage").state == "done")
    assert queue.end_superseded(["e:triage"], "f:triage") == ()
    assert runs.done == ["e:triage"]
    assert (queue.get("d:triage").state, queue.get("d:triage").superseded_by) == ("superseded", "e:triage")
    assert queue.counts(("done", "superseded", "cancelled")) == {"done": 1, "superseded": 2}


def test_what_gives_up_is_a_dead_letter_with_its_reason_and_says_no_more(database, queue, caplog):
    def run(job: Job) -> str:
        raise GaveUp("gave up after 3 tries: \N{SNOWMAN}")

    put(queue, job())
    with running(database, run):
        wait(lambda: queue.get("d:triage").state == "dead")
    assert queue.get("d:triage").error == "gave up after 3 tries: \N{SNOWMAN}"
    assert [record for record in caplog.records if record.name.startswith("dbos")] == []


def test_a_list_shows_the_newest_attempt_of_each_job_alone(database, queue):
    put(queue, job("d"), job("e", order=2))
    with running(database, Runs()):
        wait(lambda: queue.counts(("done",)) == {"done": 2})
    queue.enqueue_next(job("d"), job("d", attempt=1), delay=60)
    assert [(item.id, item.state) for item in queue.list()] == [("e:triage", "done"), ("d:triage", "waiting")]
    assert [item.id for item in queue.list(("done",))] == ["e:triage"]
    assert queue.list(repository="acme/sled") == ()
    assert queue.counts(("done", "waiting")) == {"done": 1, "waiting": 1}


def test_an_attempt_that_its_successor_does_not_know_yet_is_not_listed(queue):
    put(queue, job("d"), job("d", attempt=1))
    assert [item.attempt for item in queue.list()] == [1]


def test_a_long_list_leaves_nothing_out(queue):
    jobs = [job(f"d-{number}", number) for number in range(601)]
    put(queue, *jobs)
    assert {item.id for item in queue.list(limit=5000)} == {item.id for item in jobs}
    assert len(queue.list(repository="acme/rocket", limit=550)) == 550


def test_what_is_stored_is_plain_json_and_no_pickle(database, queue):
    put(queue, job())
    with running(database, Runs()):
        wait(lambda: queue.get("d:triage").state == "done")
    schema = "" if database.is_sqlite else "dbos."
    with database.read() as connection:
        row = connection.execute(text(f"SELECT serialization FROM {schema}workflow_status")).one()
        inputs = connection.scalar(text(f"SELECT inputs FROM {schema}workflow_input"))
        output = connection.scalar(text(f"SELECT output FROM {schema}workflow_output"))
    assert row.serialization == "portable_json"
    assert json.loads(inputs)["positionalArgs"][0]["id"] == "d:triage"
    assert json.loads(output) == "posted"


def test_starting_says_nothing_that_advertises(database, caplog):
    caplog.set_level(logging.DEBUG)
    with running(database, Runs()):
        pass
    assert [record for record in caplog.records if record.name.startswith("dbos")] == []


def test_the_web_process_never_imports_the_engine():
    code = "import sys, bot.web.app, bot.web.server, bot.cli.web; assert 'dbos' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
