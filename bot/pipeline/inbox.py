"""Storing deliveries: a delivery and its jobs in one transaction, once for each delivery id."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import ColumnElement, Connection, Row, delete, func, select, update

from bot.core import events
from bot.core.actions import Task
from bot.core.events import Event
from bot.pipeline.job import Job, stored_event
from bot.pipeline.store.database import Database
from bot.pipeline.store.issues import Issues
from bot.pipeline.store.operators import Installations
from bot.pipeline.store.tables import CLOSED, DELIVERIES

if TYPE_CHECKING:
    from bot.pipeline.queue import Queue

#: Most deliveries that one query returns.
BATCH = 100

#: Delay of jobs whose event is often followed by one that supersedes it, seconds.
DEBOUNCE_SECONDS = 2.0
DAY_SECONDS = 86_400.0

_CLOSES = events.IssueClosed | events.IssueRemoved | events.PullRequestClosed
_REOPENS = events.IssueReopened | events.PullRequestReopened
#: These delete data of repositories, which takes too long for a request, so a worker does it.
_SLOW = events.InstallationChanged | events.InstallationRepositoriesChanged

_log = structlog.get_logger(__name__)


class Inbox:
    """Stores deliveries with their jobs."""

    def __init__(
        self,
        database: Database,
        queue: Queue,
        *,
        tasks: Callable[[Event], tuple[Task, ...]] | None = None,
        debounce_seconds: float = DEBOUNCE_SECONDS,
        day_seconds: float = DAY_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``tasks`` returns the tasks of an event; None: the features that it concerns."""
        from bot import router  # imports every feature, which a web process does after it was forked

        self._database = database
        self._installations = Installations(database)
        self._issues = Issues(database)
        self._queue = queue
        self._tasks = tasks or router.tasks
        self._debounced = router.debounced
        self._debounce_seconds = debounce_seconds
        self._day_seconds = day_seconds
        self._clock = clock

    def accept(self, delivery: str, event: Event) -> bool:
        """Store a delivery and its jobs. Return False if a delivery of that id is stored already."""
        repository = getattr(event, "repository", None)
        now = self._clock()
        values = {
            "id": delivery,
            "kind": event.kind,
            "repository": repository.full_name if repository else "",
            "number": getattr(event, "number", 0),
            "event": events.to_json(event),
            "received_at": now,
            "dispatched_at": None if isinstance(event, _SLOW) else now,
        }
        insert = self._database.insert(DELIVERIES).values(**values).on_conflict_do_nothing()
        with self._queue.transaction() as connection:
            row = connection.execute(insert.returning(DELIVERIES)).one_or_none()
            if row is not None:
                self._store(connection, row, event)
        return row is not None

    def take_up(self, uninstalled: Callable[[str, Collection[str]], None]) -> int:
        """Finish deliveries that need a worker, and those that version 0.1 stored without jobs.

        ``uninstalled`` deletes the data of an account or of repositories. Return the number of deliveries.
        """
        waiting = select(DELIVERIES).where(DELIVERIES.c.dispatched_at.is_(None)).order_by(DELIVERIES.c.seq)
        rows = self._database.rows(waiting.limit(BATCH))
        for row in rows:
            event = stored_event(row.event)
            # Before the delivery is marked as done: a crash in between repeats the deletion.
            if isinstance(event, events.InstallationChanged) and event.action == "deleted":
                uninstalled(event.account, event.repositories)
            elif isinstance(event, events.InstallationRepositoriesChanged):
                uninstalled("", event.removed)
            with self._queue.transaction() as connection:
                problem = None
                if isinstance(event, str):
                    problem = event[:500]
                    _log.error("delivery_unreadable", delivery=row.id, problem=problem)
                else:
                    self._store(connection, row, event)
                done = {"dispatched_at": self._clock(), "problem": problem}
                connection.execute(update(DELIVERIES).where(DELIVERIES.c.seq == row.seq).values(**done))
        return len(rows)

    def _store(self, connection: Connection, row: Row[Any], event: Event) -> None:
        """Enqueue the jobs of a delivery, and update what is known about its subject and installation."""
        delay = self._debounce_seconds if self._debounced(event) else 0.0
        if isinstance(event, events.IssueUnanswered):
            delay = event.days * self._day_seconds
        due = row.received_at + delay
        for position, task in enumerate(self._tasks(event)):
            job = Job(
                id=f"{row.id}:{task}",
                delivery=row.id,
                seq=row.seq,
                position=position,
                task=task,
                kind=event.kind,
                installation=event.installation or 0,
                repository=row.repository,
                number=row.number,
                due=due,
                created_at=row.received_at,
            )
            self._queue.enqueue(connection, job, due - self._clock())
        here = {"repository": row.repository, "number": row.number}
        if isinstance(event, _CLOSES):
            closed = {**here, "closed_at": row.received_at}
            insert = self._database.insert(CLOSED).values(**closed)
            connection.execute(insert.on_conflict_do_update(index_elements=list(here), set_=closed))
        elif isinstance(event, _REOPENS):
            subject = CLOSED.c.repository == row.repository, CLOSED.c.number == row.number
            connection.execute(delete(CLOSED).where(*subject))
        self._issues.update(connection, event, row.received_at)
        if ":" not in row.id:
            # Ids of our own events have a colon.
            self._installations.note(connection, row.id, event, row.received_at)


