"""Keeping apart, across all workers, what one installation creates."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import select

from bot.store.database import Database
from bot.store.tables import PACES


class Paces:
    """Hands out moments at which content may be created."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def reserve(self, installation: int, apart: float) -> float:
        """Take the next free moment of an installation; how long to wait for it, in seconds."""
        with self._database.write() as connection:
            fresh = {"installation": installation, "next_at": 0.0}
            connection.execute(self._database.insert(PACES).on_conflict_do_nothing(), fresh)
            free_at = connection.scalar(
                select(PACES.c.next_at).where(PACES.c.installation == installation).with_for_update()
            )
            now = self._clock()
            # A moment far ahead is a clock that was set back, not a queue.
            start = now if free_at is None or free_at > now + 60 * apart else max(now, free_at)
            connection.execute(
                PACES.update().where(PACES.c.installation == installation).values(next_at=start + apart)
            )
        return start - now
