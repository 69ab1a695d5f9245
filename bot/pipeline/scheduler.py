"""Enqueues the attempts of a job: the next stage, another try after a pause, a long wait, or a notice."""

from __future__ import annotations

import random
from collections.abc import Callable

import structlog

from bot.core.errors import OperatorNeeded, TransientError
from bot.pipeline.job import GaveUp, Job, Notice, Stage
from bot.pipeline.queue import Queue

#: Failures in a row after which a job waits for an operator: an hour without GitHub or a provider, about.
MAX_TRIES = 13
#: Failures in a row after which a job is dead if the error is most likely a bug.
MAX_TRIES_BUG = 3

FIRST_SECONDS = 2.0
LONGEST_SECONDS = 15 * 60.0
#: Longest Retry-After that is obeyed, seconds: GitHub's rate limits last an hour.
LONGEST_ASKED_SECONDS = 2 * 3600.0

#: A job waits this long for an operator to repair a key, a model name or a network, seconds.
OPERATOR_SECONDS = 7 * 24 * 3600.0
FIRST_OPERATOR_SECONDS, LONGEST_OPERATOR_SECONDS = 5 * 60.0, 4 * 3600.0
#: A model's answer starts waiting jobs at most this often, seconds: one of them may fail for its own reason.
BRING_FORWARD_SECONDS = 5 * 60.0

_log = structlog.get_logger(__name__)


class Scheduler:
    """Enqueues attempts and notices. Methods that return a text return the outcome of the present attempt."""

    def __init__(self, queue: Queue, clock: Callable[[], float], *, notifies: bool) -> None:
        """``notifies``: the operator named a receiver of notices."""
        self._queue = queue
        self._clock = clock
        self._notifies = notifies
        #: False if no job of this worker waits for an operator.
        self._may_wait = True
        self._brought_forward = float("-inf")

    def enqueue(
        self,
        job: Job,
        due: float,
        error: str | None = None,
        *,
        stage: Stage | None = None,
        counts: bool = False,
        awaits_operator: bool = False,
    ) -> str:
        """Enqueue the next attempt, which starts when it is due.

        ``stage`` is None for the same one. ``counts``: the present attempt counts as a try.
        """
        error = error and error.replace("\0", "")[:1000]
        changed = {
            "attempt": job.attempt + 1, "tries": job.tries + counts, "due": due, "error": error,
            "stage": stage or job.stage, "awaits_operator": awaits_operator,
        }  # fmt: skip
        attempt = job.model_copy(update=changed)
        self._queue.enqueue_next(job, attempt, max(0.0, due - self._clock()))
        return error or "goes on"

    def retry(self, job: Job, error: str, retry_after: float | None, max_tries: int) -> str:
        """Enqueue another try after a pause. Raises GaveUp after ``max_tries``."""
        tries = job.tries + 1
        if tries >= max_tries:
            raise self.give_up(job, f"gave up after {tries} tries: {error}")
        wait = pause(tries, retry_after, random.random())  # noqa: S311 - spreads retries, guards nothing
        _log.warning("job_again", error=error, tries=tries, wait=round(wait, 1))
        return self.enqueue(job, self._clock() + wait, error, counts=True)

    def retry_transient(self, job: Job, error: TransientError) -> str:
        """Enqueue another try, or wait for a repair for as long as the job is old. Raises GaveUp after 7 days."""
        if not _needs_operator(job, error):
            return self.retry(job, str(error), error.wait, MAX_TRIES)
        if self.waited_enough(job, error):
            raise self.give_up(job, f"gave up after 7 days: {error}")
        _log.error("job_waits_for_operator", error=str(error))
        self._may_wait = True
        if job.tries + 1 >= MAX_TRIES and not job.awaits_operator:
            self.notify(job, "failure", f"{error}; it is tried again for 7 days")
        return self.wait_long(job, str(error), error.wait)

    def waited_enough(self, job: Job, error: TransientError) -> bool:
        """Return True if only an operator can repair the error, and none did in 7 days."""
        return _needs_operator(job, error) and self._clock() - job.created_at > OPERATOR_SECONDS

    def wait_long(self, job: Job, error: str, retry_after: float | None = None) -> str:
        """Wait until another process brings the job forward. It starts anyway after as long as it is old.

        It is no failure of the job: the try is not counted.
        """
        age = self._clock() - job.created_at
        wait = min(LONGEST_OPERATOR_SECONDS, max(FIRST_OPERATOR_SECONDS, age, retry_after or 0.0))
        wait *= 1 + random.random() / 10  # noqa: S311 - spreads retries, guards nothing
        _log.info("job_waits", error=error, wait=round(wait, 1))
        return self.enqueue(job, self._clock() + wait, error, awaits_operator=True)

    def bring_forward(self, job: Job) -> None:
        """Start the jobs that wait for an operator: a model answered, so their provider may be repaired."""
        now = self._clock()
        if (self._may_wait or job.awaits_operator) and now - self._brought_forward >= BRING_FORWARD_SECONDS:
            self._may_wait, self._brought_forward = False, now
            if count := self._queue.bring_forward():
                _log.info("jobs_brought_forward", count=count)

    def give_up(self, job: Job, error: str) -> GaveUp:
        """Return the error that ends a job for good, after a notice about it."""
        _log.error("job_dead", error=error, tries=job.tries + 1)
        error = error.replace("\0", "")[:1000]
        self.notify(job, "failure", error)
        return GaveUp(error)

    def notify(self, job: Job, notice: Notice, detail: str = "") -> None:
        """Enqueue a notice. Idempotent for an attempt."""
        if self._notifies and not job.notice:
            with self._queue.transaction() as connection:
                self._queue.enqueue(connection, job.notice_job(notice, self._clock(), detail))


def _needs_operator(job: Job, error: TransientError) -> bool:
    """Return True if an operator has to act: the error says so, or it has lasted for an hour."""
    return isinstance(error, OperatorNeeded) or (job.tries + 1 >= MAX_TRIES and not job.notice)


def pause(tries: int, retry_after: float | None, jitter: float) -> float:
    """Return the seconds until the next try, after ``tries`` failures in a row.

    Doubles from two seconds to a quarter of an hour, and is at least ``retry_after``. ``jitter`` in [0, 1) spreads
    jobs that failed together.
    """
    backoff = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** max(0, tries - 1))
    wait = max(backoff, min(retry_after or 0.0, LONGEST_ASKED_SECONDS))
    return wait + jitter * min(wait, 60.0) / 4
