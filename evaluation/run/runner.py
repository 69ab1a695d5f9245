"""Run a list of tasks through a judge, several at a time, and keep what each gave.

Every benchmark replays with the same three pieces::

    folder = RunFolder.resume(path, facts, ids)      # new, or goes on where it stopped
    result = run(tasks, judge, folder, Options())    # judge: task -> Outcome, called in worker threads
    for record in folder.records(): ...              # scoring reads the folder, never the model

The runner knows nothing about benchmarks or models. ``tasks`` may be any iterable of ``Task`` and is read
as workers become free, so memory does not grow with its length (but for one id a task). ``judge`` is plain
code that may raise:

* ``TransientError``: tried again, ``Options.attempts`` times in all, after the wait that it names;
* ``BudgetExceeded``: tried again with fewer tasks at a time, since those under way have reserved more than they
  will spend; when a task alone is too dear the run stops, without a record of it;
* ``Postponed``: the task is not recorded, the others go on; continuing the run tries it again;
* any other ``BouncerError``: recorded as the task's ``error``;
* anything else is a bug in a handler: recorded as ``bug: ...`` with its traceback in the log, and the
  other tasks go on, as they would in the live worker.

Setting ``Options.stop`` (the command line does so on Ctrl-C) stops starting tasks, lets those under way finish
and be recorded, and reports ``stopped``; the same call goes on from there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from bot.core.actions import Decision, Usage
from bot.core.errors import BouncerError, BudgetExceeded, ModelError, TransientError
from evaluation.run.folder import Record, RunFolder

T = TypeVar("T")
U = TypeVar("U")
log = logging.getLogger(__name__)

#: How often a task is tried while the other side has a passing fault.
ATTEMPTS = 3
#: The longest wait between two attempts, seconds.
LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class Task(Generic[T]):
    """One thing to judge: an id that is unique in the run, and whatever the judge needs."""

    id: str
    value: T


@dataclass(frozen=True)
class Outcome:
    """A judge's result for one task."""

    decision: Decision | None = None
    raw_reply: str | None = None
    usage: Usage = field(default_factory=Usage)
    lost: Usage | None = None
    error: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """How to run, not what: none of this changes a decision."""

    workers: int = 1
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.perf_counter
    stop: threading.Event = field(default_factory=threading.Event)


