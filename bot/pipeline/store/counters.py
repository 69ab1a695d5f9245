"""Counts of things that no other table holds, summed over all processes, for ``/metrics``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from bot.pipeline.store.database import Database
from bot.pipeline.store.tables import COUNTERS

#: A count's name and its labels.
Counted = tuple[str, tuple[tuple[str, str], ...]]


class Counters:
    """Numbers that only processes know, kept where every process can see them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, counts: Mapping[Counted, float], connection: Connection | None = None) -> None:
        """Add to counts, in the caller's transaction where there is one."""
        if connection is not None:
            self._put(connection, counts, add=True)
        elif counts:
            with self._database.write() as own:
                self._put(own, counts, add=True)

    def set(self, values: Mapping[Counted, float]) -> None:
        """Set gauges."""
        if values:
            with self._database.write() as connection:
                self._put(connection, values, add=False)

    def all(self) -> dict[Counted, float]:
        """Everything, by name and labels."""
        with self._database.read() as connection:
            rows = connection.execute(select(COUNTERS.c.name, COUNTERS.c.labels, COUNTERS.c.value)).all()
        return {(row.name, tuple(map(tuple, json.loads(row.labels)))): row.value for row in rows}

    def _put(self, connection: Connection, values: Mapping[Counted, float], *, add: bool) -> None:
        now = time.time()
        insert = self._database.insert(COUNTERS)
        value: Any = COUNTERS.c.value + insert.excluded.value if add else insert.excluded.value
        upsert = insert.on_conflict_do_update(
            index_elements=["name", "labels"], set_={"value": value, "updated_at": now}
        )
        rows = [
            {"name": name, "labels": json.dumps(labels), "value": value, "updated_at": now}
            # One order for everybody, against deadlocks.
            for (name, labels), value in sorted(values.items())
        ]
        connection.execute(upsert, rows)


def counted(name: str, **labels: str) -> Counted:
    """A count's name and labels, in their one order."""
    return name, tuple(sorted(labels.items()))