class Received:
    """Reading stored deliveries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def event(self, delivery: str) -> str | None:
        """Return the event of a delivery as JSON; None if it was deleted."""
        text: str | None = self._database.scalar(select(DELIVERIES.c.event).where(DELIVERIES.c.id == delivery))
        return text

    def newest(self, repository: str) -> str | None:
        """Return the last event in a repository as JSON; None if none is stored."""
        query = (
            select(DELIVERIES.c.event)
            .where(DELIVERIES.c.repository == repository)
            .order_by(DELIVERIES.c.seq.desc())
            .limit(1)
        )
        text: str | None = self._database.scalar(query)
        return text

    def later(self, seq: int, repository: str, number: int) -> Sequence[tuple[str, str]]:
        """Return id and event of the last deliveries about a subject after ``seq``, newest first."""
        return self._after(DELIVERIES.c.seq.desc(), seq, repository, number)

    def next(self, seq: int, repository: str, number: int) -> Sequence[tuple[str, str]]:
        """Return id and event of the first deliveries about a subject after ``seq``, oldest first."""
        return self._after(DELIVERIES.c.seq, seq, repository, number)

    def earlier(self, seq: int, deliveries: Collection[str]) -> Sequence[tuple[str, str]]:
        """Return id and event of those of these deliveries that arrived before ``seq``."""
        query = select(DELIVERIES.c.id, DELIVERIES.c.event).where(
            DELIVERIES.c.seq < seq, DELIVERIES.c.id.in_(deliveries)
        )
        return [(row.id, row.event) for row in self._database.rows(query)]

    def _after(
        self, order: ColumnElement[Any], seq: int, repository: str, number: int
    ) -> Sequence[tuple[str, str]]:
        query = (
            select(DELIVERIES.c.id, DELIVERIES.c.event)
            .where(DELIVERIES.c.repository == repository, DELIVERIES.c.number == number, DELIVERIES.c.seq > seq)
            .order_by(order)
            .limit(BATCH)
        )
        return [(row.id, row.event) for row in self._database.rows(query)]

    def untaken(self) -> int:
        """Count the deliveries that wait for a worker without having jobs."""
        waiting = select(func.count()).select_from(DELIVERIES).where(DELIVERIES.c.dispatched_at.is_(None))
        return int(self._database.scalar(waiting) or 0)

    def oldest(self) -> float | None:
        """Return the time at which the oldest of these deliveries arrived."""
        waiting = select(func.min(DELIVERIES.c.received_at)).where(DELIVERIES.c.dispatched_at.is_(None))
        moment: float | None = self._database.scalar(waiting)
        return moment
