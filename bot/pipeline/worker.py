"""A worker process: takes a lease, runs jobs, recovers jobs of dead workers, and has missed deliveries repeated.

The engine, dbos, recovers the jobs of an executor id when a process with that id starts; it does not know which
processes live. Here each start has a new executor id and holds a lock, and one worker at a time enqueues again the
jobs of ids whose lock is free. GitHub never repeats a failed delivery by itself. One that it is asked to repeat
keeps its id, so it runs nothing if it had arrived after all.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from dbos import DBOS, DBOSConfig, WorkflowSerializationFormat
from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError

from bot.core.errors import ForgeError, OperatorError, TransientError
from bot.pipeline.inbox import Inbox
from bot.pipeline.job import JOBS, NOTICES, WRITES, GaveUp, Job
from bot.pipeline.publisher import APART_SECONDS
from bot.pipeline.queue import NAME, VERSION, WORKFLOW, Queue, silence_dbos
from bot.pipeline.retention import Retention
from bot.pipeline.runner import Runner
from bot.pipeline.store import Ledger
from bot.pipeline.store.counters import CounterBuffer
from bot.pipeline.store.database import NO_PREPARED_STATEMENTS, Database, HeldLock, migrating
from bot.pipeline.store.tables import DELIVERIES, WORKERS

if TYPE_CHECKING:
    from bot.github.app import GitHubApp, HookDelivery

#: Seconds between two deletions of old rows, and between two looks for deliveries that failed.
SWEEP_SECONDS = 600.0
RECONCILE_SECONDS = 300.0
#: Time for running jobs at the end, seconds: with the rest of the shutdown less than 30.
DRAIN_SECONDS = 22.0
#: Workers on one database.
MAX_WORKERS = 64
#: Installations that a worker writes to at once, and seconds between two polls for writes: just over the second
#: between two writes of one installation, so that every poll may start its next one.
WRITE_CONCURRENCY, WRITE_SECONDS = 8, 1.1
#: Notices that are sent at the same time. They may wait: their queue is polled every fourth time.
NOTICE_CONCURRENCY, NOTICE_POLLS = 2, 4

#: GitHub keeps deliveries for about this long.
REDELIVERY_LIMIT = timedelta(days=3)
#: A delivery is repeated at once after its first failure, then after pauses that double: about twelve times in
#: three days.
FIRST_PAUSE = timedelta(minutes=1)

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Lease:
    """A worker's number and executor id. The number is used again after a death, the id never."""

    number: int
    executor: str
    lock: HeldLock


def take_lease(database: Database) -> Lease:
    """Take the first free number. Raises OperatorError if there is none."""
    for number in range(MAX_WORKERS):
        lock = database.take_lock(_lock_name(number))
        if lock is not None:
            return Lease(number, f"worker-{number}-{uuid.uuid4().hex[:12]}", lock)
    raise OperatorError(f"{MAX_WORKERS} workers run on this database already")


def _lock_name(number: int) -> str:
    return f"worker-{number}"


