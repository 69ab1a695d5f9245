"""What was spent and reserved today, by scope. Implements ``bot.models.budget.BudgetStore``."""

from __future__ import annotations

import json
import uuid
from datetime import date
from typing import Any

from sqlalchemy import Connection, CursorResult, delete, select, update

from bot.models.budget import Limit, Spent, over
from bot.store.database import Database
from bot.store.tables import BUDGETS, RESERVATIONS


class Budgets:
    """What a killed worker had reserved stays reserved: better to ask once less than once too often."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def spent(self, day: date, scope: str) -> Spent:
        """Settled and reserved together."""
        with self._database.read() as connection:
            return self._spent(connection, day, scope)

    def reserve(self, day: date, limits: tuple[Limit, ...], worst: Spent) -> str:
        """Book ``worst`` on every scope; where ``over`` objects for one of them, on none, and raise its error."""
        # One order for everybody: workers that want the same rows cannot wait for each other in a circle.
        scopes = sorted({limit.scope for limit in limits})
        reservation = uuid.uuid4().hex
        with self._database.write() as connection:
            for scope in scopes:
                fresh = {"day": day.isoformat(), "scope": scope, "micros": 0, "calls": 0}
                connection.execute(self._database.insert(BUDGETS).on_conflict_do_nothing(), fresh)
                self._add(connection, day.isoformat(), scope, worst.micros, worst.calls)
            for limit in limits:
                spent = self._spent(connection, day, limit.scope)
                before = Spent(micros=spent.micros - worst.micros, calls=spent.calls - worst.calls)
                if error := over(limit, day, before, worst):
                    raise error
            connection.execute(
                RESERVATIONS.insert(),
                {
                    "id": reservation,
                    "day": day.isoformat(),
                    "scopes": json.dumps(scopes),
                    "micros": worst.micros,
                    "calls": worst.calls,
                },
            )
        return reservation

    def settle(self, reservation: str, spent: Spent) -> None:
        """Replace what was reserved by what was really spent; settling again changes nothing."""
        with self._database.write() as connection:
            row = connection.execute(select(RESERVATIONS).where(RESERVATIONS.c.id == reservation)).one_or_none()
            if row is None:
                return
            gone: CursorResult[Any] = connection.execute(
                delete(RESERVATIONS).where(RESERVATIONS.c.id == reservation)
            )
            if not gone.rowcount:
                return
            for scope in json.loads(row.scopes):
                self._add(connection, row.day, scope, spent.micros - row.micros, spent.calls - row.calls)

    @staticmethod
    def _add(connection: Connection, day: str, scope: str, micros: int, calls: int) -> None:
        connection.execute(
            update(BUDGETS)
            .where(BUDGETS.c.day == day, BUDGETS.c.scope == scope)
            .values(micros=BUDGETS.c.micros + micros, calls=BUDGETS.c.calls + calls)
        )

    @staticmethod
    def _spent(connection: Connection, day: date, scope: str) -> Spent:
        row = connection.execute(
            select(BUDGETS.c.micros, BUDGETS.c.calls).where(
                BUDGETS.c.day == day.isoformat(), BUDGETS.c.scope == scope
            )
        ).one_or_none()
        return Spent() if row is None else Spent(micros=max(0, row.micros), calls=max(0, row.calls))
