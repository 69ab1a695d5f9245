"""The jobs' own table: their states, and the few moves between them, each safe against a second mover."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.engine import CursorResult

from bot.errors import OperatorError
from bot.jobs.job import OPEN, Job, State
from bot.ledger.database import Database
from bot.ledger.tables import DELIVERIES, JOBS, WORKERS

_COLUMNS = [JOBS.c[name] for name in Job.model_fields]


class Jobs:
    """Reading and moving jobs; nothing here runs one."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self.clock = clock

    def get(self, job: str) -> Job:
        """Raises OperatorError where there is none of that id."""
        found = self._select(JOBS.c.id == job, limit=1)
        if not found:
            raise OperatorError(f"no job {job!r}: ids are <delivery>:<task>, see 'bouncer jobs list'")
        return found[0]

    def list(self, states: Sequence[State] = (), repository: str = "", limit: int = 50) -> tuple[Job, ...]:
        """Jobs in these states (all where none is named), newest first."""
        where: list[ColumnElement[bool]] = [JOBS.c.state.in_(states)] if states else []
        if repository:
            where.append(JOBS.c.repository == repository)
        return self._select(*where, limit=limit)

    def event(self, job: Job) -> str:
        """The event that the job is about, as stored JSON."""
        with self._database.read() as connection:
            return str(
                connection.execute(select(DELIVERIES.c.event).where(DELIVERIES.c.id == job.delivery)).scalar_one()
            )

    def counts(self) -> dict[State, int]:
        """How many jobs there are in each state that has any."""
        with self._database.read() as connection:
            rows = connection.execute(
                select(JOBS.c.state, func.count().label("jobs")).group_by(JOBS.c.state)
            ).all()
        return {row.state: row.jobs for row in rows}

    def untaken(self) -> int:
        """Recorded deliveries that no worker has made jobs of yet: many where none is running."""
        waiting = select(func.count()).select_from(DELIVERIES).where(DELIVERIES.c.dispatched_at.is_(None))
        with self._database.read() as connection:
            return int(connection.scalar(waiting) or 0)

    def oldest_age(self) -> float:
        """Seconds that the longest-overdue job has been due, or an untaken delivery waits; 0 where none does."""
        jobs = select(func.min(JOBS.c.due)).where(JOBS.c.state.in_(("waiting", "queued")))
        deliveries = select(func.min(DELIVERIES.c.received_at)).where(DELIVERIES.c.dispatched_at.is_(None))
        with self._database.read() as connection:
            since = [each for each in (connection.scalar(jobs), connection.scalar(deliveries)) if each is not None]
        return max(0.0, self.clock() - min(since)) if since else 0.0

    def worker_age(self) -> float | None:
        """Seconds since any worker was seen; None where there never was one."""
        with self._database.read() as connection:
            seen = connection.scalar(select(func.max(WORKERS.c.seen_at)))
        return None if seen is None else max(0.0, self.clock() - seen)

    def claim(self, job: str, attempt: int) -> Job | None:
        """Begin an attempt; None where it is no longer wanted. A recovered attempt begins again."""
        moved = self._move(job, attempt, OPEN, state="running", started_at=self.clock())
        return self.get(job) if moved else None

    def next_queued(self, partition: str) -> Job | None:
        """The first queued job in a subject's line."""
        repository, _, number = partition.rpartition("#")
        query = (
            select(*_COLUMNS)
            .where(JOBS.c.repository == repository, JOBS.c.number == int(number), JOBS.c.state == "queued")
            .order_by(JOBS.c.seq, JOBS.c.position)
            .limit(1)
        )
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Job(**row._mapping)

    def wanted(self, job: str, attempt: int) -> bool:
        """Whether a running attempt should go on: nobody cancelled or superseded it meanwhile."""
        found = self._select(JOBS.c.id == job, JOBS.c.attempt == attempt, JOBS.c.state == "running", limit=1)
        return bool(found)

    def finish(self, job: str, attempt: int, outcome: str) -> None:
        """It ran to its end."""
        self._move(
            job,
            attempt,
            ("running",),
            state="done",
            outcome=outcome,
            error=None,
            tries=0,
            finished_at=self.clock(),
        )

    def bury(self, job: str, attempt: int, error: str) -> None:
        """It failed for good: a dead letter, kept until somebody retries it."""
        self._move(job, attempt, OPEN, state="dead", error=_short(error), finished_at=self.clock())

    def again(self, job: str, attempt: int, due: float, error: str) -> None:
        """It failed, and is to be tried again as a new attempt at ``due``."""
        self._update(
            (JOBS.c.id == job, JOBS.c.attempt == attempt, JOBS.c.state.in_(OPEN)),
            state="waiting",
            due=due,
            attempt=attempt + 1,
            tries=JOBS.c.tries + 1,
            error=_short(error),
        )

    def cancel(self, job: str) -> Job:
        """Stop a job: a pending one never starts, a running one writes nothing more."""
        now = self.clock()
        if not self._update((JOBS.c.id == job, JOBS.c.state.in_(OPEN)), state="cancelled", finished_at=now):
            raise OperatorError(f"job {job} cannot be cancelled: it is {self.get(job).state}")
        return self.get(job)

    def retry(self, job: str) -> Job:
        """Start a dead or cancelled job anew; what it decided, and what it paid a model for, is kept."""
        ended = ("dead", "cancelled")
        if not self._update((JOBS.c.id == job, JOBS.c.state.in_(ended)), **self._anew(self.clock())):
            raise OperatorError(f"job {job} cannot be retried: it is {self.get(job).state}")
        return self.get(job)

    def revive(self, job: str, due: float) -> int:
        """Start anew what ``job`` superseded, because ``job`` came to nothing; how many were."""
        return self._update((JOBS.c.superseded_by == job, JOBS.c.state == "superseded"), **self._anew(due))

    @staticmethod
    def _anew(due: float) -> dict[str, Any]:
        return {
            "state": "waiting",
            "due": due,
            "attempt": JOBS.c.attempt + 1,
            "tries": 0,
            "superseded_by": None,
            "finished_at": None,
        }

    def _move(self, job: str, attempt: int, states: Sequence[State], **values: Any) -> int:
        return self._update((JOBS.c.id == job, JOBS.c.attempt == attempt, JOBS.c.state.in_(states)), **values)

    def _update(self, where: Sequence[ColumnElement[bool]], **values: Any) -> int:
        with self._database.write() as connection:
            result: CursorResult[Any] = connection.execute(update(JOBS).where(*where).values(**values))
            return result.rowcount

    def _select(self, *where: ColumnElement[bool], limit: int) -> tuple[Job, ...]:
        query = select(*_COLUMNS).where(*where).order_by(JOBS.c.seq.desc(), JOBS.c.position.desc()).limit(limit)
        with self._database.read() as connection:
            return tuple(Job(**row._mapping) for row in connection.execute(query))


def _short(error: str) -> str:
    return error.replace("\0", "")[:1000]