class Leadership:
    """Decides by a lock which worker does the work that one does for all."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name
        self._lock: HeldLock | None = None

    def ours(self) -> bool:
        """Take the lock if it is free. Return True if this process holds it."""
        if self._lock is not None and not self._lock.alive():
            self.give_up()
        self._lock = self._lock or self._database.take_lock(self._name)
        return self._lock is not None

    def give_up(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class Recovery:
    """Records that this worker lives, and enqueues the jobs of dead ones again."""

    def __init__(self, database: Database, queue: Queue, lease: Lease) -> None:
        self._database = database
        self._queue = queue
        self._lease = lease
        self._started = time.time()

    def report_alive(self) -> None:
        """Record that this worker lives; the first time before it runs a job."""
        values = {
            "name": f"{platform.node()}:{os.getpid()}",
            "executor": self._lease.executor,
            "started_at": self._started,
            "seen_at": self._database.now(),
        }
        insert = self._database.insert(WORKERS).values(lease=self._lease.number, **values)
        self._database.execute(insert.on_conflict_do_update(index_elements=["lease"], set_=values))

    def report_end(self) -> None:
        self._database.execute(delete(WORKERS).where(WORKERS.c.lease == self._lease.number))

    def take_over(self) -> int:
        """Enqueue the jobs of dead workers again, and return their number. One worker at a time may do so."""
        running = self._queue.running()
        if not running:
            return 0
        # Read after the running jobs: each of those has a row here.
        rows = self._database.rows(select(WORKERS.c.lease, WORKERS.c.executor))
        alive = {row.executor for row in rows if self._is_locked(row.lease)} | {self._lease.executor}
        orphans = [(job, executor) for job, executor in running if executor not in alive]
        for job, executor in orphans:
            _log.warning("took_over", executor=executor, job=job.id)
            self._queue.recover(job)
        return len(orphans)

    def _is_locked(self, number: int) -> bool:
        lock = self._database.take_lock(_lock_name(number))
        if lock is None:
            return True
        lock.release()
        return False


@dataclass(frozen=True)
class Pace:
    """Limits of a worker; the seconds between writes of one installation, between polls, and between rounds."""

    concurrency: int = 8
    apart: float = APART_SECONDS
    polling_seconds: float = 1.25
    round_seconds: float = 5.0


class Consumer:
    """Runs jobs in this process, one object at a time: dbos keeps its state in module globals."""

    def __init__(self, database: Database, name: str, run: Callable[[Job], str], pace: Pace) -> None:
        """Start to run jobs under an executor ``name`` that was never used before.

        ``run`` is called in threads, in at most ``pace.concurrency`` of them for decisions. It returns the outcome
        of the job; an exception makes it a failed job. Attempts to publish of one installation start
        ``pace.apart`` seconds after each other, on any worker.
        """
        silence_dbos()
        with migrating(database):
            DBOS(config=_config(database, name, pace.concurrency))

            @DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)
            def job(facts: dict[str, Any]) -> str:
                try:
                    return database.cut(run(Job(**facts)))
                except GaveUp as error:
                    raise GaveUp(database.cut(str(error))) from None

            DBOS.launch()
        _register_queues(pace)

    def close(self, drain_seconds: float) -> None:
        """Start no more jobs, give running ones ``drain_seconds`` to end, and disconnect."""
        DBOS.destroy(workflow_completion_timeout_sec=int(drain_seconds), destroy_registry=True)


def _register_queues(pace: Pace) -> None:
    one_write: Any = {"limit": 1, "period": pace.apart} if pace.apart > 0 else None
    for queue, most, limiter, seconds in (
        (JOBS, pace.concurrency, None, pace.polling_seconds),
        (WRITES, WRITE_CONCURRENCY, one_write, min(WRITE_SECONDS, pace.polling_seconds)),
        (NOTICES, NOTICE_CONCURRENCY, None, NOTICE_POLLS * pace.polling_seconds),
    ):
        DBOS.register_queue(
            queue,
            worker_concurrency=most,
            partition_concurrency=1,
            partition_limiter=limiter,
            polling_interval_sec=seconds,
            on_conflict="always_update",
        )


def _config(database: Database, name: str, concurrency: int) -> DBOSConfig:
    return {
        "name": NAME,
        "system_database_url": database.url,
        "executor_id": name,
        "application_version": VERSION,
        "use_listen_notify": False,
        "sys_db_pool_size": concurrency + WRITE_CONCURRENCY + NOTICE_CONCURRENCY + 4,
        "db_engine_kwargs": {} if database.is_sqlite else {"connect_args": NO_PREPARED_STATEMENTS},
        "log_level": "WARNING",
        "enable_otlp": False,
    }


@dataclass(frozen=True)
class Worker:
    """Runs jobs in this process. There can be one worker in a process, and many on one database."""

    ledger: Ledger
    queue: Queue
    inbox: Inbox
    runner: Runner
    counts: CounterBuffer
    pace: Pace
    keep_days: int

    def run(self, stop: threading.Event) -> bool:
        """Work until ``stop`` is set, then let running jobs end. Return False if the lease was lost."""
        database = self.ledger.database
        lease = take_lease(database)
        recovery = Recovery(database, self.queue, lease)
        recovery.report_alive()
        run = partial(self.runner.run, executor=lease.executor)
        executor = Consumer(database, lease.executor, run, self.pace)
        retention = Retention(database, self.queue, self.keep_days)
        _log.info("worker_started", worker=lease.executor)
        try:
            self._loop(stop, lease, recovery, retention)
        finally:
            lost = not lease.lock.alive()
            _log.info("worker_stops", worker=lease.executor, lost=lost)
            executor.close(0 if lost else DRAIN_SECONDS)
            if not lost:
                _guarded(recovery.report_end)
            _guarded(lambda: self.counts.flush(self.ledger.counters))
            lease.lock.release()
        return not lost

    def _loop(self, stop: threading.Event, lease: Lease, recovery: Recovery, retention: Retention) -> None:
        """Do periodic work until ``stop`` is set or the lease is lost."""
        # One worker does the last three for all: of two, the second could recover a job again that runs already.
        leadership = Leadership(self.ledger.database, "dispatcher")
        swept_at = float("-inf")
        try:
            while not stop.wait(self.pace.round_seconds):
                if not lease.lock.alive():
                    return
                _guarded(recovery.report_alive)
                _guarded(lambda: self.counts.flush(self.ledger.counters))
                if not _guarded(leadership.ours):
                    continue
                _guarded(lambda: self.inbox.take_up(retention.uninstalled))
                _guarded(recovery.take_over)
                if time.monotonic() - swept_at >= SWEEP_SECONDS:
                    swept_at = time.monotonic()
                    _guarded(retention.sweep)
        finally:
            leadership.give_up()


def _guarded(act: Callable[[], T]) -> T | None:
    """Return the result of ``act``, or None after logging its error: an outage of the database ends no worker."""
    try:
        return act()
    except SQLAlchemyError as error:
        _log.warning("database_trouble", error=type(error).__name__)
    except Exception:  # noqa: BLE001 - the worker's loop: what goes wrong in one round must not end all of them
        _log.exception("round_failed")
    return None


def is_due(delivery: HookDelivery, now: datetime) -> bool:
    """Return True if the pause after a delivery's last failure is over."""
    if delivery.attempts == 1:
        return True
    return now - delivery.delivered_at >= FIRST_PAUSE * (1 << min(delivery.attempts - 1, 12))


