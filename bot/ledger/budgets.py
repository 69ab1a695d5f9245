"""What may still be spent today, reserved before it is spent, across all workers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from datetime import date

from sqlalchemy import Connection, select, update

from bot.ledger.database import Database
from bot.ledger.tables import BUDGETS
from bot.models.budget import Limit, Spent, over


class Budgets:
    """Implements ``BudgetStore``. What a killed worker had reserved stays reserved until the day ends."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reserved: dict[str, tuple[date, tuple[str, ...], Spent]] = {}
        self._lock = threading.Lock()

    def reserve(self, day: date, limits: tuple[Limit, ...], worst: Spent) -> str:
        """Book ``worst`` on every scope, or on none; raises BudgetExceeded for the first that has no room."""
        # One order for everybody: two workers that lock the same scopes cannot wait for each other.
        limits = tuple(sorted(limits, key=lambda limit: limit.scope))
        with self._database.write() as connection:
            for limit in limits:
                fresh = {"scope": limit.scope, "day": day.isoformat(), "calls": 0, "micros": 0}
                connection.execute(self._database.insert(BUDGETS).on_conflict_do_nothing(), fresh)
                if error := over(limit, day, _locked(connection, limit.scope, day), worst):
                    raise error
                _add(connection, limit.scope, day, worst)
        reservation = uuid.uuid4().hex
        with self._lock:
            self._reserved[reservation] = (day, tuple(limit.scope for limit in limits), worst)
        return reservation

    def settle(self, reservation: str, spent: Spent) -> None:
        """Replace what was reserved by what was really spent; settling again changes nothing."""
        with self._lock:
            day, scopes, worst = self._reserved.pop(reservation, (date.min, (), Spent()))
        with self._database.write() as connection:
            for scope in scopes:
                _add(connection, scope, day, spent, less=worst)

    def spent(self, day: date) -> Mapping[str, Spent]:
        """What was spent (and is reserved) on a day, by scope."""
        query = select(BUDGETS).where(BUDGETS.c.day == day.isoformat()).order_by(BUDGETS.c.scope)
        with self._database.read() as connection:
            return {row.scope: Spent(calls=row.calls, micros=row.micros) for row in connection.execute(query)}


def _locked(connection: Connection, scope: str, day: date) -> Spent:
    row = connection.execute(
        select(BUDGETS.c.calls, BUDGETS.c.micros)
        .where(BUDGETS.c.scope == scope, BUDGETS.c.day == day.isoformat())
        .with_for_update()
    ).one()
    return Spent(calls=row.calls, micros=row.micros)


def _add(connection: Connection, scope: str, day: date, more: Spent, less: Spent | None = None) -> None:
    less = less or Spent()
    connection.execute(
        update(BUDGETS)
        .where(BUDGETS.c.scope == scope, BUDGETS.c.day == day.isoformat())
        .values(
            calls=BUDGETS.c.calls + (more.calls - less.calls),
            micros=BUDGETS.c.micros + (more.micros - less.micros),
        )
    )
