"""A worker process: takes a slot, runs the queue, and does the rounds until it is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError

from bot import router
from bot.core.events import Event
from bot.jobs.dispatch import DEBOUNCE, Dispatcher
from bot.jobs.lane import Lane
from bot.jobs.queue import Queue
from bot.jobs.recovery import Reaper, Slot, take_slot
from bot.jobs.retention import Retention
from bot.jobs.runner import Runner
from bot.jobs.store import Jobs
from bot.ledger import Ledger
from bot.ledger.locks import Held, Locks
from bot.ops.metrics import Counts

#: Seconds between two looks for new deliveries, between two rounds of the reaper, and between two sweeps.
DISPATCH_SECONDS = 0.05
ROUND_SECONDS = 2.0
SWEEP_SECONDS = 600.0
#: How long running jobs are given at the end, seconds: with the rest of the shutdown, less than 30.
DRAIN_SECONDS = 22.0

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Pace:
    """How busy a worker is."""

    concurrency: int = 8
    polling_seconds: float = 0.1
    debounce: Mapping[type[Event], float] = field(default_factory=lambda: DEBOUNCE)


class Worker:
    """Runs jobs in this process. There can be one worker in a process, and many on one database."""

    def __init__(
        self, ledger: Ledger, jobs: Jobs, runner: Runner, counts: Counts | None = None, pace: Pace | None = None
    ) -> None:
        self._ledger = ledger
        self._jobs = jobs
        self._runner = runner
        self._counts = counts or Counts()
        self._pace = pace or Pace()

    def run(self, stop: threading.Event) -> bool:
        """Work until ``stop`` is set, then let running jobs end; False where the slot was lost."""
        database = self._ledger.database
        slot = take_slot(database.locks)
        queue = Queue(
            database,
            slot.number,
            Lane(self._jobs, self._runner, stop).run,
            concurrency=self._pace.concurrency,
            polling_seconds=self._pace.polling_seconds,
        )
        reaper = Reaper(database, queue, self._jobs, slot)
        dispatcher = Dispatcher(database, queue, router.tasks, self._pace.debounce)
        rounds = (
            _Round(ROUND_SECONDS, lambda: self._make_round(reaper)),
            _Round(SWEEP_SECONDS, Retention(database, queue).sweep),
        )
        _log.info("worker_started", slot=slot.number)
        try:
            self._loop(stop, slot, dispatcher, rounds)
        finally:
            lost = not slot.alive()
            _log.info("worker_stops", slot=slot.number, lost=lost)
            queue.close(0 if lost else DRAIN_SECONDS)
            if not lost:
                _guarded(reaper.gone)
            _guarded(lambda: self._counts.flush(self._ledger))
            slot.release()
        return not lost

    def _loop(self, stop: threading.Event, slot: Slot, dispatcher: Dispatcher, rounds: tuple[_Round, ...]) -> None:
        """Until ``stop`` is set or the slot is lost."""
        turn = _Turn(self._ledger.database.locks)
        checked = 0.0
        try:
            while not stop.wait(DISPATCH_SECONDS):
                now = time.monotonic()
                if now - checked > ROUND_SECONDS:
                    checked = now
                    if not slot.alive():
                        return
                    _guarded(turn.check)
                if turn.ours:
                    while _guarded(dispatcher.step) and not stop.is_set():
                        pass
                for each in rounds:
                    each.tick(now)
        finally:
            turn.give_up()

    def _make_round(self, reaper: Reaper) -> None:
        reaper.seen()
        reaper.take_over()
        reaper.settle()
        self._counts.flush(self._ledger)


class _Turn:
    """One worker dispatches for all: whoever holds the lock of that name."""

    def __init__(self, locks: Locks) -> None:
        self._locks = locks
        self._lock: Held | None = None

    @property
    def ours(self) -> bool:
        return self._lock is not None

    def check(self) -> None:
        """Take the lock where it is free; let go of one that was lost."""
        if self._lock is not None and not self._lock.alive():
            self.give_up()
        if self._lock is None:
            self._lock = self._locks.take("dispatcher")

    def give_up(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


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
        return None
