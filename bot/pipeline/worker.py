"""A worker process: takes a lease, makes jobs of deliveries and runs them, and does the rounds until its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import structlog
from sqlalchemy import Connection, Row, delete, select, update
from sqlalchemy.exc import SQLAlchemyError

from bot import router
from bot.core import events
from bot.core.actions import Task
from bot.core.events import Event
from bot.pipeline.job import Job, stored_event
from bot.pipeline.metrics import Counts
from bot.pipeline.publisher import APART_SECONDS
from bot.pipeline.queue import Consumer, Queue
from bot.pipeline.recovery import Lease, Recovery, take_lease
from bot.pipeline.retention import Retention
from bot.pipeline.runner import Runner
from bot.pipeline.store import Database, Ledger
from bot.pipeline.store.installations import Installations
from bot.pipeline.store.locks import Leadership
from bot.pipeline.store.tables import CLOSED, DELIVERIES

#: Seconds between two looks for new deliveries, between two looks for dead workers, and between two sweeps.
DISPATCH_SECONDS = 0.05
ROUND_SECONDS = 2.0
SWEEP_SECONDS = 600.0
#: How long running jobs are given at the end, seconds: with the rest of the shutdown, less than 30.
DRAIN_SECONDS = 22.0

#: Deliveries that one step of the dispatcher handles at most, so that no transaction is held for long.
BATCH = 100

#: A push or an edit is often followed by the next one: wait, so that the last of them is the one that runs.
DEBOUNCE: Mapping[type[Event], float] = {
    events.PullRequestSynchronized: 2.0,
    events.PullRequestEdited: 2.0,
    events.IssueEdited: 2.0,
}

_CLOSES = events.IssueClosed | events.PullRequestClosed
_REOPENS = events.IssueReopened | events.PullRequestReopened

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Pace:
    """How busy a worker is. Writes of one installation are ``apart`` seconds apart."""

    concurrency: int = 8
    apart: float = APART_SECONDS
    polling_seconds: float = 0.05
    debounce: Mapping[type[Event], float] = field(default_factory=lambda: DEBOUNCE)
    day_seconds: float = 86_400.0


class Dispatcher:
    """Makes a job of each task of each delivery: one worker at a time, each delivery in one transaction."""

    def __init__(
        self,
        database: Database,
        queue: Queue,
        tasks: Callable[[Event], tuple[Task, ...]],
        uninstalled: Callable[[str, Collection[str]], None],
        pace: Pace,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._installations = Installations(database)
        self._queue = queue
        self._tasks = tasks
        self._uninstalled = uninstalled
        self._pace = pace
        self._clock = clock

    def step(self) -> int:
        """Take what there is to take now; how many deliveries that were."""
        waiting = select(DELIVERIES).where(DELIVERIES.c.dispatched_at.is_(None)).order_by(DELIVERIES.c.seq)
        with self._database.read() as connection:
            rows = connection.execute(waiting.limit(BATCH)).all()
        read = [(row, stored_event(row.event)) for row in rows]
        for _, event in read:
            # Before it is taken note of, so that a crash in between forgets nothing.
            self._uninstall(event)
        if read:
            with self._queue.transaction() as connection:
                for row, event in read:
                    self._take(connection, row, event)
        return len(read)

    def _uninstall(self, event: Event | str) -> None:
        if isinstance(event, events.InstallationChanged) and event.action == "deleted":
            self._uninstalled(event.account, event.repositories)
        elif isinstance(event, events.InstallationRepositoriesChanged):
            self._uninstalled("", event.removed)

    def _take(self, connection: Connection, row: Row[Any], event: Event | str) -> None:
        problem = None
        if isinstance(event, str):
            # Kept, so that the operator can see it.
            problem = event[:500]
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
        wait = event.days * self._pace.day_seconds if isinstance(event, events.IssueUnanswered) else 0.0
        due = row.received_at + (wait or self._pace.debounce.get(type(event), 0.0))
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

    def _note(self, connection: Connection, row: Row[Any], event: Event) -> None:
        """Whether the subject is open, as far as this event says so."""
        if isinstance(event, _CLOSES):
            closed = {"repository": row.repository, "number": row.number, "closed_at": row.received_at}
            insert = self._database.insert(CLOSED).values(**closed)
            connection.execute(insert.on_conflict_do_update(index_elements=["repository", "number"], set_=closed))
        elif isinstance(event, _REOPENS):
            here = CLOSED.c.repository == row.repository, CLOSED.c.number == row.number
            connection.execute(delete(CLOSED).where(*here))


class Worker:
    """Runs jobs in this process. There can be one worker in a process, and many on one database."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        runner: Runner,
        counts: Counts,
        pace: Pace,
        keep_days: int,
    ) -> None:
        self._keep_days = keep_days
        self._ledger = ledger
        self._queue = queue
        self._runner = runner
        self._counts = counts
        self._pace = pace

    def run(self, stop: threading.Event) -> bool:
        """Work until ``stop`` is set, then let running jobs end; False where the lease was lost."""
        database = self._ledger.database
        lease = take_lease(database.locks)
        recovery = Recovery(database, self._queue, lease)
        recovery.seen()
        self._queue.forget_former()
        executor = Consumer(
            database,
            lease.executor,
            partial(self._runner.run, executor=lease.executor),
            concurrency=self._pace.concurrency,
            polling_seconds=self._pace.polling_seconds,
            apart=self._pace.apart,
        )
        retention = Retention(database, self._queue, keep_days=self._keep_days)
        dispatcher = Dispatcher(database, self._queue, router.tasks, retention.uninstalled, self._pace)
        _log.info("worker_started", worker=lease.executor)
        try:
            self._loop(stop, lease, dispatcher, recovery, retention)
        finally:
            lost = not lease.lock.alive()
            _log.info("worker_stops", worker=lease.executor, lost=lost)
            executor.close(0 if lost else DRAIN_SECONDS)
            if not lost:
                _guarded(recovery.gone)
            _guarded(lambda: self._counts.flush(self._ledger))
            lease.lock.release()
        return not lost

    def _loop(
        self,
        stop: threading.Event,
        lease: Lease,
        dispatcher: Dispatcher,
        recovery: Recovery,
        retention: Retention,
    ) -> None:
        """Until ``stop`` is set or the lease is lost."""
        leadership = Leadership(self._ledger.database.locks, "dispatcher")
        own = _Round(ROUND_SECONDS, lambda: self._live(recovery))
        # What one worker does for all; were it done by two at once, a job that was just put back could be put
        # back again while somebody runs it.
        shared = (
            _Round(ROUND_SECONDS, recovery.take_over),
            _Round(SWEEP_SECONDS, retention.sweep),
        )
        checked, ours = 0.0, False
        try:
            while not stop.wait(DISPATCH_SECONDS):
                now = time.monotonic()
                if now - checked > ROUND_SECONDS:
                    checked = now
                    if not lease.lock.alive():
                        return
                    ours = bool(_guarded(leadership.ours))
                own.tick(now)
                if ours:
                    while _guarded(dispatcher.step) and not stop.is_set():
                        pass
                    for each in shared:
                        each.tick(now)
        finally:
            leadership.give_up()

    def _live(self, recovery: Recovery) -> None:
        recovery.seen()
        self._counts.flush(self._ledger)


class _Round:
    """Something to be done from time to time, the first time at once."""

    def __init__(self, seconds: float, act: Callable[[], object]) -> None:
        self._seconds = seconds
        self._act = act
        self._last = float("-inf")

    def tick(self, now: float) -> None:
        if now - self._last >= self._seconds:
            self._last = now
            _guarded(self._act)


def _guarded(act: Callable[[], T]) -> T | None:
    """A database that is away for a moment does not end the worker; it is asked again next time."""
    try:
        return act()
    except SQLAlchemyError as error:
        _log.warning("database_trouble", error=type(error).__name__)
    except Exception:  # noqa: BLE001 - the worker's loop: what goes wrong in one round must not end all of them
        _log.exception("round_failed")
    return None
