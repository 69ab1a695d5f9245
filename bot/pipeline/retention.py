"""Forgetting what nobody needs any more, one batch after the other. The engine keeps everything for ever.

To forget a delivery is to forget its id, so nothing goes before GitHub's own window for redelivery has passed.
What was decided about a subject is the memory that handlers work from: it stays while the subject is open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

import structlog
from sqlalchemy import ColumnElement, CursorResult, Table, and_, delete, exists, or_, select

from bot.pipeline.job import DEAD, ENDED, OPEN
from bot.pipeline.queue import Queue
from bot.pipeline.store.database import Database
from bot.pipeline.store.tables import BUDGETS, CLOSED, DECISIONS, DELIVERIES, FATES, MODEL_CALLS, POSTINGS, SIGNALS

DAY = 24 * 3600.0
#: GitHub redelivers for about three days; a week leaves room for somebody to look.
KEEP_SECONDS = 7 * DAY
#: Failed jobs wait for a person.
KEEP_DEAD_SECONDS = 30 * DAY
#: Decisions and replies of models, unless the operator says otherwise, days.
KEEP_DAYS = 180
BATCH = 200

_log = structlog.get_logger(__name__)


class Retention:
    """Deletes what is past its time."""

    def __init__(
        self,
        database: Database,
        queue: Queue,
        *,
        keep_days: int = KEEP_DAYS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``keep_days`` is for decisions and replies; 0 keeps them for ever."""
        self._database = database
        self._queue = queue
        self._keep_days = keep_days
        self._clock = clock

    def sweep(self) -> int:
        """Delete one batch of everything; how many rows that were."""
        now = self._clock()
        ended = self._queue.ended_before(now - KEEP_SECONDS, ENDED, BATCH)
        dead = self._queue.ended_before(now - KEEP_DEAD_SECONDS, DEAD, BATCH)
        self._queue.forget((*ended, *dead))
        count = len(ended) + len(dead) + self._deliveries(now - KEEP_SECONDS) + self._budgets(now)
        if self._keep_days:
            count += self._memory(now - self._keep_days * DAY)
        return count

    def uninstalled(self, account: str, repositories: Collection[str]) -> None:
        """Delete all that is known of these repositories, and of every one of an account where it is named.

        What they spent today stays: a repository that is removed and added again must not get a new budget.
        """
        names = set(repositories)
        today = _day(self._clock())
        if account:
            with self._database.read() as connection:
                for table in _ABOUT_REPOSITORIES:
                    mine = table.c.repository.startswith(f"{account}/", autoescape=True)
                    names |= set(connection.scalars(select(table.c.repository).where(mine).distinct()))
        for name in sorted(names):
            self._queue.forget_repository(name)
            with self._database.write() as connection:
                for table in _ABOUT_REPOSITORIES:
                    connection.execute(delete(table).where(table.c.repository == name))
                connection.execute(
                    delete(BUDGETS).where(BUDGETS.c.scope == f"repository:{name}", BUDGETS.c.day < today)
                )
        if names:
            _log.info("repositories_forgotten", count=len(names))

    def _budgets(self, now: float) -> int:
        """What was spent on days that are long over: a budget is for a day."""
        gone = delete(BUDGETS).where(BUDGETS.c.day < _day(now - KEEP_SECONDS))
        with self._database.write() as connection:
            result: CursorResult[Any] = connection.execute(gone)
        return result.rowcount

    def _deliveries(self, before: float) -> int:
        """Deliveries whose jobs have all been forgotten; what is unfinished or dead needs its event."""
        needed = {job.delivery for job in self._queue.list((*OPEN, *DEAD), limit=10_000)}
        old = (
            select(DELIVERIES.c.id)
            .where(DELIVERIES.c.received_at < before, DELIVERIES.c.dispatched_at.is_not(None))
            .order_by(DELIVERIES.c.seq)
            .limit(BATCH + len(needed))
        )
        with self._database.read() as connection:
            found = [each for each in connection.scalars(old) if each not in needed][:BATCH]
        with self._database.write() as connection:
            connection.execute(delete(DELIVERIES).where(DELIVERIES.c.id.in_(found)))
        return len(found)

    def _memory(self, before: float) -> int:
        """Replies of models, and what was decided and written on subjects that have been closed for as long."""
        # On a subject without a number, the default branch for one, the last decision of a kind is the memory.
        later = DECISIONS.alias("later")
        replaced = and_(
            DECISIONS.c.number == 0,
            exists().where(
                later.c.repository == DECISIONS.c.repository,
                later.c.number == 0,
                later.c.kind == DECISIONS.c.kind,
                later.c.id > DECISIONS.c.id,
            ),
        )
        over, forgotten = _closed(DECISIONS, before), _closed(POSTINGS, before)
        return (
            self._delete(MODEL_CALLS, MODEL_CALLS.c.created_at < before)
            + self._delete(DECISIONS, and_(DECISIONS.c.created_at < before, or_(over, replaced)))
            + self._delete(POSTINGS, and_(POSTINGS.c.updated_at < before, forgotten))
            + self._forget_closed(before)
        )

    def _delete(self, table: Table, where: Any) -> int:
        some = select(table.c.id).where(where).order_by(table.c.id).limit(BATCH).scalar_subquery()
        with self._database.write() as connection:
            gone: CursorResult[Any] = connection.execute(delete(table).where(table.c.id.in_(some)))
        return gone.rowcount

    def _forget_closed(self, before: float) -> int:
        """Closed subjects of which nothing is left."""
        gone = delete(CLOSED).where(CLOSED.c.closed_at < before, ~exists().where(_same_subject(DECISIONS)))
        with self._database.write() as connection:
            result: CursorResult[Any] = connection.execute(gone)
        return result.rowcount


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _closed(table: Table, before: float) -> ColumnElement[bool]:
    """Whether the subject of a row was closed before a moment."""
    return exists().where(_same_subject(table), CLOSED.c.closed_at < before)


def _same_subject(table: Table) -> ColumnElement[bool]:
    return and_(CLOSED.c.repository == table.c.repository, CLOSED.c.number == table.c.number)


_ABOUT_REPOSITORIES: tuple[Table, ...] = (DELIVERIES, DECISIONS, MODEL_CALLS, POSTINGS, SIGNALS, FATES, CLOSED)
