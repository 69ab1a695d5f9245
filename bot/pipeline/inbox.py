"""Deliveries and their jobs, stored in one transaction, once for each delivery id.

Whether a newer event supersedes a job depends on the stored events alone. In doubt the work is done: an event
supersedes another one if the task is certain to look at the same thing again because of it, and not otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import structlog
from pydantic import ValidationError
from sqlalchemy import Connection, Row, delete, select, update

from bot import router
from bot.core import events
from bot.core.actions import Task
from bot.core.errors import LACKING
from bot.core.events import Event
from bot.pipeline.job import DEAD, DEAD_LIMIT, ENDED, GONE, KEEP_SECONDS, Job
from bot.pipeline.queue import Queue
from bot.pipeline.store import Database, Ledger
from bot.pipeline.store.database import Part
from bot.pipeline.store.tables import CLOSED, DELIVERIES


def stored_event(text: str) -> Event | str:
    """Return a delivery's event, or the reason why it cannot be read: another version of the program wrote it."""
    try:
        return events.from_json(text)
    except ValidationError as error:
        return f"the stored event cannot be read: {error.errors(include_url=False)[0]['msg']}"


def supersedes(task: Task, newer: Event, older: Event) -> bool:
    """Return True if ``task`` has nothing to do for ``older`` after ``newer`` happened on the same subject."""
    if newer.sender.is_bot and not older.sender.is_bot:
        # Handlers may ignore events of bots; a person's event must not be lost with one.
        return False
    return router.feature_named(task).supersedes(newer, older)


