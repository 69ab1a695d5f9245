"""What may still be spent today, reserved before it is spent. All amounts in the scope's own unit (USD, calls)."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select, update

from bot.ledger.database import Database
from bot.ledger.tables import BUDGETS


class Budgets:
    """Reservations by scope and day. What a killed worker had reserved stays reserved until the day ends."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, amounts: Mapping[str, float], limits: Mapping[str, float], day: str) -> str | None:
        """Reserve an amount in every scope at once, or in none; the scope that is spent, or None.

        A scope without a limit is only counted.
        """
        with self._database.write() as connection:
            # One order for everybody: two workers that lock the same scopes cannot wait for each other.
            for scope in sorted(amounts):
                fresh = {"scope": scope, "day": day, "reserved": 0.0, "spent": 0.0}
                connection.execute(self._database.insert(BUDGETS).on_conflict_do_nothing(), fresh)
                row = connection.execute(
                    select(BUDGETS.c.reserved, BUDGETS.c.spent)
                    .where(BUDGETS.c.scope == scope, BUDGETS.c.day == day)
                    .with_for_update()
                ).one()
                if scope in limits and row.reserved + row.spent + amounts[scope] > limits[scope]:
                    connection.rollback()
                    return scope
                connection.execute(
                    update(BUDGETS)
                    .where(BUDGETS.c.scope == scope, BUDGETS.c.day == day)
                    .values(reserved=BUDGETS.c.reserved + amounts[scope])
                )
        return None

    def settle(self, reserved: Mapping[str, float], spent: Mapping[str, float], day: str) -> None:
        """Turn reservations into what was really spent (0 where a scope is not named)."""
        with self._database.write() as connection:
            for scope in sorted(reserved):
                connection.execute(
                    update(BUDGETS)
                    .where(BUDGETS.c.scope == scope, BUDGETS.c.day == day)
                    .values(
                        reserved=BUDGETS.c.reserved - reserved[scope],
                        spent=BUDGETS.c.spent + spent.get(scope, 0.0),
                    )
                )

    def used(self, scope: str, day: str) -> float:
        """What was spent in a scope on a day, reservations included."""
        with self._database.read() as connection:
            row = connection.execute(
                select(BUDGETS.c.reserved, BUDGETS.c.spent).where(BUDGETS.c.scope == scope, BUDGETS.c.day == day)
            ).one_or_none()
        return 0.0 if row is None else float(row.reserved + row.spent)
