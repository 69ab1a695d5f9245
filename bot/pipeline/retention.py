"""Deletion of old rows in batches: deliveries, jobs (the engine keeps them forever), decisions, model calls.

A delivery is kept until GitHub cannot repeat it any more, because its row is how a repetition is recognised.
Decisions about a subject are the memory of features, and are kept while the subject is open.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import structlog
from sqlalchemy import ColumnElement, Table, and_, delete, exists, or_, select, true

from bot.pipeline.job import DEAD, ENDED, KEEP_SECONDS, OPEN
from bot.pipeline.queue import Queue
from bot.pipeline.store.database import Database
from bot.pipeline.store.installations import names_of
from bot.pipeline.store.issues import KEEP_SECONDS as KEEP_ISSUE_SECONDS
from bot.pipeline.store.tables import (
    ABOUT_REPOSITORIES,
    BUDGETS,
    CLOSED,
    DECISIONS,
    DELIVERIES,
    ISSUE_TEXTS,
    MODEL_CALLS,
    POSTINGS,
)

DAY = 24 * 3600.0
#: Dead jobs wait for an operator.
KEEP_DEAD_SECONDS = 30 * DAY
#: Decisions and replies of models, unless the operator says otherwise, days.
KEEP_DAYS = 180
BATCH = 200

_log = structlog.get_logger(__name__)


class Retention:
    """Deletes old rows, and all rows of repositories from which the app was removed."""

    def __init__(self, database: Database, queue: Queue, keep_days: int = KEEP_DAYS) -> None:
        """``keep_days`` is for decisions and replies; 0 keeps them forever."""
        self._database = database
        self._queue = queue
        self._keep_days = keep_days

    def sweep(self) -> int:
        """Delete one batch of each type of row, and return the number of rows."""
        now = self._database.clock()
        ended = self._queue.created_before(now - KEEP_SECONDS, ENDED, BATCH)
        dead = self._queue.created_before(now - KEEP_DEAD_SECONDS, DEAD, BATCH)
        self._queue.forget((*ended, *dead))
        count = len(ended) + len(dead) + self._delete_deliveries(now - KEEP_SECONDS)
        # The spending of past days.
        count += self._database.execute(delete(BUDGETS).where(BUDGETS.c.day < _day(now - KEEP_SECONDS)))
        count += self._delete(ISSUE_TEXTS, ISSUE_TEXTS.c.closed_at < now - KEEP_ISSUE_SECONDS)
        if self._keep_days:
            count += self._delete_memory(now - self._keep_days * DAY)
        return count

    def uninstalled(self, account: str, repositories: Collection[str], before: int) -> None:
        """Delete all rows of these repositories, and of all repositories of ``account`` if it is not empty.

        Of deliveries and their jobs only those that arrived ``before``: the app may be back since. Today's
        spending is kept: a repository that is removed and added again must not get a new budget.
        """
        names = set(repositories)
        today = _day(self._database.clock())
        if account:
            names |= names_of(self._database, account)
        for name in sorted(names):
            self._queue.forget_repository(name, before)
            with self._database.write() as connection:
                for table in ABOUT_REPOSITORIES:
                    is_old = table.c.seq < before if table is DELIVERIES else true()
                    connection.execute(delete(table).where(table.c.repository == name, is_old))
                connection.execute(
                    delete(BUDGETS).where(BUDGETS.c.scope == f"repository:{name}", BUDGETS.c.day < today)
                )
        if names:
            _log.info("repositories_forgotten", count=len(names))

    def _delete_deliveries(self, before: float) -> int:
        """Delete deliveries without open or dead jobs, which need their event."""
        needed = {job.delivery for job in self._queue.list((*OPEN, *DEAD), limit=10_000)}
        old = (
            select(DELIVERIES.c.id)
            .where(DELIVERIES.c.received_at < before, DELIVERIES.c.dispatched_at.is_not(None))
            .order_by(DELIVERIES.c.seq)
            .limit(BATCH + len(needed))
        )
        deliveries = [name for name in self._database.scalars(old) if name not in needed][:BATCH]
        return self._database.execute(delete(DELIVERIES).where(DELIVERIES.c.id.in_(deliveries)))

    def _delete_memory(self, before: float) -> int:
        """Delete replies of models, and decisions and postings about subjects that were closed before then."""
        # A subject without a number (the default branch) never closes: its last decision of a kind is kept.
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
        is_unneeded = or_(_is_closed(DECISIONS, before), replaced)
        # Closed subjects without decisions need no row.
        closed = delete(CLOSED).where(CLOSED.c.closed_at < before, ~exists().where(_same_subject(DECISIONS)))
        return (
            self._delete(MODEL_CALLS, MODEL_CALLS.c.created_at < before)
            + self._delete(DECISIONS, and_(DECISIONS.c.created_at < before, is_unneeded))
            + self._delete(POSTINGS, and_(POSTINGS.c.updated_at < before, _is_closed(POSTINGS, before)))
            + self._database.execute(closed)
        )

    def _delete(self, table: Table, where: Any) -> int:
        batch = select(table.c.id).where(where).order_by(table.c.id).limit(BATCH).scalar_subquery()
        return self._database.execute(delete(table).where(table.c.id.in_(batch)))


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _is_closed(table: Table, before: float) -> ColumnElement[bool]:
    """Return the condition that the subject of a row was closed before a moment."""
    return exists().where(_same_subject(table), CLOSED.c.closed_at < before)


def _same_subject(table: Table) -> ColumnElement[bool]:
    return and_(CLOSED.c.repository == table.c.repository, CLOSED.c.number == table.c.number)
