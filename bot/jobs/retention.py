"""Forgetting ended jobs, one batch after the other.

To forget a delivery is to forget its id, so nothing goes before GitHub's own window for redelivery has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import delete, exists, select

from bot.jobs.job import OPEN, workflow_id
from bot.jobs.queue import Queue
from bot.ledger.database import Database
from bot.ledger.tables import DELIVERIES, JOBS

DAY = 24 * 3600.0
#: GitHub redelivers for about three days; a week leaves room for somebody to look.
KEEP_SECONDS = 7 * DAY
#: Dead letters wait for a person.
KEEP_DEAD_SECONDS = 30 * DAY
BATCH = 200


class Retention:
    """Deletes old deliveries with their jobs. Decisions, model calls and postings stay: they are the record."""

    def __init__(
        self,
        database: Database,
        queue: Queue,
        *,
        keep: float = KEEP_SECONDS,
        keep_dead: float = KEEP_DEAD_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._queue = queue
        self._keep = keep
        self._keep_dead = keep_dead
        self._clock = clock

    def sweep(self) -> int:
        """Delete one batch; how many deliveries went."""
        now = self._clock()
        mine = JOBS.c.delivery == DELIVERIES.c.id
        unfinished = exists().where(mine, JOBS.c.state.in_(OPEN))
        waiting = exists().where(mine, JOBS.c.state == "dead", JOBS.c.finished_at > now - self._keep_dead)
        old = (
            select(DELIVERIES.c.id)
            .where(
                DELIVERIES.c.received_at < now - self._keep,
                DELIVERIES.c.dispatched_at.is_not(None),
                ~unfinished,
                ~waiting,
            )
            .order_by(DELIVERIES.c.seq)
            .limit(BATCH)
        )
        with self._database.read() as connection:
            deliveries = list(connection.scalars(old))
            jobs = connection.execute(
                select(JOBS.c.id, JOBS.c.attempt).where(JOBS.c.delivery.in_(deliveries))
            ).all()
        # The queue first: a crash in between leaves our rows to find the rest by.
        self._queue.forget([workflow_id(job.id, number) for job in jobs for number in range(job.attempt + 1)])
        with self._database.write() as connection:
            connection.execute(delete(JOBS).where(JOBS.c.delivery.in_(deliveries)))
            connection.execute(delete(DELIVERIES).where(DELIVERIES.c.id.in_(deliveries)))
        return len(deliveries)