def superseded_by(task: Task, newer: Event, earlier: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of the jobs of ``earlier`` deliveries that ``newer`` supersedes."""
    events_read = ((delivery, stored_event(text)) for delivery, text in earlier)
    return [
        f"{delivery}:{task}"
        for delivery, older in events_read
        if not isinstance(older, str) and supersedes(task, newer, older)
    ]


#: Most deliveries that one query returns.
BATCH = 100

#: Delay of jobs whose event is often followed by one that supersedes it, seconds.
DEBOUNCE_SECONDS = 2.0
DAY_SECONDS = 86_400.0

_CLOSES = events.IssueClosed | events.IssueRemoved | events.PullRequestClosed
_REOPENS = events.IssueReopened | events.PullRequestReopened
#: These delete or move data, or start many jobs, which takes too long for a request, so a worker does it.
_SLOW = events.InstallationChanged | events.InstallationRepositoriesChanged | events.Renamed

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
    ) -> None:
        """``tasks`` returns the tasks of an event; None: the features that it concerns."""
        self._database = database
        self._ledger = Ledger(database)
        self._queue = queue
        self._tasks = tasks or router.tasks
        self._debounce_seconds = debounce_seconds
        self._day_seconds = day_seconds

    def accept(self, delivery: str, event: Event) -> bool:
        """Store a delivery and its jobs. Return False if a delivery of that id is stored already."""
        event = self._ledger.renames.present(event)
        repository = getattr(event, "repository", None)
        now = self._database.clock()
        values = {
            "id": delivery,
            "kind": event.kind,
            "repository": repository.full_name if repository else "",
            "number": getattr(event, "number", 0),
            "event": event.model_dump_json(),
            "received_at": now,
            "dispatched_at": None if isinstance(event, _SLOW) else now,
        }
        insert = self._database.insert(DELIVERIES).values(**values).on_conflict_do_nothing()
        with self._queue.transaction() as connection:
            row = connection.execute(insert.returning(DELIVERIES)).one_or_none()
            if row is not None:
                self._store(connection, row, event)
        return row is not None

    def take_up(self, uninstalled: Callable[[str, Collection[str], int], None]) -> int:
        """Finish deliveries that need a worker, and those that version 0.1 stored without jobs.

        ``uninstalled`` deletes the data of an account or of repositories before a delivery. Return the number of
        deliveries.
        """
        waiting = select(DELIVERIES).where(DELIVERIES.c.dispatched_at.is_(None)).order_by(DELIVERIES.c.seq)
        rows = self._database.rows(waiting.limit(BATCH))
        for row in rows:
            event = stored_event(row.event)
            # Before the delivery is marked as done: a crash in between repeats this.
            if isinstance(event, events.InstallationChanged) and event.action == "deleted":
                # A late delivery may be about an installation before the present one.
                if not self._ledger.installations.is_replaced(event.account, event.installation):
                    uninstalled(event.account, event.repositories, row.seq)
            elif isinstance(event, events.InstallationChanged) and event.action == "unsuspend":
                self._queue.bring_forward(event.installation)
            elif isinstance(event, events.InstallationChanged) and event.action == "new_permissions_accepted":
                self._retry_lacking(event.installation)
            elif isinstance(event, events.InstallationRepositoriesChanged):
                uninstalled("", event.removed, row.seq)
                self._ledger.renames.forget(event)
            elif isinstance(event, events.Renamed):
                for old, new in self._ledger.renames.moves(event).items():
                    self._queue.rename(old, new)
                    self._ledger.renames.move(old, new, event)
                if not event.account:
                    self._retry_gone(event.new)
            with self._queue.transaction() as connection:
                problem = None
                if isinstance(event, str):
                    problem = event[:500]
                    _log.error("delivery_unreadable", delivery=row.id, problem=problem)
                else:
                    self._store(connection, row, event)
                done = {"dispatched_at": self._database.clock(), "problem": problem}
                connection.execute(update(DELIVERIES).where(DELIVERIES.c.seq == row.seq).values(**done))
        return len(rows)

    def _retry_lacking(self, installation: int | None) -> None:
        """Run the jobs of an installation again that died or decided nothing because a permission was missing."""
        jobs = [
            job
            for job in self._queue.list(DEAD, limit=DEAD_LIMIT)
            if job.installation == installation and LACKING in (job.error or "")
        ]
        for name, words in self._ledger.decisions.abstentions(
            "forge:403", self._database.clock() - KEEP_SECONDS
        ).items():
            job = self._queue.get(name)
            if job is not None and job.installation == installation and job.state == "done":
                self._ledger.decisions.reopen(name, words)
                jobs.append(job)
        for job in jobs:
            self._queue.start_again(job, self._database.clock())
        if jobs:
            _log.info("jobs_retried", count=len(jobs), installation=installation)

    def _retry_gone(self, repository: str) -> None:
        """Run the jobs again that did not find a repository because its rename was not known yet."""
        for job in self._queue.list(ENDED, repository, limit=None):
            if job.state == "done" and (job.outcome or "").startswith(GONE):
                self._queue.start_again(job, self._database.clock())

    def _store(self, connection: Connection, row: Row[Any], event: Event) -> None:
        """Enqueue the jobs of a delivery, and update what is known about its subject and installation."""
        delay = self._debounce_seconds if router.debounced(event) else 0.0
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
            self._queue.enqueue(connection, job, due - self._database.clock())
        here = {"repository": row.repository, "number": row.number}
        if isinstance(event, _CLOSES):
            closed = {**here, "closed_at": row.received_at}
            insert = self._database.insert(CLOSED).values(**closed)
            connection.execute(insert.on_conflict_do_update(index_elements=list(here), set_=closed))
        elif isinstance(event, _REOPENS):
            subject = CLOSED.c.repository == row.repository, CLOSED.c.number == row.number
            connection.execute(delete(CLOSED).where(*subject))
        self._ledger.issues.update(connection, event, row.received_at)
        if ":" not in row.id:
            # Ids of our own events have a colon.
            self._ledger.installations.note(connection, row.id, event, row.received_at)


class Deliveries(Part):
    """Reading stored deliveries."""

    def event(self, delivery: str) -> str | None:
        """Return the event of a delivery as JSON; None if it was deleted."""
        text: str | None = self._database.scalar(select(DELIVERIES.c.event).where(DELIVERIES.c.id == delivery))
        return text

    def later(self, seq: int, repository: str, number: int) -> Sequence[tuple[str, str]]:
        """Return id and event of up to BATCH deliveries about a subject after ``seq``, the newest first."""
        place = DELIVERIES.c.repository == repository, DELIVERIES.c.number == number, DELIVERIES.c.seq > seq
        query = select(DELIVERIES.c.id, DELIVERIES.c.event).where(*place).order_by(DELIVERIES.c.seq.desc())
        return [(row.id, row.event) for row in self._database.rows(query.limit(BATCH))]

    def earlier(self, seq: int, deliveries: Collection[str]) -> Sequence[tuple[str, str]]:
        """Return id and event of those of these deliveries that arrived before ``seq``."""
        query = select(DELIVERIES.c.id, DELIVERIES.c.event).where(
            DELIVERIES.c.seq < seq, DELIVERIES.c.id.in_(deliveries)
        )
        return [(row.id, row.event) for row in self._database.rows(query)]
