"""Running one job: load what happened, decide, record, publish, and see to what went wrong.

The engine could try a step again by itself, but it would hold the worker's thread and the subject's line for as
long as it waits, which may be until tomorrow; so each later try is an attempt of its own, after a pause. That a
try costs nothing twice is not the engine's doing either: it remembers what a step returned, and not what a step
that died had paid for. Replies of models, decisions and postings are recorded one by one, in the ledger.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from structlog.contextvars import bound_contextvars

from bot import router
from bot.core import events, tracing
from bot.core.actions import Decision
from bot.core.errors import ForgeError, NotFound, OperatorNeeded, TransientError
from bot.core.events import Event
from bot.features.closing.record import ClosingRecord
from bot.features.services import Services
from bot.features.triage.record import TriageRecord
from bot.github.writer import GitHubWriter
from bot.pipeline.inbox import Inbox, Received
from bot.pipeline.job import GaveUp, Job, Notice, Stage, stored_event, successor, superseded_by
from bot.pipeline.notices import Notices
from bot.pipeline.publisher import OneWrite, Published, Publisher, Refused
from bot.pipeline.queue import Queue
from bot.pipeline.readings import at_present
from bot.pipeline.recovery import MAX_DEATHS
from bot.pipeline.store import Ledger
from bot.pipeline.store.calls import AskOnce
from bot.pipeline.store.decisions import PublishOutcome

#: What a job is given to work with; raises TransientError or ForgeError where GitHub will not have it.
ServicesFor = Callable[[Event], tuple[Services, GitHubWriter]]

#: Failures in a row after which a job waits for an operator: about an hour of an unreachable GitHub or provider.
MAX_TRIES = 13
#: The same for errors that are most likely our own.
MAX_TRIES_BUG = 3

FIRST_SECONDS = 2.0
LONGEST_SECONDS = 15 * 60.0
#: No honest other side asks for more; GitHub's rate limits last an hour.
LONGEST_ASKED_SECONDS = 2 * 3600.0

#: A job waits this long for an operator to repair a key, a model name or a network, seconds.
OPERATOR_SECONDS = 7 * 24 * 3600.0
FIRST_OPERATOR_SECONDS, LONGEST_OPERATOR_SECONDS = 5 * 60.0, 4 * 3600.0
#: A model's answer starts waiting jobs at most this often: one of them may have a fault of its own, seconds.
BRING_FORWARD_SECONDS = 5 * 60.0

#: What moved while it was judged is judged again after this long, unless a newer event sees to it, seconds.
MOVED_SECONDS = 5.0
#: The longest pause between two tries to reach a database that is away, seconds.
AWAY_SECONDS = 10.0

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
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``paced``: an attempt makes one write; the engine spaces attempts of one installation.

        ``paused`` is the operator's pause: no model is asked and nothing is written.

        ``notices`` tells somebody else; None where the operator named nobody.
        """
        self._queue = queue
        self._inbox = inbox
        self._received = Received(ledger.database)
        self._ledger = ledger
        self._services_for = services_for
        self._publisher = publisher
        self._paced = paced
        self._paused = paused
        self._notices = notices
        self._clock = clock
        self._may_wait = True
        """Whether jobs may wait for an operator; those of other workers are known once they end here."""
        self._brought_forward = float("-inf")

    def run(self, job: Job, executor: str) -> str:
        """Run one attempt to its end, on behalf of the worker of that name; what it came to.

        Raises GaveUp where it failed for good.
        """
        about: dict[str, str | int] = {
            "delivery": job.delivery,
            "task": job.task,
            "repository": job.repository,
            "number": job.number,
        }
        wait = 0.5
        with bound_contextvars(**about), tracing.span("job", **about):
            while True:
                try:
                    return self._attempt(job, executor)
                except (OperationalError, InterfaceError) as error:
                    # An outage is nobody's failure, and nothing about it could be written down anyhow.
                    _log.warning("database_away", error=type(error.orig).__name__, again_in=wait)
                    time.sleep(wait)
                    wait = min(AWAY_SECONDS, 2 * wait)

    def _attempt(self, job: Job, executor: str) -> str:
        if (deaths := self._queue.deaths(job)) > MAX_DEATHS:
            raise self._gave_up(job, f"its worker died {deaths} times while it ran")
        if first := self._awaited(job):
            # Both become due at once, and the lane of their subject keeps the order.
            return self._again(job, job.tries, first.due, f"waits for {first.task}")
        try:
            outcome = self._work(job, executor)
        except TransientError as error:
            if _needs_operator(job, error):
                return self._await_operator(job, str(error), error.wait)
            return self._later(job, str(error), error.wait, MAX_TRIES)
        except NotFound as error:
            # Deleted, transferred, or the app was removed: there is nobody left to answer.
            outcome = f"gone: {error}"
        except ForgeError as error:
            raise self._gave_up(job, f"refused: {error}") from error
        except (OperationalError, InterfaceError, GaveUp):
            raise
        except Exception as error:  # noqa: BLE001 - the worker's loop: a bug in one job must not stop the others
            _log.exception("job_failed", attempt=job.attempt)
            return self._later(job, f"{type(error).__name__}: {error}", None, MAX_TRIES_BUG)
        _log.info("job_done", outcome=outcome, seconds=round(self._clock() - job.created_at, 3))
        return outcome

    def _awaited(self, job: Job) -> Job | None:
        """Return a job that this one builds on and that has not decided yet, although it began before."""
        needed = router.feature_named(job.task).after
        if not job.position or not needed or job.notice or job.stage == "publish":
            return None
        started = self._queue.open_among([f"{job.delivery}:{task}" for task in needed])
        waiting = [other for other in started if other.stage == "decide"]
        return max(waiting, key=lambda each: each.due, default=None)

    def _work(self, job: Job, executor: str) -> str:
        if job.notice:
            return self._notices.send(job) if self._notices else "nobody is to be told any more"
        if self._paused or self._ledger.installations.paused(job.repository):
            self._ledger.decisions.stop(job.id)
            return "skipped: paused by the operator"
        event = self._event(job)
        if superseded := self._superseded(job, event):
            return superseded
        services, writer = self._services_for(event)
        if job.stage == "decide":
            self._take_over(job, event)
        decisions = self._ledger.decisions.of_job(job.id) or self._decide(job, event, services)
        if job.stage == "decide" and any(decision.actions for decision in decisions):
            if not self._queue.holds(job, executor):
                self._ledger.decisions.stop(job.id)
                return "stopped"
            return self._again(job, job.tries, self._clock(), None, "publish")
        return self._publish(job, event, decisions, services, writer, executor)

    def _publish(
        self,
        job: Job,
        event: Event,
        decisions: tuple[Decision, ...],
        services: Services,
        writer: GitHubWriter,
        executor: str,
    ) -> str:
        """Publish what was decided, or as much of it as may be written in one attempt."""
        publisher = replace(self._publisher, before_write=OneWrite()) if self._paced else self._publisher
        results: list[Published] = []
        for position, decision in enumerate(decisions):
            # What happened while the model was thinking counts: this is the last look before a write.
            if not self._queue.holds(job, executor):
                self._ledger.decisions.stop(job.id)
                return "stopped"
            if superseded := self._superseded(job, event):
                return superseded
            try:
                published = publisher.publish(decision, job.id, services, writer)
            except Refused:
                self._ledger.decisions.settle(job.id, position, PublishOutcome.REFUSED)
                raise
            if published.outcome == PublishOutcome.PACED:
                return self._again(job, job.tries, self._clock(), None)
            outcome = self._ledger.decisions.settle(job.id, position, published.outcome)
            _log.info("published", outcome=outcome, notes=published.notes)
            if outcome == PublishOutcome.POSTED and decision.again_days is not None:
                self._remind(job, decision, event)
            results.append(replace(published, outcome=outcome))
        if any(result.outcome == PublishOutcome.MOVED for result in results) and job.tries + 1 < MAX_TRIES_BUG:
            return self._again(job, job.tries + 1, self._clock() + MOVED_SECONDS, "it moved", "decide")
        if job.tries < MAX_DAYS and any(decision.abstained == SPENT for decision in decisions):
            return self._tomorrow(job)
        if self._notices and self._notices.worth(decisions):
            self._tell(job, "decision")
        return "; ".join(map(str, results)) or "nothing to do"

    def _event(self, job: Job) -> Event:
        stored = self._received.event(job.delivery)
        if stored is None:
            raise self._gave_up(job, "its delivery was deleted after its time")
        event = stored_event(stored)
        if isinstance(event, str):
            raise self._gave_up(job, event)
        return event

    def _superseded(self, job: Job, event: Event) -> str | None:
        """End a job if a newer event's job does its work, and those in between with it; None if it goes on.

        The engine starts one job of a subject at each look, so a hundred pushes would end one after the other.
        """
        if not job.number:
            return None
        place = job.seq, job.repository, job.number
        found = successor(job.task, event, self._received.later(*place))
        if found is None:
            return None
        delivery, newer = found
        by = f"{delivery}:{job.task}"
        between = takewhile(lambda following: following[0] != delivery, self._received.next(*place))
        others = superseded_by(job.task, newer, between)
        for name in (job.id, *self._queue.end_superseded(others, by)):
            self._ledger.decisions.stop(name)
        self._queue.superseded(job, by)
        return f"superseded by {by}"

    def _take_over(self, job: Job, event: Event) -> None:
        """Free this job from decisions that nobody will see, which features would take for an answer given."""
        if job.attempt:
            self._ledger.decisions.take_up(job.id, (SPENT, UNREACHABLE))
        if job.number:
            # An older job that waits to publish may have judged the subject as it stands; it stops in our favour.
            unpublished = self._ledger.decisions.unpublished(f"{job.repository}#{job.number}", job.task)
            earlier = self._received.earlier(job.seq, [name.rpartition(":")[0] for name in unpublished])
            for name in superseded_by(job.task, event, earlier):
                self._ledger.decisions.stop(name)

    def _decide(self, job: Job, event: Event, services: Services) -> tuple[Decision, ...]:
        services = replace(services, model=AskOnce(services.model, self._ledger.calls, job.id))
        event = at_present(event, job.task, services.forge, moved=job.attempt > 0)
        try:
            decisions = router.decide(event, services, only=job.task)
        except TransientError as error:
            last = _needs_operator(job, error) and self._waited_enough(job)
            if last and isinstance(event, events.RepositoryEvent):
                # A failed job from here on; that nothing was decided stands on record as well.
                reason = f"gave up: {error}"
                abstained = Decision(kind=job.task, subject=event.subject, abstained=UNREACHABLE, reason=reason)
                self._ledger.decisions.record(job.id, (abstained,), services.config.hash)
            raise
        for decision in decisions:
            _log.info("decided", verdict=decision.verdict, abstained=decision.abstained, model=decision.model)
        if any(decision.model for decision in decisions):
            self._bring_forward(job)
        return self._ledger.decisions.record(job.id, decisions, services.config.hash)

    def _remind(self, job: Job, decision: Decision, event: Event) -> None:
        """Have the issue looked at again; a job that runs again asks for the same once."""
        at = decision.record.at if isinstance(decision.record, TriageRecord | ClosingRecord) else None
        if at is not None and isinstance(event, events.IssueEvent | events.CommentEvent):
            again = events.IssueUnanswered(
                installation=event.installation,
                sender=event.sender,
                repository=event.repository,
                issue=event.issue,
                since=at,
                days=decision.again_days or 0,
            )
            self._inbox.accept(f"{job.id}:again", again)

    def _tomorrow(self, job: Job) -> str:
        """The day's budget is spent: try again when there is a new one, not everybody at once."""
        now = self._clock()
        due = now - now % _DAY + _DAY + SPREAD_SECONDS * random.random()  # noqa: S311 - guards nothing
        _log.info("job_tomorrow", due=due)
        return self._again(job, job.tries + 1, due, "skipped: the budget of the day is spent")

    def _later(self, job: Job, error: str, asked: float | None, most: int) -> str:
        tries = job.tries + 1
        if tries >= most:
            raise self._gave_up(job, f"gave up after {tries} tries: {error}")
        wait = pause(tries, asked, random.random())  # noqa: S311 - spreads retries, guards nothing
        _log.warning("job_again", error=error, tries=tries, wait=round(wait, 1))
        return self._again(job, tries, self._clock() + wait, error)

    def _await_operator(self, job: Job, error: str, asked: float | None) -> str:
        """Wait for a repair, as long again as the job is old. Not a failure of the job: no try is counted."""
        if self._waited_enough(job):
            raise self._gave_up(job, f"gave up after 7 days: {error}")
        age = self._clock() - job.created_at
        wait = min(LONGEST_OPERATOR_SECONDS, max(FIRST_OPERATOR_SECONDS, age, asked or 0.0))
        wait *= 1 + random.random() / 10  # noqa: S311 - spreads retries, guards nothing
        _log.error("job_waits_for_operator", error=error, wait=round(wait, 1))
        self._may_wait = True
        if job.tries + 1 >= MAX_TRIES and not job.awaits_operator:
            self._tell(job, "failure", f"{error}; it is tried again for 7 days")
        return self._again(job, job.tries, self._clock() + wait, error, awaits_operator=True)

    def _bring_forward(self, job: Job) -> None:
        """After a model's answer: start the jobs that wait for an operator, as what they need may be repaired."""
        now = self._clock()
        if (self._may_wait or job.awaits_operator) and now - self._brought_forward >= BRING_FORWARD_SECONDS:
            self._may_wait, self._brought_forward = False, now
            if count := self._queue.bring_forward():
                _log.info("jobs_brought_forward", count=count)

    def _waited_enough(self, job: Job) -> bool:
        return self._clock() - job.created_at > OPERATOR_SECONDS

    def _again(
        self,
        job: Job,
        tries: int,
        due: float,
        error: str | None,
        stage: Stage | None = None,
        *,
        awaits_operator: bool = False,
    ) -> str:
        """Queue another attempt, which begins when it is due: the way to wait for anything.

        ``error`` says what went wrong, if something did. ``stage`` is what the attempt does, if not the same.
        """
        error = error and error.replace("\0", "")[:1000]
        changed = {
            "attempt": job.attempt + 1, "tries": tries, "due": due, "error": error, "stage": stage or job.stage,
            "awaits_operator": awaits_operator,
        }  # fmt: skip
        later = job.model_copy(update=changed)
        with self._queue.transaction() as connection:
            self._queue.enqueue(connection, later, max(0.0, due - self._clock()))
        # In between, a death makes this attempt run again, which ends in the same one after it.
        self._queue.replaced(job, later.workflow)
        return error or "goes on"

    def _gave_up(self, job: Job, error: str) -> GaveUp:
        _log.error("job_dead", error=error, tries=job.tries + 1)
        error = error.replace("\0", "")[:1000]
        self._tell(job, "failure", error)
        return GaveUp(error)

    def _tell(self, job: Job, notice: Notice, detail: str = "") -> None:
        """Have somebody else told; a job that runs again has the same told once."""
        if self._notices is not None and not job.notice:
            with self._queue.transaction() as connection:
                self._queue.enqueue(connection, Notices.about(job, notice, self._clock(), detail))


def _needs_operator(job: Job, error: TransientError) -> bool:
    """Return True if an operator has to repair something: by the error itself, or as it has lasted for an hour."""
    return isinstance(error, OperatorNeeded) or (job.tries + 1 >= MAX_TRIES and not job.notice)


def pause(tries: int, asked: float | None, jitter: float) -> float:
    """Seconds until the next try, after ``tries`` failures in a row.

    Doubles from two seconds to a quarter of an hour, but never earlier than the other side ``asked`` for.
    ``jitter`` in [0, 1) spreads jobs that failed together.
    """
    backoff = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** max(0, tries - 1))
    wait = max(backoff, min(asked or 0.0, LONGEST_ASKED_SECONDS))
    return wait + jitter * min(wait, 60.0) / 4
