"""What the program relies on in dbos, and what it must not be trusted with: pinned here for every upgrade."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from bot.jobs.queue import Queue
from bot.jobs.retention import DAY, KEEP_SECONDS
from bot.ledger import Database
from tests.bot.jobs.rig import wait


class Runs:
    """Notes what ran, and how many at once of each partition."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.done: list[tuple[str, int]] = []
        self.busiest: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._seconds = seconds
        self._lock = threading.Lock()
        self.all_busiest = 0

    def __call__(self, job: str, attempt: int, partition: str, drop: Callable[..., None]) -> None:
        with self._lock:
            self._running[partition] = self._running.get(partition, 0) + 1
            self.busiest[partition] = max(self.busiest.get(partition, 0), self._running[partition])
            self.all_busiest = max(self.all_busiest, sum(self._running.values()))
        time.sleep(self._seconds)
        with self._lock:
            self._running[partition] -= 1
            self.done.append((job, attempt))


@contextmanager
def queue_of(database: Database, run: Callable[..., None]) -> Iterator[Queue]:
    queue = Queue(database, 0, run, polling_seconds=0.05, concurrency=4)
    try:
        yield queue
    finally:
        queue.close(0)


def statuses(database: Database) -> dict[str, str]:
    table = "workflow_status" if database.is_sqlite else "dbos.workflow_status"
    with database.read() as connection:
        return {row[0]: row[1] for row in connection.execute(text(f"SELECT workflow_uuid, status FROM {table}"))}


def test_an_id_starts_once_and_a_new_attempt_starts_again(database):
    runs = Runs()
    with queue_of(database, runs) as queue:
        for _ in range(3):
            queue.start("d:triage", "d:triage", 0, "acme/rocket", 1)
        wait(lambda: runs.done == [("d:triage", 0)])
        wait(lambda: queue.ended(["d:triage"]) == {"d:triage": "SUCCESS"})
        # An id that has ended can never be started again: that is why attempts are numbered.
        queue.start("d:triage", "d:triage", 0, "acme/rocket", 1)
        queue.start("d:triage:1", "d:triage", 1, "acme/rocket", 1)
        wait(lambda: len(runs.done) == 2)
        assert runs.done == [("d:triage", 0), ("d:triage", 1)]


def test_one_at_a_time_in_a_repository_and_several_repositories_at_once(database):
    runs = Runs(seconds=0.15)
    with queue_of(database, runs) as queue:
        for number in range(4):
            for name in ("acme/a", "acme/b"):
                queue.start(f"{name}-{number}", f"{name}-{number}", 0, name, 10 - number)
        wait(lambda: len(runs.done) == 8)
    assert runs.busiest == {"acme/a": 1, "acme/b": 1}
    assert runs.all_busiest == 2
    assert [job for job, _ in runs.done if job.startswith("acme/a")] == [f"acme/a-{n}" for n in (3, 2, 1, 0)]


def test_a_job_without_a_repository_is_refused_instead_of_waiting_for_ever(database):
    with queue_of(database, Runs()) as queue, pytest.raises(ValueError, match="wait for ever"):
        queue.start("d:triage", "d:triage", 0, "", 1)


def test_what_is_dropped_never_starts(database):
    gate = threading.Event()
    ran: list[str] = []

    def run(job: str, attempt: int, partition: str, drop: object) -> None:
        gate.wait(10)
        ran.append(job)

    with queue_of(database, run) as queue:
        for name in ("first", "second", "third"):
            queue.start(name, name, 0, "acme/rocket", 1 + len(name))
        wait(lambda: queue.ended(["first"]) == {"first": None} and "PENDING" in statuses(database).values())
        queue.drop(["second"])
        gate.set()
        wait(lambda: len(ran) == 2)
        assert set(ran) == {"first", "third"}
        assert queue.ended(["second", "unknown"]) == {"second": "CANCELLED"}


def test_what_is_stored_is_plain_json_and_no_pickle(database):
    runs = Runs()
    with queue_of(database, runs) as queue:
        queue.start("d:triage", "d:triage", 3, "acme/rocket", 1)
        wait(lambda: runs.done)
        wait(lambda: queue.ended(["d:triage"]) == {"d:triage": "SUCCESS"})
    schema = "" if database.is_sqlite else "dbos."
    with database.read() as connection:
        row = connection.execute(text(f"SELECT serialization, output FROM {schema}workflow_status")).one()
        stored = connection.scalar(text(f"SELECT inputs FROM {schema}workflow_input"))
    assert row.serialization == "portable_json"
    assert json.loads(stored)["positionalArgs"] == ["d:triage", 3, "acme/rocket"]
    assert row.output is None or json.loads(row.output) is None


def test_starting_says_nothing_that_advertises(database, caplog):
    caplog.set_level(logging.DEBUG)
    with queue_of(database, Runs()):
        pass
    assert [record for record in caplog.records if record.name.startswith("dbos")] == []


def test_deliveries_are_remembered_for_longer_than_github_redelivers():
    assert KEEP_SECONDS >= 3 * DAY


def test_a_forgotten_id_can_start_again(database):
    runs = Runs()
    with queue_of(database, runs) as queue:
        queue.start("d:triage", "d:triage", 0, "acme/rocket", 1)
        wait(lambda: queue.ended(["d:triage"]) == {"d:triage": "SUCCESS"})
        queue.forget(["d:triage"])
        assert queue.ended(["d:triage"]) == {}
        queue.start("d:triage", "d:triage", 0, "acme/rocket", 1)
        wait(lambda: len(runs.done) == 2)


def test_the_web_process_never_imports_the_queue():
    code = "import sys, bot.web.app, bot.web.server, bot.cli.web; assert 'dbos' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
