"""From recorded deliveries to queued jobs: one worker at a time does this, each delivery in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import structlog
from pydantic import ValidationError
from sqlalchemy import Connection, Row, delete, select, update

from bot.core import events
from bot.core.actions import Task
from bot.core.events import Event
from bot.jobs.job import Job
from bot.jobs.queue import Queue
from bot.store.database import Database
from bot.store.installations import Installations
from bot.store.tables import CLOSED, DELIVERIES

#: Deliveries that one step handles at most, so that no transaction is held for long.
BATCH = 100

#: A push or an edit is often followed by the next one: wait, so that the last of them is the one that runs.
DEBOUNCE: Mapping[type[Event], float] = {
    events.PullRequestSynchronized: 2.0,
    events.PullRequestEdited: 2.0,
    events.IssueEdited: 2.0,
}

_INSTALLATIONS = ("installation_changed", "installation_repositories_changed")
_CLOSES = events.IssueClosed | events.PullRequestClosed
_REOPENS = events.IssueReopened | events.PullRequestReopened

_log = structlog.get_logger(__name__)


class Dispatcher:
    """Makes a job of each task of each delivery."""

    def __init__(
        self,
        database: Database,
        queue: Queue,
        tasks: Callable[[Event], tuple[Task, ...]],
        uninstalled: Callable[[str, Collection[str]], None] = lambda account, repositories: None,
        debounce: Mapping[type[Event], float] = DEBOUNCE,
        day: float = 86_400.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._installations = Installations(database)
        self._queue = queue
        self._tasks = tasks
        self._uninstalled = uninstalled
        self._debounce = debounce
        self._day = day
        self._clock = clock

    def step(self) -> int:
        """Take what there is to take now; how many deliveries that were."""
        waiting = select(DELIVERIES).where(DELIVERIES.c.dispatched_at.is_(None)).order_by(DELIVERIES.c.seq)
        with self._database.read() as connection:
            rows = connection.execute(waiting.limit(BATCH)).all()
        for row in rows:
            if row.kind in _INSTALLATIONS:
                # Before it is taken note of, so that a crash in between forgets nothing.
                self._uninstall(row)
        if rows:
            with self._queue.transaction() as connection:
                for row in rows:
                    self._take(connection, row)
        return len(rows)

    def _uninstall(self, row: Row[Any]) -> None:
        event = _read(row.event)
        if isinstance(event, events.InstallationChanged) and event.action == "deleted":
            self._uninstalled(event.account, event.repositories)
        elif isinstance(event, events.InstallationRepositoriesChanged):
            self._uninstalled("", event.removed)

    def _take(self, connection: Connection, row: Row[Any]) -> None:
        event = _read(row.event)
        problem = None
        if isinstance(event, str):
            # Written by another version of the program. Kept, so that the operator can see it.
            problem = f"the stored event cannot be read: {event}"[:500]
            _log.error("delivery_unreadable", delivery=row.id, problem=problem)
        else:
            self._make(connection, row, event)
            self._note(connection, row, event)
            if ":" not in row.id:
                # GitHub's own, none of those that are asked for here.
                self._installations.note(connection, row.id, event, row.received_at)
        connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.seq == row.seq)
            .values(dispatched_at=self._clock(), problem=problem)
        )

    def _make(self, connection: Connection, row: Row[Any], event: Event) -> None:
        wait = event.days * self._day if isinstance(event, events.IssueUnanswered) else 0.0
        due = row.received_at + (wait or self._debounce.get(type(event), 0.0))
        for position, task in enumerate(self._tasks(event)):
            job = Job(
                id=f"{row.id}:{task}",
                delivery=row.id,
                seq=row.seq,
                position=position,
                task=task,
                kind=event.kind,
                repository=row.repository,
                number=row.number,
                due=due,
                created_at=row.received_at,
            )
            self._queue.enqueue(connection, job, due - self._clock())

    def _note(self, connection: Connection, row: Row[Any], event: Event) -> None:
        """Whether the subject is open, as far as this event says so."""
        if isinstance(event, _CLOSES):
            closed = {"repository": row.repository, "number": row.number, "closed_at": row.received_at}
            insert = self._database.insert(CLOSED).values(**closed)
            connection.execute(insert.on_conflict_do_update(index_elements=["repository", "number"], set_=closed))
        elif isinstance(event, _REOPENS):
            here = CLOSED.c.repository == row.repository, CLOSED.c.number == row.number
            connection.execute(delete(CLOSED).where(*here))


def _read(text: str) -> Event | str:
    """A stored event, or why it cannot be read."""
    try:
        return events.from_json(text)
    except ValidationError as error:
        return error.errors(include_url=False)[0]["msg"]
