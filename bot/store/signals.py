"""Outcomes of what was posted, one row each, kept up to date as decisions are recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sqlalchemy import Connection, func, select

from bot.bouncers.feedback import Counts, Outcome, Row, Signal, muted, outcomes, rates, signals
from bot.core.actions import Decision
from bot.store.database import Database
from bot.store.tables import SIGNALS


class Signals:
    """What people made of what was posted."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def refresh(self, repository: str, history: Iterable[Decision]) -> None:
        """Bring the outcomes on one subject up to date; ``history`` is every decision on it, oldest first."""
        found = outcomes(signals(history))
        if found:
            with self._database.write() as connection:
                for key, sign in found.items():
                    self._write(connection, repository, key, sign)

    def rates(self, repository: str | None = None) -> tuple[Row, ...]:
        """Addressed, dismissed and ignored rates by category, of one repository or of all."""
        return rates(self._counts(repository))

    def muted(self, repository: str) -> frozenset[str]:
        """Review categories that this repository's people dismissed too often."""
        return muted(self._counts(repository))

    def _counts(self, repository: str | None) -> Counts:
        query = select(SIGNALS.c.category, SIGNALS.c.outcome, func.count()).group_by(
            SIGNALS.c.category, SIGNALS.c.outcome
        )
        if repository is not None:
            query = query.where(SIGNALS.c.repository == repository)
        counts: dict[str, dict[Outcome, int]] = {}
        with self._database.read() as connection:
            for category, outcome, count in connection.execute(query):
                counts.setdefault(category, {})[outcome] = count
        return counts

    def _write(self, connection: Connection, repository: str, key: str, sign: Signal) -> None:
        values = {
            "category": sign.category,
            "outcome": sign.outcome,
            "source": sign.source,
            "by": sign.by,
            "updated_at": self._clock(),
        }
        insert = self._database.insert(SIGNALS).values(key=key, repository=repository, **values)
        connection.execute(insert.on_conflict_do_update(index_elements=["key"], set_=values))
