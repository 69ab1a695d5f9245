"""Counts and gauges for ``/metrics``.

They are summed in the database as they happen. So any web process can serve them, without counting the rows of
tables that grow.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from bot.pipeline.store.database import Part
from bot.pipeline.store.tables import COUNTERS

if TYPE_CHECKING:
    from bot.github.http import Exchange

#: Names of the metrics that processes count.
DELIVERY_ANSWERS = "bouncer_deliveries"
GITHUB_CALLS = "bouncer_github_calls"
GITHUB_SECONDS = "bouncer_github_seconds"
GITHUB_REMAINING = "bouncer_github_quota_remaining"

#: A count's name and its labels.
CounterKey = tuple[str, tuple[tuple[str, str], ...]]


class Counters(Part):
    """Counts and gauges that every process can read."""

    def add(self, counts: Mapping[CounterKey, float], connection: Connection | None = None) -> None:
        """Add to counts, in the caller's transaction if there is one."""
        if connection is not None:
            self._put(connection, counts, add=True)
        elif counts:
            with self._database.write() as own:
                self._put(own, counts, add=True)

    def set(self, values: Mapping[CounterKey, float]) -> None:
        if values:
            with self._database.write() as connection:
                self._put(connection, values, add=False)

    def all(self) -> dict[CounterKey, float]:
        rows = self._database.rows(select(COUNTERS.c.name, COUNTERS.c.labels, COUNTERS.c.value))
        return {(row.name, tuple(map(tuple, json.loads(row.labels)))): row.value for row in rows}

    def _put(self, connection: Connection, values: Mapping[CounterKey, float], *, add: bool) -> None:
        now = self._database.clock()
        insert = self._database.insert(COUNTERS)
        value: Any = COUNTERS.c.value + insert.excluded.value if add else insert.excluded.value
        upsert = insert.on_conflict_do_update(
            index_elements=["name", "labels"], set_={"value": value, "updated_at": now}
        )
        rows = [
            {"name": name, "labels": json.dumps(labels), "value": value, "updated_at": now}
            # All processes use the same order, so that no deadlock can occur.
            for (name, labels), value in sorted(values.items())
        ]
        connection.execute(upsert, rows)


def counter_key(name: str, **labels: str) -> CounterKey:
    return name, tuple(sorted(labels.items()))


class CounterBuffer:
    """Counts of this process, added to the database in intervals; a killed process loses the last few."""

    def __init__(self) -> None:
        self._counts: dict[CounterKey, float] = defaultdict(float)
        self._gauges: dict[CounterKey, float] = {}
        self._lock = threading.Lock()
        self._flushing = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        with self._lock:
            self._counts[counter_key(name, **labels)] += amount

    def set(self, name: str, value: float, **labels: str) -> None:
        with self._lock:
            self._gauges[counter_key(name, **labels)] = value

    def observe(self, call: Exchange) -> None:
        """Count a call to GitHub, and set the rest of the installation's quota."""
        self.add(GITHUB_CALLS, method=call.method, status=str(call.status))
        self.add(GITHUB_SECONDS, call.seconds)
        if call.installation is not None and call.remaining is not None:
            self.set(GITHUB_REMAINING, call.remaining, installation=str(call.installation))

    def flush(self, counters: Counters) -> None:
        """Add the counts since the last time to the database, after those of a thread that is doing so.

        Raises SQLAlchemyError; the counts are kept for the next time.
        """
        with self._flushing:
            with self._lock:
                counts, self._counts = self._counts, defaultdict(float)
                gauges, self._gauges = self._gauges, {}
            try:
                counters.add(counts)
            except SQLAlchemyError:
                with self._lock:
                    for counter, amount in counts.items():
                        self._counts[counter] += amount
                raise
            counters.set(gauges)
