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
from bot.pipeline.publisher import APART_SECONDS
from bot.pipeline.queue import Consumer, Queue
from bot.pipeline.recovery import Lease, Recovery, take_lease
from bot.pipeline.retention import Retention
from bot.pipeline.runner import Runner
from bot.pipeline.store import Ledger
from bot.pipeline.store.counters import Counts
from bot.pipeline.store.locks import Leadership

#: Seconds between two rounds of periodic work, and between two deletions of old rows.
ROUND_SECONDS = 5.0
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
    polling_seconds: float = 1.25


@dataclass(frozen=True)
class Worker:
    """Runs jobs in this process. There can be one worker in a process, and many on one database."""

    ledger: Ledger
    queue: Queue
    inbox: Inbox
    runner: Runner
    counts: Counts
    pace: Pace
    keep_days: int

    def run(self, stop: threading.Event) -> bool:
        """Work until ``stop`` is set, then let running jobs end. Return False if the lease was lost."""
        database = self.ledger.database
        lease = take_lease(database.locks)
        recovery = Recovery(database, self.queue, lease)
        recovery.seen()
        executor = Consumer(
            database,
            lease.executor,
            partial(self.runner.run, executor=lease.executor),
            concurrency=self.pace.concurrency,
            polling_seconds=self.pace.polling_seconds,
            apart=self.pace.apart,
        )
        retention = Retention(database, self.queue, keep_days=self.keep_days)
        _log.info("worker_started", worker=lease.executor)
        try:
            self._loop(stop, lease, recovery, retention)
        finally:
            lost = not lease.lock.alive()
            _log.info("worker_stops", worker=lease.executor, lost=lost)
            executor.close(0 if lost else DRAIN_SECONDS)
            if not lost:
                _guarded(recovery.gone)
            _guarded(lambda: self.counts.flush(self.ledger.counters))
            lease.lock.release()
        return not lost

    def _loop(self, stop: threading.Event, lease: Lease, recovery: Recovery, retention: Retention) -> None:
        """Do periodic work until ``stop`` is set or the lease is lost."""
        # One worker does the last three for all: of two, the second could recover a job again that runs already.
        leadership = Leadership(self.ledger.database.locks, "dispatcher")
        swept_at = float("-inf")
        try:
            while not stop.wait(ROUND_SECONDS):
                if not lease.lock.alive():
                    return
                _guarded(recovery.seen)
                _guarded(lambda: self.counts.flush(self.ledger.counters))
                if not _guarded(leadership.ours):
                    continue
                _guarded(lambda: self.inbox.take_up(retention.uninstalled))
                _guarded(recovery.take_over)
                if time.monotonic() - swept_at >= SWEEP_SECONDS:
                    swept_at = time.monotonic()
                    _guarded(retention.sweep)
        finally:
            leadership.give_up()


def _guarded(act: Callable[[], T]) -> T | None:
    """Return the result of ``act``, or None after logging its error: an outage of the database ends no worker."""
    try:
        return act()
    except SQLAlchemyError as error:
        _log.warning("database_trouble", error=type(error).__name__)
    except Exception:  # noqa: BLE001 - the worker's loop: what goes wrong in one round must not end all of them
        _log.exception("round_failed")
    return None
