"""Jobs as operators see them: lists, counts, cancel, retry, recheck."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import func, select

from bot.core import events
from bot.core.errors import OperatorError
from bot.core.subjects import Actor, Issue
from bot.pipeline.inbox import Deliveries, Inbox, stored_event
from bot.pipeline.job import DEAD, DEAD_LIMIT, ENDED, OPEN, OPERATOR_PREFIX, Job, State
from bot.pipeline.queue import Queue
from bot.pipeline.store.database import Database
from bot.pipeline.store.decisions import Decisions
from bot.pipeline.store.tables import DELIVERIES, WORKERS

#: The newest attempts, among which jobs that ended are counted.
NEWEST = 5_000
_UNTAKEN = DELIVERIES.c.dispatched_at.is_(None)


class Jobs:
    """Reads and changes jobs, and runs none."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._decisions = Decisions(database)
        self._queue = Queue(database)

    def get(self, job: str) -> Job:
        """Return a job. Raises OperatorError if there is none of that id."""
        match = self._queue.get(job)
        if match is None:
            raise OperatorError(f"no job {job!r}: ids are <delivery>:<task>, see 'bouncer jobs list'")
        return match

    def list(self, states: Sequence[State] = (), repository: str = "", limit: int = 50) -> tuple[Job, ...]:
        """Return jobs in these states (all if empty), newest first."""
        return self._queue.list(states, repository, limit)

    def event(self, job: Job) -> str | None:
        """Return the job's event as JSON; None if it was deleted."""
        return Deliveries(self._database).event(job.delivery)

    def counts(self) -> dict[State, int]:
        """Count all open and dead jobs, and those among the newest that ended otherwise."""
        return {**self.unfinished(), **self._queue.counts(ENDED, NEWEST)}

    def unfinished(self) -> dict[State, int]:
        """Count open and dead jobs."""
        return self._queue.counts((*OPEN, *DEAD))

    def untaken(self) -> int:
        """Count the deliveries that wait for a worker without having jobs."""
        return int(self._database.scalar(select(func.count()).select_from(DELIVERIES).where(_UNTAKEN)) or 0)

    def oldest_age(self) -> float:
        """Return the seconds since the oldest job became due or delivery arrived that waits for a worker, or 0."""
        oldest = self._database.scalar(select(func.min(DELIVERIES.c.received_at)).where(_UNTAKEN))
        moments = [moment for moment in (self._queue.oldest_due(), oldest) if moment is not None]
        return max(0.0, self._database.clock() - min(moments)) if moments else 0.0

    def worker_age(self) -> float | None:
        """Return the seconds since a worker reported last; None if none ever did."""
        age = self._database.scalar(select(self._database.now() - func.max(WORKERS.c.seen_at)))
        return None if age is None else max(0.0, float(age))

    def cancel(self, job: str) -> Job:
        """Cancel a job: a waiting one never starts, a running one writes nothing more."""
        current = self.get(job)
        if current.state not in OPEN:
            raise OperatorError(f"job {job} cannot be cancelled: it is {current.state}")
        self._queue.cancel(current)
        return self.get(job)

    def retry(self, job: str) -> Job:
        """Run a dead, cancelled or waiting job now; its decisions and paid replies are kept."""
        current = self.get(job)
        if current.state == "waiting":
            self._queue.cancel(current)
        elif current.state not in ("dead", "cancelled"):
            raise OperatorError(f"job {job} cannot be retried: it is {current.state}")
        return self._enqueue_again(current)

    def decide_again(self, job: str, words: Collection[str]) -> Job | None:
        """Run an ended job again that abstained with one of ``words``; None if it is open or deleted."""
        current = self._queue.get(job)
        if current is None or current.state not in ("done", *DEAD):
            return None
        self._decisions.reopen(job, words)
        return self._enqueue_again(current)

    def _enqueue_again(self, job: Job) -> Job:
        self._queue.start_again(job, self._database.clock())
        return self.get(job.id)

    def retry_failed(self) -> int:
        """Run every dead job again, and return their number."""
        jobs = self._queue.list(DEAD, limit=DEAD_LIMIT)
        for job in jobs:
            self.retry(job.id)
        return len(jobs)

    def unjudged(self, since: float) -> int:
        """Count the jobs that an outage kept from a verdict since then."""
        return len(self._decisions.outages(since))

    def rejudge(self, since: float, limit: int) -> int:
        """Run up to ``limit`` of these jobs again, oldest first. Return the number of jobs queued."""
        outages = self._decisions.outages(since)
        again = (job for job, words in outages.items() if self.decide_again(job, words) is not None)
        return sum(1 for _ in islice(again, limit))

    def recheck(self, repository: str, number: int, by: str, *, pull: bool) -> str:
        """Store the event of a ``/bouncer recheck``, and return its delivery id.

        Raises OperatorError if no delivery of the repository is stored, so that nothing is known about it.
        """
        lacking = f"nothing was heard from {repository} lately: comment `/bouncer recheck` there instead"
        # A job reads the issue itself: only its number counts here.
        issue = Issue(number=number, title="", author=Actor(id=0, login=by), is_pull_request=pull)
        return self._request(events.RecheckRequested, repository, by, lacking, issue=issue)

    def onboard(self, repository: str, by: str, config: str, explanation: str) -> str:
        """Store the request for a pull request that adds ``bouncer.yml``, and return its delivery id.

        Raises OperatorError if no delivery of the repository is stored.
        """
        fields = {"config": config, "explanation": explanation}
        lacking = f"no delivery from {repository} yet: copy the text instead"
        return self._request(events.OnboardingRequested, repository, by, lacking, **fields)

    def _request(
        self, event_type: type[events.RepositoryEvent], repository: str, by: str, lacking: str, **fields: Any
    ) -> str:
        events_here = select(DELIVERIES.c.event).where(DELIVERIES.c.repository == repository)
        text = self._database.scalar(events_here.order_by(DELIVERIES.c.seq.desc()).limit(1))
        event = None if text is None else stored_event(text)
        if not isinstance(event, events.RepositoryEvent):
            raise OperatorError(lacking)
        common = {"installation": event.installation, "repository": event.repository}
        request = event_type(**common, sender=Actor(id=0, login=by), **fields)
        delivery = f"{OPERATOR_PREFIX}{uuid.uuid4().hex}"
        Inbox(self._database, self._queue).accept(delivery, request)
        return delivery

    def close(self) -> None:
        self._queue.close()
