"""Recording deliveries durably, fast: one row each, and requests that wait at the same moment share one commit.

The engine could take a delivery itself, with several statements and a commit for each of its tasks: measured,
that is 450 requests a second where one row makes 959. One writer a process: threads that each open a transaction
would stand in SQLite's back-off queue, which is what makes the slow ones slow. Nothing here knows the engine, so
that the web process starts at once and stays small.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from bot.core import events
from bot.core.events import Event
from bot.errors import TransientError
from bot.store.database import Database
from bot.store.tables import DELIVERIES

#: GitHub waits 10 s and then counts a delivery as failed; the answer has to be its own before that.
DEADLINE_SECONDS = 5.0

#: Deliveries in one commit at most.
BATCH = 64

#: Later deliveries about a subject that are looked at, at most: the last of them says what is to be done.
LATER = 50

_INSERT = (
    "INSERT INTO deliveries (id, kind, repository, number, event, received_at) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO NOTHING RETURNING id"
)

_log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _Waiting:
    row: tuple[str, str, str, int, str, float]
    done: threading.Event = field(default_factory=threading.Event)
    new: bool = False
    failed: bool = False
    given_up: bool = False


class Inbox:
    """Takes deliveries. Make it after a fork: it owns a thread and connections."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        # By hand, because building the statement anew would be most of the work.
        self._insert = _INSERT.replace("?", "?" if database.is_sqlite else "%s")
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="delivery-writer", daemon=True)
        self._writer.start()

    def accept(self, delivery: str, event: Event, seconds: float = DEADLINE_SECONDS) -> bool:
        """Record a delivery; False where one of that id was recorded before.

        Raises TransientError where that did not come about within ``seconds``.
        """
        repository = getattr(event, "repository", None)
        item = _Waiting(
            (
                delivery,
                event.kind,
                repository.full_name if repository else "",
                getattr(event, "number", 0),
                events.to_json(event),
                self._clock(),
            )
        )
        self._waiting.put(item)
        if not item.done.wait(seconds):
            item.given_up = True
            raise TransientError(f"the database did not record the delivery within {seconds:.0f} s")
        if item.failed:
            raise TransientError("the database did not record the delivery")
        return item.new

    @property
    def alive(self) -> bool:
        """Whether there is still somebody who records."""
        return self._writer.is_alive()

    def close(self) -> None:
        """Record what waits, and end."""
        self._waiting.put(None)
        self._writer.join(DEADLINE_SECONDS)

    def _write_all(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            closing = False
            while len(batch) < BATCH and not self._waiting.empty():
                item = self._waiting.get()
                if item is None:
                    closing = True
                    break
                batch.append(item)
            # Who was told that it failed will send it again: recording it now would help nobody.
            self._write([item for item in batch if not item.given_up])
            if closing:
                return

    def _write(self, batch: list[_Waiting]) -> None:
        try:
            with self._database.write() as connection:
                for item in batch:
                    item.new = connection.exec_driver_sql(self._insert, item.row).first() is not None
        except Exception as error:  # noqa: BLE001 - the writer's loop: whatever one delivery brings, the next is written
            if len(batch) > 1 and not isinstance(error, SQLAlchemyError):
                # One of them is to blame, and the others shall not pay for it.
                for item in batch:
                    self._write([item])
                return
            _log.error("deliveries_not_recorded", count=len(batch), error=type(error).__name__)
            for item in batch:
                item.failed = True
        for item in batch:
            item.done.set()


class Received:
    """Reads what was recorded."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def event(self, delivery: str) -> str | None:
        """What a delivery was about, as stored JSON; None after its time."""
        with self._database.read() as connection:
            found = connection.scalar(select(DELIVERIES.c.event).where(DELIVERIES.c.id == delivery))
        return None if found is None else str(found)

    def later(self, seq: int, repository: str, number: int) -> Sequence[tuple[str, str]]:
        """Id and event of what was delivered about a subject after ``seq``, newest first."""
        query = (
            select(DELIVERIES.c.id, DELIVERIES.c.event)
            .where(DELIVERIES.c.repository == repository, DELIVERIES.c.number == number, DELIVERIES.c.seq > seq)
            .order_by(DELIVERIES.c.seq.desc())
            .limit(LATER)
        )
        with self._database.read() as connection:
            return [(row.id, row.event) for row in connection.execute(query)]

    def untaken(self) -> int:
        """Recorded deliveries that no worker has made jobs of yet: many where none is running."""
        waiting = select(func.count()).select_from(DELIVERIES).where(DELIVERIES.c.dispatched_at.is_(None))
        with self._database.read() as connection:
            return int(connection.scalar(waiting) or 0)

    def oldest(self) -> float | None:
        """When the oldest delivery arrived that no worker has made jobs of yet."""
        waiting = select(func.min(DELIVERIES.c.received_at)).where(DELIVERIES.c.dispatched_at.is_(None))
        with self._database.read() as connection:
            found = connection.scalar(waiting)
        return None if found is None else float(found)
