"""A worker process: takes a lease, runs jobs, and does periodic work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError

from bot.pipeline.inbox import Inbox
from bot.pipeline.metrics import Counts
from bot.pipeline.publisher import APART_SECONDS
from bot.pipeline.queue import Consumer, Queue
from bot.pipeline.recovery import Lease, Recovery, take_lease
from bot.pipeline.retention import Retention
from bot.pipeline.runner import Runner
from bot.pipeline.store import Ledger
from bot.pipeline.store.locks import Leadership

#: Seconds between two looks for deliveries that need a worker, for dead workers, and for old rows.
LOOK_SECONDS = 0.5
ROUND_SECONDS = 2.0
SWEEP_SECONDS = 600.0
#: Time for running jobs at the end, seconds: with the rest of the shutdown less than 30.
DRAIN_SECONDS = 22.0

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Pace:
    """Limits of a worker. Writes of one installation are ``apart`` seconds apart."""

    concurrency: int = 8
    apart: float = APART_SECONDS
    polling_seconds: float = 0.5


class Worker:
    """Runs jobs in this process. There can be one worker in a process, and many on one database."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        inbox: Inbox,
        runner: Runner,
        counts: Counts,
        pace: Pace,
        keep_days: int,
    ) -> None:
        self._keep_days = keep_days
        self._ledger = ledger
        self._queue = queue
        self._inbox = inbox
        self._runner = runner
        self._counts = counts
        self._pace = pace

    def run(self, stop: threading.Event) -> bool:
        """Work until ``stop`` is set, then let running jobs end. Return False if the lease was lost."""
        database = self._ledger.database
        lease = take_lease(database.locks)
        recovery = Recovery(database, self._queue, lease)
        recovery.seen()
        executor = Consumer(
            database,
            lease.executor,
            partial(self._runner.run, executor=lease.executor),
            concurrency=self._pace.concurrency,
            polling_seconds=self._pace.polling_seconds,
            apart=self._pace.apart,
        )
        retention = Retention(database, self._queue, keep_days=self._keep_days)
        _log.info("worker_started", worker=lease.executor)
        try:
            self._loop(stop, lease, recovery, retention)
        finally:
            lost = not lease.lock.alive()
            _log.info("worker_stops", worker=lease.executor, lost=lost)
            executor.close(0 if lost else DRAIN_SECONDS)
            if not lost:
                _guarded(recovery.gone)
            _guarded(lambda: self._counts.flush(self._ledger))
            lease.lock.release()
        return not lost

    def _loop(self, stop: threading.Event, lease: Lease, recovery: Recovery, retention: Retention) -> None:
        """Do periodic work until ``stop`` is set or the lease is lost."""
        leadership = Leadership(self._ledger.database.locks, "dispatcher")
        own = _Round(ROUND_SECONDS, lambda: self._live(recovery))
        # One worker does these for all: of two, the second could recover a job again that runs already.
        shared = (
            _Round(LOOK_SECONDS, lambda: self._inbox.take_up(retention.uninstalled)),
            _Round(ROUND_SECONDS, recovery.take_over),
            _Round(SWEEP_SECONDS, retention.sweep),
        )
        checked, ours = 0.0, False
        try:
            while not stop.wait(LOOK_SECONDS):
                now = time.monotonic()
                if now - checked > ROUND_SECONDS:
                    checked = now
                    if not lease.lock.alive():
                        return
                    ours = bool(_guarded(leadership.ours))
                own.tick(now)
                if ours:
                    for duty in shared:
                        duty.tick(now)
        finally:
            leadership.give_up()

    def _live(self, recovery: Recovery) -> None:
        recovery.seen()
        self._counts.flush(self._ledger)


class _Round:
    """An action that is repeated, the first time at once."""

    def __init__(self, seconds: float, act: Callable[[], object]) -> None:
        self._seconds = seconds
        self._act = act
        self._last = float("-inf")

    def tick(self, now: float) -> None:
        if now - self._last >= self._seconds:
            self._last = now
            _guarded(self._act)


def _guarded(act: Callable[[], T]) -> T | None:
    """Return the result of ``act``, or None after logging its error: an outage of the database ends no worker."""
    try:
        return act()
    except SQLAlchemyError as error:
        _log.warning("database_trouble", error=type(error).__name__)
    except Exception:  # noqa: BLE001 - the worker's loop: what goes wrong in one round must not end all of them
        _log.exception("round_failed")
    return None
