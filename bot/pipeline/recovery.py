"""What was dropped is taken up again: jobs of workers that died, and what GitHub could not deliver.

The engine recovers what a process of the same name was running, when that name is launched again; it does not
know who is alive. Here every start has a name of its own, leased for as long as the process holds a lock, and one
worker at a time puts back what was begun under a name that nobody holds. GitHub itself never delivers twice, and
a delivery that it is asked for again keeps its id: one which arrived after all is answered as seen, and runs
nothing.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError

from bot.core.errors import ForgeError, OperatorError, TransientError
from bot.pipeline.queue import Queue
from bot.pipeline.store.database import Database
from bot.pipeline.store.locks import HeldLock, Leadership, Locks
from bot.pipeline.store.tables import DELIVERIES, WORKERS

if TYPE_CHECKING:
    from bot.github.app import GitHubApp, HookDelivery

#: Workers on one database.
MAX_WORKERS = 64
#: Deaths of workers that one attempt may bring about before it is not started any more.
MAX_DEATHS = 8

#: GitHub keeps deliveries for about this long.
KEPT = timedelta(days=3)
#: Between two rounds, seconds.
ROUND_SECONDS = 300.0
#: After the first failure a delivery is tried again at once, then after twice as long each time: some twelve
#: times in three days, however long the receiver is away.
FIRST_PAUSE = timedelta(minutes=1)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Lease:
    """A worker's place and name. The place is taken again after a death, the name never."""

    number: int
    executor: str
    lock: HeldLock


def take_lease(locks: Locks) -> Lease:
    """The first free place. Raises OperatorError where all are taken."""
    for number in range(MAX_WORKERS):
        lock = locks.take(_lock_name(number))
        if lock is not None:
            return Lease(number, f"worker-{number}-{uuid.uuid4().hex[:12]}", lock)
    raise OperatorError(f"{MAX_WORKERS} workers run on this database already")


def _lock_name(number: int) -> str:
    return f"worker-{number}"


class Recovery:
    """Says that this worker lives, and puts back what dead ones were running."""

    def __init__(self, database: Database, queue: Queue, lease: Lease) -> None:
        self._database = database
        self._queue = queue
        self._lease = lease
        self._started = time.time()

    def seen(self) -> None:
        """Note that this worker lives; the first time before it runs anything."""
        values = {
            "name": f"{platform.node()}:{os.getpid()}",
            "executor": self._lease.executor,
            "started_at": self._started,
            "seen_at": time.time(),
        }
        insert = self._database.insert(WORKERS).values(lease=self._lease.number, **values)
        with self._database.write() as connection:
            connection.execute(insert.on_conflict_do_update(index_elements=["lease"], set_=values))

    def gone(self) -> None:
        """Note that this worker ended on purpose."""
        with self._database.write() as connection:
            connection.execute(delete(WORKERS).where(WORKERS.c.lease == self._lease.number))

    def take_over(self) -> int:
        """Queue again what workers were running that are gone; how many jobs that was. One worker at a time."""
        running = self._queue.running()
        if not running:
            return 0
        alive = self._alive()
        orphans = [(job, executor) for job, executor in running if executor not in alive]
        for job, executor in orphans:
            _log.warning("took_over", executor=executor, job=job.id)
            self._queue.recover(job)
        return len(orphans)

    def _alive(self) -> frozenset[str]:
        """The names whose place somebody holds; asked after what is running, and so never too early."""
        with self._database.read() as connection:
            rows = connection.execute(select(WORKERS.c.lease, WORKERS.c.executor)).all()
        return frozenset(row.executor for row in rows if self._held(row.lease)) | {self._lease.executor}

    def _held(self, number: int) -> bool:
        lock = self._database.locks.take(_lock_name(number))
        if lock is None:
            return True
        lock.release()
        return False


def due(delivery: HookDelivery, now: datetime) -> bool:
    """Whether a failed delivery has rested for long enough to be tried again."""
    if delivery.attempts == 1:
        return True
    return now - delivery.delivered_at >= FIRST_PAUSE * (1 << min(delivery.attempts - 1, 12))


class Reconciler:
    """Has what GitHub could not deliver delivered again, in rounds in a thread of its own.

    Of several workers only the one that holds the lock does them.
    """

    def __init__(self, github: GitHubApp, database: Database) -> None:
        self._github = github
        self._database = database
        self._leadership = Leadership(database.locks, "reconciler")

    def run(self, stop: threading.Event, seconds: float = ROUND_SECONDS) -> None:
        """A round at once and then every ``seconds``, until ``stop`` is set."""
        try:
            while True:
                self._guarded_round()
                if stop.wait(seconds):
                    return
        finally:
            self._leadership.give_up()

    def round(self) -> int:
        """Have everything that is due delivered again; how many there were. Raises TransientError, ForgeError."""
        if not self._leadership.ours():
            return 0
        now, count = datetime.now(UTC), 0
        for delivery in self._github.failed_deliveries(now - KEPT):
            # What was recorded although GitHub counts it as failed was answered too late, no more.
            if due(delivery, now) and not self._arrived(delivery.guid):
                self._github.redeliver(delivery.id)
                count += 1
        if count:
            _log.info("redelivered", count=count)
        return count

    def _arrived(self, guid: str) -> bool:
        """Whether a delivery of that id was recorded, by whichever attempt."""
        with self._database.read() as connection:
            return connection.execute(select(DELIVERIES.c.seq).where(DELIVERIES.c.id == guid)).first() is not None

    def _guarded_round(self) -> None:
        try:
            self.round()
        except (TransientError, ForgeError) as error:
            _log.warning("reconciling_failed", error=str(error))
        except SQLAlchemyError as error:
            _log.warning("reconciling_failed", error=type(error).__name__)