class Postponed(ModelError):
    """A question has not been put to anyone yet: its answer is to come from elsewhere, a batch for instance."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="unrecorded")


@dataclass(frozen=True)
class Result:
    """How a session ended. ``stopped`` is None when every task was tried; ``postponed`` have no record yet."""

    skipped: int
    finished: int
    postponed: int
    stopped: str | None = None


def run(
    tasks: Iterable[Task[T]],
    judge: Callable[[T], Outcome],
    folder: RunFolder,
    options: Options,
    on_record: Callable[[Record], None] = lambda record: None,
) -> Result:
    """Judge every task that ``folder`` has no record of, then close the folder.

    Returns when all are recorded or the run stopped. Where ``tasks`` itself raises (a malformed row), tasks
    under way are finished and recorded first.
    """
    finished = folder.done()
    session = _Session((task for task in tasks if task.id not in finished), judge, options)
    complete = False
    try:
        for record in session.records():
            folder.append(record)
            on_record(record)
        complete = not session.stopped and not session.postponed
    finally:
        folder.close(datetime.now(UTC) if complete else None)
    if session.broken is not None:
        raise session.broken
    return Result(len(finished), session.finished, session.postponed, session.stopped)


@dataclass(frozen=True)
class _Started(Generic[T]):
    """A task under way, and how many were allowed to be when it was started."""

    task: Task[T]
    width: int


class _Session(Generic[T]):
    """One call of ``run``: which tasks are under way, and why no more are started."""

    def __init__(self, tasks: Iterator[Task[T]], judge: Callable[[T], Outcome], options: Options) -> None:
        self.tasks = tasks
        self.judge = judge
        self.options = options
        self.finished = self.postponed = 0
        self.stopped: str | None = None
        self.broken: BouncerError | None = None
        # Two a worker, so that none waits for the next task to be read.
        self._width = 2 * options.workers
        self._held: list[Task[T]] = []
        self._under_way: dict[Future[Record], _Started[T]] = {}

    def records(self) -> Iterator[Record]:
        """Records in the order of finishing; those that are found finished together, as they were started."""
        with ThreadPoolExecutor(self.options.workers, thread_name_prefix="task") as pool:
            while self._fill(pool):
                ready, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
                for future in [future for future in self._under_way if future in ready]:
                    started = self._under_way.pop(future)
                    try:
                        record = future.result()
                    except BudgetExceeded as error:
                        self._narrow(started, error)
                    except Postponed:
                        self.postponed += 1
                    else:
                        self.finished += 1
                        yield record

    def _fill(self, pool: ThreadPoolExecutor) -> bool:
        """Start as many tasks as may be under way; False when nothing is left to wait for."""
        if self.options.stop.is_set():
            self._halt("interrupted")
        while not self.stopped and len(self._under_way) < self._width:
            task = self._next()
            if task is None:
                break
            future = pool.submit(_record, task, self.judge, self.options)
            self._under_way[future] = _Started(task, self._width)
        return bool(self._under_way)

    def _next(self) -> Task[T] | None:
        if self._held:
            return self._held.pop(0)
        try:
            return next(self.tasks, None)
        except BouncerError as error:
            self.broken = error
            self._halt(str(error))
            return None

    def _narrow(self, started: _Started[T], error: BudgetExceeded) -> None:
        """Run fewer tasks at a time, so that reserved budget is freed; stop if one task alone is too expensive."""
        if started.width == 1:
            self._halt(str(error))
            return
        self._held.append(started.task)
        self._width = max(1, min(self._width, self.options.workers, started.width) - 1)

    def _halt(self, why: str) -> None:
        """Start nothing more and give back what has not begun."""
        self.stopped = self.stopped or why
        for future in list(self._under_way):
            if future.cancel():
                del self._under_way[future]


def in_order(work: Callable[[T], U], items: Sequence[T], workers: int) -> Iterator[U]:
    """Yield ``work(item)`` in the order of the items, several at a time; an error cancels what has not begun."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="build")
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)


def _record(task: Task[T], judge: Callable[[T], Outcome], options: Options) -> Record:
    started = options.clock()
    outcome = _outcome(task, judge, options)
    return Record(
        task_id=task.id,
        decision=None if outcome.decision is None else outcome.decision.model_dump(mode="json"),
        raw_reply=outcome.raw_reply,
        usage=outcome.usage,
        lost=outcome.lost if outcome.error else None,
        seconds=round(options.clock() - started, 6),
        error=outcome.error,
        details=outcome.details,
    )


def _outcome(task: Task[T], judge: Callable[[T], Outcome], options: Options) -> Outcome:
    usage = Usage()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            outcome = judge(task.value)
        except (BudgetExceeded, Postponed):
            raise
        except TransientError as error:
            usage += error.usage or Usage()
            if attempt == ATTEMPTS:
                return Outcome(error=f"transient: {error}", usage=usage)
            options.sleep(min(LONGEST_WAIT, 2.0**attempt if error.wait is None else error.wait))
        except BouncerError as error:
            if isinstance(error, ModelError):
                usage += error.usage or Usage()
            return Outcome(error=f"{type(error).__name__}: {error}", usage=usage)
        except Exception as error:  # a handler's bug must not take the other tasks with it
            log.exception("task %s", task.id)
            return Outcome(error=f"bug: {type(error).__name__}: {error}", usage=usage)
        else:
            lost = None if outcome.lost is None else usage + outcome.lost
            return replace(outcome, usage=usage + outcome.usage, lost=lost)
    raise AssertionError("unreachable: the last attempt returns")
