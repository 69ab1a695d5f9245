"""Running one job: load what happened, decide, record, publish, and see to what went wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from structlog.contextvars import bound_contextvars

from bot import router
from bot.core import events, tracing
from bot.core.actions import Decision
from bot.core.events import Event
from bot.errors import ForgeError, NotFound, TransientError
from bot.forge.protocol import ForgeWriter
from bot.forge.replay import ReadOnce
from bot.jobs.job import Job
from bot.jobs.present import at_present
from bot.jobs.remembered import Remembered
from bot.jobs.retry import MAX_TRIES, MAX_TRIES_BUG, pause
from bot.jobs.store import Jobs
from bot.ledger import Ledger
from bot.publishing.publisher import Publisher, Refused
from bot.services import Services

#: What a job is given to work with; raises TransientError or ForgeError where GitHub will not have it.
ServicesFor = Callable[[Event], tuple[Services, ForgeWriter]]

#: How long what a stale job had superseded waits for the event that made it stale, seconds.
REVIVE_SECONDS = 5.0

#: The word by which a decision says that no model was asked for want of budget.
SPENT = "skipped:budget"
#: The word by which a decision says that whoever had to be asked could not be reached for a long time.
UNREACHABLE = "unreachable"
#: A job waits for a new budget on this many days; later nobody expects an answer any more.
MAX_DAYS = 3
#: Jobs that waited for the day start within this time of it, seconds.
SPREAD_SECONDS = 600.0
_DAY = 86_400.0

_log = structlog.get_logger(__name__)


class Runner:
    """Runs jobs by id, in any thread. Running a job again does what is missing and nothing twice."""

    def __init__(
        self,
        jobs: Jobs,
        ledger: Ledger,
        services_for: ServicesFor,
        publisher: Publisher,
        *,
        paused: bool = False,
    ) -> None:
        """``paused`` is the operator's kill switch: no model is asked and nothing is written."""
        self._jobs = jobs
        self._ledger = ledger
        self._services_for = services_for
        self._publisher = publisher
        self._paused = paused

    def run(self, job_id: str, attempt: int) -> None:
        """Run one attempt to its end, whatever that is; the job's row says what it was."""
        job = self._jobs.claim(job_id, attempt)
        if job is None:
            self._ledger.decisions.stop(job_id)
            return
        about: dict[str, str | int] = {
            "delivery": job.delivery,
            "task": job.task,
            "repository": job.repository,
            "number": job.number,
        }
        with bound_contextvars(**about), tracing.span("job", **about):
            self._attempt(job)

    def _attempt(self, job: Job) -> None:
        try:
            outcome = self._work(job)
        except TransientError as error:
            self._later(job, str(error), error.wait, MAX_TRIES)
        except (OperationalError, InterfaceError) as error:
            self._later(job, f"database: {type(error.orig).__name__}", None, MAX_TRIES)
        except NotFound as error:
            # Deleted, transferred, or the app was removed: there is nobody left to answer.
            self._finish(job, f"gone: {error}")
        except ForgeError as error:
            self._bury(job, f"refused: {error}")
        except Exception as error:  # noqa: BLE001 - the worker's loop: a bug in one job must not stop the others
            _log.exception("job_failed", attempt=job.attempt)
            self._later(job, f"{type(error).__name__}: {error}", None, MAX_TRIES_BUG)
        else:
            if outcome is not None:
                self._finish(job, outcome)

    def _work(self, job: Job) -> str | None:
        """What it came to; None where the job waits for another day."""
        if self._paused:
            return "skipped: paused by the operator"
        event = events.from_json(self._jobs.event(job))
        services, writer = self._services_for(event)
        if job.attempt:
            self._ledger.decisions.take_up(job.id, (SPENT, UNREACHABLE))
        decisions = self._ledger.decisions.of_job(job.id) or self._decide(job, event, services)
        outcomes = [
            self._publish(job, position, decision, event, services, writer)
            for position, decision in enumerate(decisions)
        ]
        if job.tries < MAX_DAYS and any(decision.abstained == SPENT for decision in decisions):
            self._tomorrow(job)
            return None
        return "; ".join(outcomes) or "nothing to do"

    def _decide(self, job: Job, event: Event, services: Services) -> tuple[Decision, ...]:
        # The publisher keeps the forge that asks anew.
        services = replace(
            services,
            forge=ReadOnce(services.forge),
            model=Remembered(services.model, self._ledger.calls, job.id),
        )
        event = at_present(event, job.task, services.forge)
        try:
            decisions = router.decide(event, services, only=job.task)
        except TransientError as error:
            if job.tries + 1 >= MAX_TRIES and isinstance(event, events.RepositoryEvent):
                # A dead letter from here on; that nothing was decided stands on record as well.
                reason = f"gave up: {error}"
                abstained = Decision(kind=job.task, subject=event.subject, abstained=UNREACHABLE, reason=reason)
                self._ledger.decisions.record(job.id, (abstained,), services.config.hash)
            raise
        for decision in decisions:
            _log.info("decided", verdict=decision.verdict, abstained=decision.abstained, model=decision.model)
        return self._ledger.decisions.record(job.id, decisions, services.config.hash)

    def _publish(
        self, job: Job, position: int, decision: Decision, event: Event, services: Services, writer: ForgeWriter
    ) -> str:
        if not self._jobs.wanted(job.id, job.attempt):
            self._ledger.decisions.stop(job.id)
            return "stopped"
        try:
            published = self._publisher.publish(decision, job.id, event.installation or 0, services, writer)
        except Refused:
            self._ledger.decisions.settle(job.id, position, "refused")
            raise
        outcome = self._ledger.decisions.settle(job.id, position, published.outcome)
        if published.outcome == "moved":
            # A delivery that came late may have superseded the one that was up to date.
            self._jobs.revive(job.id, self._jobs.clock() + REVIVE_SECONDS)
        _log.info("published", outcome=outcome, notes=published.notes)
        return "; ".join((outcome, *published.notes))

    def _finish(self, job: Job, outcome: str) -> None:
        self._jobs.finish(job.id, job.attempt, outcome)
        _log.info("job_done", outcome=outcome, seconds=round(self._jobs.clock() - job.created_at, 3))

    def _tomorrow(self, job: Job) -> None:
        """The day's budget is spent: try again when there is a new one, not everybody at once."""
        now = self._jobs.clock()
        due = now - now % _DAY + _DAY + SPREAD_SECONDS * random.random()  # noqa: S311 - guards nothing
        self._jobs.again(job.id, job.attempt, due, "skipped: the budget of the day is spent")
        _log.info("job_tomorrow", due=due)

    def _bury(self, job: Job, error: str) -> None:
        self._jobs.bury(job.id, job.attempt, error)
        _log.error("job_dead", error=error, tries=job.tries + 1)

    def _later(self, job: Job, error: str, asked: float | None, most: int) -> None:
        tries = job.tries + 1
        if tries >= most:
            self._bury(job, f"gave up after {tries} tries: {error}")
            return
        wait = pause(tries, asked, random.random())  # noqa: S311 - spreads retries, guards nothing
        self._jobs.again(job.id, job.attempt, self._jobs.clock() + wait, error)
        _log.warning("job_again", error=error, tries=tries, wait=round(wait, 1))
