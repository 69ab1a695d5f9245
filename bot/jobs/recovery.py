"""Leases of workers, and taking over from those that died.

The engine recovers what a process of the same name was running, when that name is launched again; it does not
know who is alive. Here every start has a name of its own, leased for as long as the process holds a lock, and one
worker at a time puts back what was begun under a name that nobody holds.
"""

from __future__ import annotations

import os
import platform
import time
import uuid

import structlog
from sqlalchemy import delete, select

from bot.errors import OperatorError
from bot.jobs.queue import Queue
from bot.store.database import Database
from bot.store.locks import HeldLock, Locks
from bot.store.tables import WORKERS

#: Workers on one database.
MAX_WORKERS = 64
#: Deaths of workers that one attempt may bring about before it is not started any more.
MAX_DEATHS = 8

_log = structlog.get_logger(__name__)


class Lease:
    """A worker's place and name. The place is taken again after a death, the name never."""

    def __init__(self, number: int, lock: HeldLock) -> None:
        self.number = number
        self.executor = f"worker-{number}-{uuid.uuid4().hex[:12]}"
        self._lock = lock

    def alive(self) -> bool:
        """Whether it is still ours; a worker that lost its lease has to end."""
        return self._lock.alive()

    def release(self) -> None:
        """Let somebody else have the place."""
        self._lock.release()


def take_lease(locks: Locks) -> Lease:
    """The first free place. Raises OperatorError where all are taken."""
    for number in range(MAX_WORKERS):
        lock = locks.take(_lock_name(number))
        if lock is not None:
            return Lease(number, lock)
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
