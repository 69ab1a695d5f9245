"""Run one attempt of a job: load the event, decide, record the decision, publish it, and handle what went wrong.

Waiting for anything is a new attempt with a delay, never a sleeping thread. Running an attempt again is safe:
replies of models, decisions and postings are recorded one by one, and only what is missing is done.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from structlog.contextvars import bound_contextvars

from bot import router
from bot.core import events, tracing
from bot.core.actions import Decision
from bot.core.errors import ForgeError, NotFound, NotInstalled, Suspended, TransientError
from bot.core.events import Event
from bot.features.services import Services
from bot.features.shared.rights import is_request
from bot.github.writer import GitHubWriter
from bot.pipeline.inbox import Deliveries, Inbox, stored_event, superseded_by, supersedes
from bot.pipeline.job import GONE, GaveUp, Job
from bot.pipeline.notices import Notices
from bot.pipeline.publisher import OneWrite, Published, Publisher, Refused
from bot.pipeline.queue import Queue
from bot.pipeline.readings import at_present
from bot.pipeline.scheduler import MAX_TRIES_BUG, Scheduler
from bot.pipeline.store import Ledger
from bot.pipeline.store.calls import AskOnce
from bot.pipeline.store.decisions import PublishOutcome

#: Returns what a feature works with, and the writer. Raises TransientError or ForgeError.
ServicesFor = Callable[[Event], tuple[Services, GitHubWriter]]

#: Deaths of workers during one attempt after which the job is given up and waits for an operator: a job that kills
#: its worker would otherwise kill all others for ever. Which of its jobs killed a worker is not known: each counts
#: the death, and a machine that kills workers every half second ends innocent jobs too.
MAX_DEATHS = 8
#: Delay of a new decision about a subject that changed meanwhile, seconds: a newer event may supersede it.
MOVED_SECONDS = 5.0
#: Longest pause between two tries to reach the database, seconds.
AWAY_SECONDS = 10.0

#: ``Decision.abstained`` if no budget was left for a model.
SPENT = "skipped:budget"
#: ``Decision.abstained`` if a provider or GitHub could not be reached for a long time.
UNREACHABLE = "unreachable"
#: A job waits for a new budget on this many days; a later answer would surprise.
MAX_DAYS = 3
#: Jobs that waited for a new day start within this time, seconds.
SPREAD_SECONDS = 600.0
_DAY = 86_400.0
#: Outcomes after which the issue of a decision with ``again_days`` is looked at again.
_REMINDS = frozenset({PublishOutcome.POSTED, PublishOutcome.NOTHING})

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class JobAttempt:
    """One attempt of a job that handles an event."""

    job: Job
    event: Event
    executor: str
    """The id of the worker that holds the job."""
    first_try: bool
    """No earlier attempt can have written."""


class Runner:
    """Runs jobs, in any thread. Running a job again does what is missing and nothing twice."""

    def __init__(
        self,
        queue: Queue,
        inbox: Inbox,
        ledger: Ledger,
        services_for: ServicesFor,
        publisher: Publisher,
        *,
        paced: bool = True,
        paused: bool = False,
        notices: Notices | None = None,
    ) -> None:
        """``paced``: an attempt makes one write; the engine spaces the attempts of one installation.

        ``paused`` is the operator's pause: no model is asked and nothing is written. ``notices`` is None if the
        operator named no receiver.
        """
        self._queue = queue
        self._inbox = inbox
        self._deliveries = Deliveries(ledger.database)
        self._ledger = ledger
        self._services_for = services_for
        self._publisher = publisher
        self._paced = paced
        self._paused = paused
        self._notices = notices
        self._clock = ledger.database.clock
        self._scheduler = Scheduler(queue, self._clock, notifies=notices is not None)

    def run(self, job: Job, executor: str) -> str:
        """Run one attempt for the worker with that executor id, and return the outcome. Raises GaveUp."""
        about: dict[str, str | int] = {
            "delivery": job.delivery,
            "task": job.task,
            "repository": job.repository,
            "number": job.number,
        }
        wait, restarts = 0.5, 0
        with bound_contextvars(**about), tracing.span("job", **about):
            while True:
                try:
                    return self._run_once(job, executor, restarts)
                except (OperationalError, InterfaceError) as error:
                    # No failure of the job, and it could not be recorded anyway.
                    _log.warning("database_away", error=type(error.orig).__name__, again_in=wait)
                    time.sleep(wait)
                    wait, restarts = min(AWAY_SECONDS, 2 * wait), restarts + 1

    def _run_once(self, job: Job, executor: str, restarts: int) -> str:
        """Run one attempt, which was begun ``restarts`` times before and lost the database."""
        if (deaths := self._queue.deaths(job)) > MAX_DEATHS:
            raise self._scheduler.give_up(job, f"its worker died {deaths} times while it ran")
        try:
            event = None if job.notice else self._event(job)
            if event is not None:
                job = _in_place(job, event)
            if earlier := self._earlier_job(job):
                # Both become due at the same time, and the lane of their subject keeps the order.
                reason = f"waits for {earlier.task}"
                return self._scheduler.enqueue(job, earlier.due, reason, awaits_operator=earlier.awaits_operator)
            if event is None:
                outcome = self._notices.send(job) if self._notices else "no receiver is named any more"
            else:
                first_try = restarts == deaths == job.tries == 0
                outcome = self._work(JobAttempt(job, event, executor, first_try))
        except Suspended as error:
            # Neither a failure nor the operator's business: the account decides when it ends.
            return self._scheduler.wait_long(job, str(error))
        except TransientError as error:
            return self._scheduler.retry_transient(job, error)
        except (NotFound, NotInstalled) as error:
            # Deleted, transferred, or the app was uninstalled.
            outcome = f"{GONE}: {error}"
        except ForgeError as error:
            raise self._scheduler.give_up(job, f"refused: {error}") from error
        except (OperationalError, InterfaceError, GaveUp):
            raise
        except Exception as error:  # noqa: BLE001 - the worker's loop: a bug in one job must not stop the others
            _log.exception("job_failed", attempt=job.attempt)
            return self._scheduler.retry(job, f"{type(error).__name__}: {error}", None, MAX_TRIES_BUG)
        _log.info("job_done", outcome=outcome, seconds=round(self._clock() - job.created_at, 3))
        return outcome

    def _earlier_job(self, job: Job) -> Job | None:
        """Return the earlier job that this one has to wait for: one that must decide, or publish, before it."""
        names: Sequence[str] = ()
        if job.notice:
            return None
        if job.stage == "publish" and job.number:
            # A delayed write, made after those of later decisions, would undo them.
            names = self._ledger.decisions.unpublished(job.subject)
        elif job.stage == "decide" and job.position:
            names = [f"{job.delivery}:{task}" for task in router.feature_named(job.task).after]
        waiting = [
            other
            for other in self._queue.open_among(names)
            if other.stage == job.stage and other.order < job.order
        ]
        return max(waiting, key=lambda other: other.due, default=None)

    def _work(self, attempt: JobAttempt) -> str:
        """Do the current stage of the job."""
        job, event = attempt.job, attempt.event
        if self._paused or self._ledger.installations.paused(job.repository):
            self._ledger.decisions.stop(job.id)
            if isinstance(event, events.IssueUnanswered):
                # No delivery brings it again.
                return self._scheduler.enqueue(job, self._clock() + _DAY, "paused by the operator")
            return "skipped: paused by the operator"
        if superseded := self._superseded(attempt):
            return superseded
        services, writer = self._services_for(event)
        if job.stage == "decide":
            job = job.model_copy(update={"decided_at": self._clock()})
            attempt = replace(attempt, job=job)
            self._settle_unpublished(attempt)
        decisions = self._ledger.decisions.of_job(job.id) or self._decide(attempt, services)
        if job.stage == "decide" and any(decision.actions for decision in decisions):
            if not self._queue.holds(job, attempt.executor):
                self._ledger.decisions.stop(job.id)
                return "stopped"
            return self._scheduler.enqueue(job, self._clock(), stage="publish")
        return self._publish(attempt, decisions, services, writer)

    def _publish(
        self, attempt: JobAttempt, decisions: Sequence[Decision], services: Services, writer: GitHubWriter
    ) -> str:
        """Publish the decisions, or as much of them as one attempt may write."""
        job = attempt.job
        publisher = replace(self._publisher, before_write=OneWrite()) if self._paced else self._publisher
        results: list[Published] = []
        for position, decision in enumerate(decisions):
            # The last check before a write: the job may have been cancelled or superseded since the decision.
            if not self._queue.holds(job, attempt.executor):
                self._ledger.decisions.stop(job.id)
                return "stopped"
            if superseded := self._superseded(attempt):
                return superseded
            first_try = attempt.first_try and not self._ledger.decisions.was_stopped(decision)
            on_request = is_request(attempt.event, services)
            publisher = replace(publisher, first_try=first_try, on_request=on_request)
            try:
                # A retried job may be older than what was posted since.
                published = (
                    Published(PublishOutcome.MOVED)
                    if self._ledger.decisions.is_overtaken(job.id, decision)
                    else publisher.publish(decision, job.id, services, writer)
                )
            except Refused:
                self._ledger.decisions.settle(job.id, position, PublishOutcome.REFUSED)
                raise
            if published.outcome == PublishOutcome.PACED:
                return self._scheduler.enqueue(job, self._clock())
            self._reevaluate_affected(attempt, decision)
            outcome = self._ledger.decisions.settle(job.id, position, published.outcome)
            _log.info("published", outcome=outcome, notes=published.notes)
            if outcome in _REMINDS and decision.again_days is not None:
                self._remind(attempt, decision)
            results.append(replace(published, outcome=outcome))
        return self._conclude(job, decisions, results)

    def _conclude(self, job: Job, decisions: Sequence[Decision], results: Sequence[Published]) -> str:
        """Return the outcome of a job whose decisions were published, or enqueue an attempt that decides anew."""
        now = self._clock()
        if any(result.outcome == PublishOutcome.MOVED for result in results) and job.tries + 1 < MAX_TRIES_BUG:
            return self._scheduler.enqueue(job, now + MOVED_SECONDS, "it moved", stage="decide", counts=True)
        if job.days < MAX_DAYS and any(decision.abstained == SPENT for decision in decisions):
            # When there is a new budget, at a random moment. It may be there: a check is published after midnight.
            spent_at = job.decided_at or now
            due = spent_at - spent_at % _DAY + _DAY + SPREAD_SECONDS * random.random()  # noqa: S311 - guards nothing
            _log.info("job_tomorrow", due=due)
            waits = job.model_copy(update={"days": job.days + 1, "tries": 0})
            # A check that says so was published, and the next attempt decides all the same.
            return self._scheduler.enqueue(waits, due, "skipped: the budget of the day is spent", stage="decide")
        if self._notices and self._notices.are_due(decisions):
            self._scheduler.notify(job, "decision")
        return "; ".join(map(str, results)) or "nothing to do"

    def _event(self, job: Job) -> Event:
        text = self._deliveries.event(job.delivery)
        if text is None:
            raise NotInstalled("its delivery was deleted, as it is when the app is removed from the repository")
        event = stored_event(text)
        if isinstance(event, str):
            raise self._scheduler.give_up(job, event)
        return self._ledger.renames.present(event)

    def _superseded(self, attempt: JobAttempt) -> str | None:
        """End the job if a newer event supersedes it, and the jobs of the events in between; None if it goes on.

        The engine starts one job of a subject at each poll, so a hundred pushes would end one after the other.
        """
        job = attempt.job
        later = self._deliveries.later(job.seq, job.repository, job.number) if job.number else ()
        for place, (delivery, text) in enumerate(later, start=1):
            newer = stored_event(text)
            # An unreadable event supersedes none.
            if isinstance(newer, str) or not supersedes(job.task, newer, attempt.event):
                continue
            by = f"{delivery}:{job.task}"
            others = superseded_by(job.task, newer, later[place:])
            for name in (job.id, *self._queue.end_superseded(others, by)):
                self._ledger.decisions.stop(name)
            self._queue.note_superseded(job, by)
            return f"superseded by {by}"
        return None

    def _settle_unpublished(self, attempt: JobAttempt) -> None:
        """Settle decisions that will never be published: features would take them for answers that were given."""
        job = attempt.job
        if job.attempt:
            self._ledger.decisions.reopen(job.id, (SPENT, UNREACHABLE))
        if job.number:
            # This job will judge the same subject again, so an older one that waits to publish is stopped.
            unpublished = self._ledger.decisions.unpublished(job.subject, job.task)
            earlier = self._deliveries.earlier(job.seq, [name.rpartition(":")[0] for name in unpublished])
            for name in superseded_by(job.task, attempt.event, earlier):
                self._ledger.decisions.stop(name)

    def _decide(self, attempt: JobAttempt, services: Services) -> tuple[Decision, ...]:
        job, event = attempt.job, attempt.event
        services = replace(services, model=AskOnce(services.model, self._ledger.calls, job.id))
        if services.config.mode(job.task) != "off":
            event = at_present(event, job.task, services.forge, moved=job.attempt > 0)
        try:
            decisions = router.decide(event, services, only=job.task)
        except Suspended:
            raise
        except TransientError as error:
            if self._scheduler.waited_enough(job, error) and isinstance(event, events.RepositoryEvent):
                # The job is dead from here on. Record that nothing was decided as well.
                reason = f"gave up: {error}"
                abstained = Decision(kind=job.task, subject=event.subject, abstained=UNREACHABLE, reason=reason)
                self._ledger.decisions.record(job.id, (abstained,), services.config.hash)
            raise
        if self._deliveries.event(job.delivery) is None:
            # Its data was deleted meanwhile, and nothing of it may come back.
            self._ledger.calls.forget(job.id)
            raise NotInstalled("the app was removed from the repository")
        if _in_place(job, self._ledger.renames.present(event)) != job:
            # They were stored under the old name after everything else had been moved.
            self._ledger.calls.forget(job.id)
            raise TransientError("the repository was renamed meanwhile")
        for decision in decisions:
            _log.info("decided", verdict=decision.verdict, abstained=decision.abstained, model=decision.model)
        if any(decision.model for decision in decisions):
            self._scheduler.bring_forward(job)
        return self._ledger.decisions.record(job.id, decisions, services.config.hash)

    def _remind(self, attempt: JobAttempt, decision: Decision) -> None:
        """Store an event of our own by which the issue is looked at again. Idempotent for a job."""
        event = attempt.event
        at = None if decision.record is None else decision.record.at
        if at is not None and isinstance(event, events.IssueEvent | events.CommentEvent):
            days = decision.again_days or 0
            again = events.IssueUnanswered(
                **_origin(event), issue=event.issue, since=at, days=days, task=decision.kind
            )
            self._inbox.accept(f"{attempt.job.id}:again", again)

    def _reevaluate_affected(self, attempt: JobAttempt, decision: Decision) -> None:
        """Store an event for each pull request that the decision affects. Idempotent for a job."""
        if isinstance(attempt.event, events.RepositoryEvent):
            for number in decision.affects:
                again = events.LinkedIssueChanged(**_origin(attempt.event), pull=number, task=decision.kind)
                self._inbox.accept(f"{attempt.job.id}:{number}", again)


def _in_place(job: Job, event: Event) -> Job:
    """Return the job in its event's repository, which may have been renamed since the job was enqueued."""
    if not isinstance(event, events.RepositoryEvent):
        return job
    here = {"repository": event.repository.full_name, "installation": event.installation or 0}
    return job.model_copy(update=here)


def _origin(event: events.RepositoryEvent) -> dict[str, Any]:
    """Return the fields that an event of our own has from the event that caused it."""
    return {"installation": event.installation, "sender": event.sender, "repository": event.repository}
