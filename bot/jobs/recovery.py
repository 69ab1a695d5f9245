"""Taking over from workers that died: slots that only one worker can hold, and a look at who is gone."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable

import structlog
from sqlalchemy import delete, select

from bot.errors import OperatorError
from bot.jobs.job import Job
from bot.jobs.queue import MAX_STARTS, Queue, executor
from bot.jobs.store import Jobs
from bot.ledger.database import Database
from bot.ledger.locks import Held, Locks
from bot.ledger.tables import JOBS, WORKERS

#: Workers on one database.
MAX_WORKERS = 64
#: A job that the queue has known for less than this is not looked at, seconds.
SETTLED_SECONDS = 30.0
BATCH = 200

_log = structlog.get_logger(__name__)


class Slot:
    """A worker's place. Its number is the worker's name in the queue: never shared, taken again after a death."""

    def __init__(self, number: int, lock: Held) -> None:
        self.number = number
        self._lock = lock

    def alive(self) -> bool:
        """Whether it is still ours; a worker that lost its slot has to end."""
        return self._lock.alive()

    def release(self) -> None:
        self._lock.release()


def take_slot(locks: Locks) -> Slot:
    """The first free slot. Raises OperatorError where all are taken."""
    for number in range(MAX_WORKERS):
        lock = locks.take(executor(number))
        if lock is not None:
            return Slot(number, lock)
    raise OperatorError(f"{MAX_WORKERS} workers run on this database already")


class Reaper:
    """Puts back what dead workers were running, and sets right what the queue gave up on."""

    def __init__(
        self, database: Database, queue: Queue, jobs: Jobs, slot: Slot, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._queue = queue
        self._jobs = jobs
        self._slot = slot
        self._clock = clock
        self._started = clock()

    def seen(self) -> None:
        """Note that this worker lives."""
        now = self._clock()
        name = f"{platform.node()}:{os.getpid()}"
        insert = self._database.insert(WORKERS).values(
            slot=self._slot.number, name=name, started_at=self._started, seen_at=now
        )
        fresh = {"name": name, "started_at": self._started, "seen_at": now}
        with self._database.write() as connection:
            connection.execute(insert.on_conflict_do_update(index_elements=["slot"], set_=fresh))

    def gone(self) -> None:
        """Note that this worker ended on purpose."""
        with self._database.write() as connection:
            connection.execute(delete(WORKERS).where(WORKERS.c.slot == self._slot.number))

    def take_over(self) -> int:
        """Queue again what workers were running whose slot is free; how many jobs that was."""
        count = 0
        for name in self._queue.executors() - {executor(self._slot.number)}:
            # Holding the slot keeps a new worker from starting in the middle of this.
            lock = self._database.locks.take(name)
            if lock is None:
                continue
            try:
                found = self._queue.recover([name])
            finally:
                lock.release()
            _log.warning("took_over", executor=name, jobs=found)
            count += found
        return count

    def settle(self) -> int:
        """Move on the jobs that the queue has ended, or lost, behind our back; how many there were."""
        before = self._clock() - SETTLED_SECONDS
        query = (
            select(*(JOBS.c[name] for name in Job.model_fields))
            .where(JOBS.c.state.in_(("queued", "running")), JOBS.c.due < before)
            .limit(BATCH)
        )
        with self._database.read() as connection:
            jobs = {job.workflow: job for job in (Job(**row._mapping) for row in connection.execute(query))}
        ended = self._queue.ended(list(jobs))
        stuck = [job for job in jobs.values() if ended.get(job.workflow, "LOST") is not None]
        for job in stuck:
            self._settle(job, ended.get(job.workflow) or "LOST")
        return len(stuck)

    def _settle(self, job: Job, end: str) -> None:
        _log.error("job_astray", job=job.id, attempt=job.attempt, end=end)
        if end == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
            self._jobs.bury(job.id, job.attempt, f"its worker died {MAX_STARTS + 1} times while it ran")
        else:
            self._jobs.again(job.id, job.attempt, self._clock(), f"the queue ended it: {end}")