class Reconciler:
    """Asks GitHub to repeat failed deliveries, in rounds in a thread of its own; one worker at a time does so."""

    def __init__(self, github: GitHubApp, database: Database) -> None:
        self._github = github
        self._database = database
        self._leadership = Leadership(database, "reconciler")

    def run(self, stop: threading.Event, seconds: float = RECONCILE_SECONDS) -> None:
        """Do a round at once and then every ``seconds``, until ``stop`` is set."""
        try:
            while True:
                try:
                    self.round()
                except (TransientError, ForgeError) as error:
                    _log.warning("reconciling_failed", error=str(error))
                except SQLAlchemyError as error:
                    _log.warning("reconciling_failed", error=type(error).__name__)
                if stop.wait(seconds):
                    return
        finally:
            self._leadership.give_up()

    def round(self) -> int:
        """Ask for all deliveries that are due, and return their number. Raises TransientError, ForgeError."""
        if not self._leadership.ours():
            return 0
        now, count = datetime.now(UTC), 0
        for delivery in self._github.failed_deliveries(now - REDELIVERY_LIMIT):
            # A delivery that was stored although GitHub counts it as failed was answered too late.
            if is_due(delivery, now) and not self._arrived(delivery.guid):
                self._github.redeliver(delivery.id)
                count += 1
        if count:
            _log.info("redelivered", count=count)
        return count

    def ask_again(self, since: datetime) -> int:
        """Ask for every delivery since then that is not stored, and return their number.

        After a backup was restored: GitHub counts what was stored after the backup as delivered. Raises
        TransientError, ForgeError.
        """
        missing = [
            delivery
            for delivery in self._github.deliveries(since)
            if not (delivery.ignored or self._arrived(delivery.guid))
        ]
        for delivery in missing:
            self._github.redeliver(delivery.id)
        return len(missing)

    def _arrived(self, guid: str) -> bool:
        return self._database.scalar(select(DELIVERIES.c.seq).where(DELIVERIES.c.id == guid)) is not None
