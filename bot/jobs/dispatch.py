"""From recorded deliveries to queued jobs. One worker at a time does this; each step may be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import structlog
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, Row, and_, exists, or_, select, update

from bot.core import events
from bot.core.actions import Task
from bot.core.events import Event
from bot.jobs.job import OPEN, Job, workflow_id
from bot.jobs.supersede import supersedes
from bot.ledger.database import Database
from bot.ledger.tables import DELIVERIES, JOBS
from bot.router import BUILDS_ON

#: Deliveries or jobs that one step handles at most, so that no transaction is held for long.
BATCH = 100

#: A push or an edit is often followed by the next one: wait, so that the last of them is the one that runs.
DEBOUNCE: Mapping[type[Event], float] = {
    events.PullRequestSynchronized: 2.0,
    events.PullRequestEdited: 2.0,
    events.IssueEdited: 2.0,
}

_log = structlog.get_logger(__name__)


class Starter(Protocol):
    """What the dispatcher needs of the queue."""

    def start(self, workflow: str, job: str, attempt: int, partition: str, order: int) -> None:
        """Queue an attempt; starting the same id twice is one start."""
        ...

    def drop(self, workflows: Sequence[str]) -> None:
        """Take attempts that have not begun out of the queue."""
        ...


class Dispatcher:
    """Makes a job of each task of each delivery, and queues the jobs that are due."""

    def __init__(
        self,
        database: Database,
        queue: Starter,
        tasks: Callable[[Event], tuple[Task, ...]],
        debounce: Mapping[type[Event], float] = DEBOUNCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._queue = queue
        self._tasks = tasks
        self._debounce = debounce
        self._clock = clock

    def step(self) -> int:
        """Do what there is to do now; how many deliveries and jobs were moved on."""
        return self._take_deliveries() + self._start_due()

    def _take_deliveries(self) -> int:
        waiting = select(DELIVERIES).where(DELIVERIES.c.dispatched_at.is_(None)).order_by(DELIVERIES.c.seq)
        with self._database.read() as connection:
            if connection.execute(waiting.limit(1)).first() is None:
                return 0
        dropped: list[str] = []
        with self._database.write() as connection:
            rows = connection.execute(waiting.limit(BATCH)).all()
            for row in rows:
                dropped += self._take(connection, row)
        # After the commit: a crash here leaves them queued, and each finds on starting that it is not wanted.
        self._queue.drop(dropped)
        return len(rows)

    def _take(self, connection: Connection, row: Row[Any]) -> list[str]:
        """Make the jobs of one delivery; the queue's ids of the jobs that they replace."""
        dropped: list[str] = []
        problem = None
        try:
            event = events.from_json(row.event)
        except ValidationError as error:
            # Written by another version of the program. Kept, so that the operator can see it.
            problem = f"the stored event cannot be read: {error.errors(include_url=False)[0]['msg']}"[:500]
            _log.error("delivery_unreadable", delivery=row.id, problem=problem)
        else:
            for position, task in enumerate(self._tasks(event)):
                dropped += self._make(connection, row, event, task, position)
        connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.seq == row.seq)
            .values(dispatched_at=self._clock(), problem=problem)
        )
        return dropped

    def _make(self, connection: Connection, row: Row[Any], event: Event, task: Task, position: int) -> list[str]:
        number = getattr(event, "number", 0)
        job = {
            "id": f"{row.id}:{task}",
            "delivery": row.id,
            "seq": row.seq,
            "position": position,
            "task": task,
            "kind": event.kind,
            "repository": row.repository,
            "number": number,
            "state": "waiting",
            "attempt": 0,
            "tries": 0,
            "due": row.received_at + self._debounce.get(type(event), 0.0),
            "created_at": row.received_at,
        }
        connection.execute(self._database.insert(JOBS).on_conflict_do_nothing(), job)
        return self._supersede(connection, str(job["id"]), row, event, task, number) if number else []

    def _supersede(
        self, connection: Connection, job: str, row: Row[Any], event: Event, task: Task, number: int
    ) -> list[str]:
        rivals = connection.execute(
            select(JOBS.c.id, JOBS.c.attempt, JOBS.c.state, DELIVERIES.c.event)
            .join(DELIVERIES, DELIVERIES.c.id == JOBS.c.delivery)
            .where(
                JOBS.c.repository == row.repository,
                JOBS.c.number == number,
                JOBS.c.task == task,
                JOBS.c.state.in_(OPEN),
                JOBS.c.seq < row.seq,
            )
            # A runner must not begin one of them between this look and the mark below.
            .with_for_update(of=JOBS)
        ).all()
        older = [each for each in rivals if _supersedes(task, event, each.event)]
        for each in older:
            connection.execute(
                update(JOBS)
                .where(JOBS.c.id == each.id)
                .values(state="superseded", superseded_by=job, finished_at=self._clock())
            )
        # A running one keeps its place in the queue until it notices: its successor must not overtake it.
        return [workflow_id(each.id, each.attempt) for each in older if each.state != "running"]

    def _start_due(self) -> int:
        due = (
            select(*(JOBS.c[name] for name in Job.model_fields))
            .where(JOBS.c.state == "waiting", JOBS.c.due <= self._clock(), ~_awaited())
            .order_by(JOBS.c.seq, JOBS.c.position)
            .limit(BATCH)
        )
        with self._database.read() as connection:
            jobs = [Job(**row._mapping) for row in connection.execute(due)]
        for job in jobs:
            self._queue.start(job.workflow, job.id, job.attempt, job.partition, job.order)
        if jobs:
            with self._database.write() as connection:
                for job in jobs:
                    connection.execute(
                        update(JOBS)
                        .where(JOBS.c.id == job.id, JOBS.c.attempt == job.attempt, JOBS.c.state == "waiting")
                        .values(state="queued")
                    )
        return len(jobs)


def _supersedes(task: Task, newer: Event, older: str) -> bool:
    try:
        return supersedes(task, newer, events.from_json(older))
    except ValidationError:
        # Written by another version of the program: it is left alone, and nobody else is stopped by it.
        return False


def _awaited() -> ColumnElement[bool]:
    """Whether a job's task builds upon another of its delivery that may still decide."""
    other = JOBS.alias("other")
    return or_(
        *(
            and_(
                JOBS.c.task == task,
                exists().where(
                    other.c.delivery == JOBS.c.delivery, other.c.task.in_(needed), other.c.state.in_(OPEN)
                ),
            )
            for task, needed in BUILDS_ON.items()
        )
    )
