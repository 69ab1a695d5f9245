"""What operators see of jobs, and what they can do about them: the engine's own state, read and moved."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from bot.core import events
from bot.core.errors import OperatorError
from bot.core.subjects import Actor, Issue
from bot.pipeline.inbox import Inbox, Received
from bot.pipeline.job import ASKED, DEAD, ENDED, OPEN, Job, State, stored_event
from bot.pipeline.store.database import Database
from bot.pipeline.store.decisions import Decisions
from bot.pipeline.store.tables import WORKERS

if TYPE_CHECKING:
    from bot.pipeline.queue import Queue

#: Ended jobs are counted for this long, seconds.
COUNTED_SECONDS = 24 * 3600.0


class Jobs:
    """Reading and moving jobs; nothing here runs one. The engine is imported when it is first asked."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._received = Received(database)
        self._clock = clock

    @cached_property
    def _queue(self) -> Queue:
        from bot.pipeline.queue import Queue

        return Queue(self._database)

    def get(self, job: str) -> Job:
        """Raises OperatorError where there is none of that id."""
        found = self._queue.get(job)
        if found is None:
            raise OperatorError(f"no job {job!r}: ids are <delivery>:<task>, see 'bouncer jobs list'")
        return found

    def list(self, states: Sequence[State] = (), repository: str = "", limit: int = 50) -> tuple[Job, ...]:
        """Jobs in these states (all where none is named), newest first."""
        return self._queue.list(states, repository, limit)

    def event(self, job: Job) -> str | None:
        """The event that the job is about, as stored JSON; None after its time."""
        return self._received.event(job.delivery)

    def counts(self) -> dict[State, int]:
        """How many jobs wait, run or failed, and how many of the last day's ended otherwise."""
        return {**self.unfinished(), **self._queue.counts(ENDED, self._clock() - COUNTED_SECONDS)}

    def unfinished(self) -> dict[State, int]:
        """How many jobs wait, run or failed."""
        return self._queue.counts((*OPEN, *DEAD))

    def untaken(self) -> int:
        """Recorded deliveries that no worker has made jobs of yet: many where none is running."""
        return self._received.untaken()

    def oldest_age(self) -> float:
        """Seconds that the longest-overdue job has been due, or an untaken delivery waits; 0 where none does.

        A job that waits for its turn to write is not overdue.
        """
        queued = [job for job in self._queue.list(OPEN, limit=10_000) if job.state == "queued"]
        since = [job.due for job in queued if job.stage == "decide"]
        oldest = self._received.oldest()
        since += [] if oldest is None else [oldest]
        return max(0.0, self._clock() - min(since)) if since else 0.0

    def worker_age(self) -> float | None:
        """Seconds since any worker was seen; None where there never was one."""
        with self._database.read() as connection:
            seen = connection.scalar(select(func.max(WORKERS.c.seen_at)))
        return None if seen is None else max(0.0, self._clock() - seen)

    def cancel(self, job: str) -> Job:
        """Stop a job: a pending one never starts, a running one writes nothing more."""
        found = self.get(job)
        if found.state not in OPEN:
            raise OperatorError(f"job {job} cannot be cancelled: it is {found.state}")
        self._queue.cancel(found)
        return self.get(job)

    def retry(self, job: str) -> Job:
        """Run a failed, cancelled or waiting job now; what it decided, and what it paid a model for, is kept."""
        found = self.get(job)
        if found.state == "waiting":
            self._queue.cancel(found)
        elif found.state not in ("dead", "cancelled"):
            raise OperatorError(f"job {job} cannot be retried: it is {found.state}")
        return self._queue_again(found)

    def decide_again(self, job: str, words: Collection[str]) -> Job | None:
        """Run an ended job again that abstained with one of ``words``; None if it is open or deleted."""
        found = self._queue.get(job)
        if found is None or found.state not in ("done", *DEAD):
            return None
        Decisions(self._database).take_up(job, words)
        return self._queue_again(found)

    def _queue_again(self, found: Job) -> Job:
        anew = found.model_copy(update={"attempt": found.attempt + 1, "tries": 0, "due": self._clock()})
        with self._queue.transaction() as connection:
            self._queue.enqueue(connection, anew)
        self._queue.replaced(found, anew.workflow)
        return self.get(found.id)

    def retry_failed(self) -> int:
        """Run every failed job again; how many those were."""
        failed = self._queue.list(DEAD, limit=1000)
        for each in failed:
            self.retry(each.id)
        return len(failed)

    def recheck(self, repository: str, number: int, by: str, *, pull: bool) -> str:
        """Have an issue or pull request looked at again, as if ``/bouncer recheck`` were said; the delivery's id.

        Raises OperatorError where nothing was heard from the repository for so long that it is not known any more.
        """
        known = self._received.newest(repository)
        event = None if known is None else stored_event(known)
        if not isinstance(event, events.RepositoryEvent):
            raise OperatorError(
                f"nothing was heard from {repository} lately: comment `/bouncer recheck` there instead"
            )
        sender = Actor(id=0, login=by)
        asked = events.RecheckRequested(
            installation=event.installation,
            sender=sender,
            repository=event.repository,
            # A job reads the issue itself: only its number counts here.
            issue=Issue(number=number, title="", author=sender, is_pull_request=pull),
        )
        delivery = f"{ASKED}{uuid.uuid4().hex}"
        Inbox(self._database, self._queue, clock=self._clock).accept(delivery, asked)
        return delivery

    def close(self) -> None:
        """Give back all connections."""
        if "_queue" in self.__dict__:
            self._queue.close()
