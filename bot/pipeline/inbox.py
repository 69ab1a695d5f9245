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
from itertools import chain

import structlog
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from bot.core import events
from bot.core.errors import TransientError
from bot.core.events import Event, RepositoryEvent
from bot.pipeline.store.database import Database
from bot.pipeline.store.tables import DELIVERIES

#: GitHub waits 10 s and then counts a delivery as failed; the answer has to be its own before that.
DEADLINE_SECONDS = 5.0

#: Deliveries in one commit at most.
BATCH = 64

#: How long the writer waits for as many as came together the last time, seconds: in a storm those are on their
#: way again, and a commit for all of them costs what one for the first does.
LINGER_SECONDS = 0.001

#: Later deliveries about a subject that are looked at, at most: the last of them says what is to be done.
LATER = 50

_INSERT = (
    "INSERT INTO deliveries (id, kind, repository, number, event, received_at) VALUES {rows} "
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
        self._row = "(" + ", ".join(["?" if database.is_sqlite else "%s"] * 6) + ")"
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
        before = 1
        while (first := self._waiting.get()) is not None:
            batch, closing = self._gather(first, before)
            # Who was told that it failed will send it again: recording it now would help nobody.
            if wanted := [item for item in batch if not item.given_up]:
                self._write(wanted)
            # Who was answered now may be back when those who came meanwhile are written.
            before = len(batch) + self._waiting.qsize()
            if closing:
                return

    def _gather(self, first: _Waiting, expected: int) -> tuple[list[_Waiting], bool]:
        """Who waits for the next commit, and whether it is the last; a moment is given to as many as expected."""
        batch = [first]
        until = time.monotonic() + LINGER_SECONDS
        while len(batch) < BATCH:
            left = until - time.monotonic() if len(batch) < expected else 0
            try:
                item = self._waiting.get(timeout=left) if left > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            if item is None:
                return batch, True
            batch.append(item)
        return batch, False

    def _write(self, batch: list[_Waiting]) -> None:
        try:
            insert = _INSERT.format(rows=", ".join([self._row] * len(batch)))
            values = tuple(chain.from_iterable(item.row for item in batch))
            new = {row[0] for row in self._database.write_once(insert, values)}
        except Exception as error:  # noqa: BLE001 - the writer's loop: whatever one delivery brings, the next is written
            if len(batch) > 1 and not isinstance(error, SQLAlchemyError):
                # One of them is to blame, and the others shall not pay for it.
                for item in batch:
                    self._write([item])
                return
            _log.error("deliveries_not_recorded", count=len(batch), error=type(error).__name__)
            for item in batch:
                item.failed = True
                item.done.set()
            return
        for item in batch:
            # One that came twice at the same moment is new once.
            item.new = item.row[0] in new
            new.discard(item.row[0])
            item.done.set()


class Received:
    """What was recorded."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def event(self, delivery: str) -> str | None:
        """What a delivery was about, as stored JSON; None after its time."""
        with self._database.read() as connection:
            found = connection.scalar(select(DELIVERIES.c.event).where(DELIVERIES.c.id == delivery))
        return None if found is None else str(found)

    def newest(self, repository: str) -> str | None:
        """The last event in a repository, as stored JSON; None where none is kept."""
        query = (
            select(DELIVERIES.c.event)
            .where(DELIVERIES.c.repository == repository)
            .order_by(DELIVERIES.c.seq.desc())
            .limit(1)
        )
        with self._database.read() as connection:
            found = connection.scalar(query)
        return None if found is None else str(found)

    def note(self, delivery: str, event: RepositoryEvent, now: float) -> None:
        """Record an event that no delivery tells of; one of that id once."""
        row = {
            "id": delivery,
            "kind": event.kind,
            "repository": event.repository.full_name,
            "number": event.number,
            "event": events.to_json(event),
            "received_at": now,
        }
        with self._database.write() as connection:
            connection.execute(self._database.insert(DELIVERIES).values(**row).on_conflict_do_nothing())

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
