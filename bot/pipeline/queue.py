"""The engine, dbos, behind a few methods. Only ``bot.pipeline.worker`` imports it as well, and runs the jobs.

Its import takes a second, so it is delayed until a queue is used: most commands need none.

No other table has the state of a job.

Used as intended: queues with partitions, priorities, delays and rate limits; one start of each job by one worker;
cancellation; enqueueing in a transaction of ours.

Not used, each for a reason:
- Recovery takes back jobs of its own executor id. ``bot.pipeline.worker`` finds dead workers by their locks.
- A resumed or rewound workflow starts at once. An attempt after a pause is therefore a new workflow with a delay.
- Steps and their retries hold a thread and the subject's order while they wait. Replies of models, decisions and
  postings are recorded in the ledger instead, so that an attempt that runs again repeats none of them.
- The debouncer replaces the argument of a waiting workflow by the latest one. Whether a newer event supersedes an
  older one depends on both events (``bot.pipeline.inbox.supersedes``).
- Schedules and the default serializer store pickles, which execute code for anyone who can write to the database.
  The worker does its periodic work itself, and workflows are stored in the portable format.
- It accepts jobs that can never run: ``enqueue`` refuses them.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Float,
    FromClause,
    Index,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    and_,
    column,
    func,
    not_,
    or_,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.expression import ColumnElement

from bot.pipeline.job import OPEN, GaveUp, Job, State, workflow_id
from bot.pipeline.store.database import Database, migrating

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus

NAME = "bouncer"
WORKFLOW = "job"
#: Constant, so that a newer release takes over the jobs of an older one.
VERSION = "1"

#: Attempts of a job that one query looks for.
_ATTEMPTS = 64
_ID = column("workflow_uuid", Text)

#: The states by the engine's names. What is done or cancelled may have been superseded.
_STATES: Mapping[str, State] = {
    "DELAYED": "waiting",
    "ENQUEUED": "queued",
    "PENDING": "running",
    "SUCCESS": "done",
    "ERROR": "dead",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "dead",
    "CANCELLED": "cancelled",
}


class Queue:
    """Jobs as every process can read and change them; it connects when it is first used. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._client: DBOSClient | None = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction on our tables in which jobs can be enqueued as well."""
        self.connect()
        with self._database.write() as connection:
            yield connection

    def enqueue(self, connection: Connection, job: Job, delay: float = 0.0) -> None:
        """Enqueue the current attempt of a job in a ``transaction``. Idempotent.

        It starts after ``delay`` seconds, and after the earlier jobs of its subject.
        """
        if not job.repository:
            raise ValueError(f"job {job.id} is about no repository: it would wait forever")
        facts = job.facts()
        options: Any = {
            "workflow_name": WORKFLOW,
            "queue_name": job.queue,
            "workflow_id": job.workflow,
            "queue_partition_key": job.partition,
            "priority": min(max(job.order, 1), 2**31 - 1),
            "app_version": VERSION,
            "serialization_type": "portable",
            "attributes": facts,
        }
        if delay > 0:
            options["delay_seconds"] = delay
        self.connect().enqueue_in_transaction(connection, options, facts)

    def enqueue_next(self, job: Job, attempt: Job, delay: float = 0.0) -> None:
        """Enqueue the attempt of a job that continues the present one."""
        with self.transaction() as connection:
            self.enqueue(connection, attempt, delay)
        # If the worker dies in between, the present one runs again and enqueues the same next one.
        self._note(job.workflow, next=attempt.workflow)

    def start_again(self, job: Job, now: float) -> None:
        """Enqueue another attempt of an ended job, with all its tries. Its decisions and paid replies are kept."""
        again = {"attempt": job.attempt + 1, "tries": 0, "days": 0, "due": now}
        self.enqueue_next(job, job.model_copy(update=again))

    def get(self, job: str) -> Job | None:
        """Return the newest attempt of a job; None if there is none of that id."""
        newest: Job | None = None
        for first in itertools.count(step=_ATTEMPTS):
            ids = [workflow_id(job, number) for number in range(first, first + _ATTEMPTS)]
            attempts = map(_job, self.connect().list_workflows(workflow_ids=ids, load_input=False))
            newest = max(attempts, key=lambda job: job.attempt, default=newest)
            if newest is None or newest.attempt < first + _ATTEMPTS - 1:
                break
        return newest

    def list(
        self, states: Collection[State] = (), repository: str = "", limit: int | None = 50
    ) -> tuple[Job, ...]:
        """Return the newest attempts of jobs in these states (all if empty), newest first."""
        query = self._select(_ID).where(_IS_LAST)
        if states:
            query = query.where(or_(*map(_is_in, states)))
        if repository:
            query = query.where(self._is_of(repository))
        newest = query.order_by(column("created_at").desc(), _ID.desc()).limit(limit)
        ids = [row[0] for row in self._rows(newest)]
        workflows = self.connect().list_workflows(workflow_ids=ids, load_input=False) if ids else ()
        attempts = sorted(map(_job, workflows), key=lambda job: (job.seq, job.position, job.attempt))
        # An attempt that was just continued may not be marked yet: the last one stands for the job.
        jobs = {job.id: job for job in attempts}
        return tuple(reversed(jobs.values()))

    def counts(self, states: Collection[State], newest: int | None = None) -> dict[State, int]:
        """Count the jobs in each of these states, of the ``newest`` attempts alone if that is given."""
        counts: dict[State, int] = {}
        for state in states:
            query = self._select(func.count(), newest).where(_IS_LAST, _is_in(state))
            if count := self._rows(query)[0][0]:
                counts[state] = count
        return counts

    def oldest_due(self) -> float | None:
        """Return when the job became due that has waited for a worker the longest; None if none waits.

        A job that waits for the pace of writes is not overdue.
        """
        query = self._select(func.min(_fact("due").cast(Float))).where(
            _is_in("queued"), _fact("stage") == "decide"
        )
        due: float | None = self._rows(query)[0][0]
        return due

    def open_among(self, jobs: Iterable[str]) -> tuple[Job, ...]:
        """Return those of these jobs that have not ended."""
        ids = [workflow_id(job, number) for job in jobs for number in range(_ATTEMPTS)]
        return tuple(map(_job, self._workflows(workflow_ids=ids, status=_statuses(OPEN))))

    def running(self) -> tuple[tuple[Job, str], ...]:
        """Return every running attempt with the id of its executor."""
        workflows = self._workflows(name=WORKFLOW, status="PENDING")
        return tuple((_job(status), status.executor_id or "") for status in workflows)

    def deaths(self, job: Job) -> int:
        """Return how often a worker died while it ran this attempt."""
        status = next(iter(self._workflows(workflow_ids=[job.workflow])), None)
        return int((status.attributes or {}).get("deaths", 0)) if status else 0

    def holds(self, job: Job, executor: str) -> bool:
        """Return True if an attempt is still the executor's: it was neither cancelled nor taken over."""
        status = next(iter(self._workflows(workflow_ids=[job.workflow])), None)
        return status is not None and (status.status, status.executor_id) == ("PENDING", executor)

    def recover(self, job: Job) -> None:
        """Enqueue an attempt again that a dead worker was running, and count the death."""
        self._note(job.workflow, deaths=self.deaths(job) + 1)
        self.connect().resume_workflow(job.workflow, queue_name=job.queue)

    def cancel(self, job: Job) -> None:
        """Cancel an attempt: a waiting one never starts, and the outcome of a running one is not recorded."""
        self.connect().cancel_workflow(job.workflow)

    def bring_forward(self, installation: int | None = None) -> int:
        """Start the jobs now that wait for an operator, of one installation or of all. Return their number."""
        waiting = map(_job, self._workflows(name=WORKFLOW, status="DELAYED"))
        jobs = [job for job in waiting if job.awaits_operator and installation in (None, job.installation)]
        for job in jobs:
            self.connect().set_workflow_delay(job.workflow, delay_seconds=0)
        return len(jobs)

    def note_superseded(self, job: Job, by: str) -> None:
        """Note the job that does the work of this one."""
        self._note(job.workflow, superseded_by=by)

    def end_superseded(self, jobs: Collection[str], by: str) -> tuple[str, ...]:
        """Cancel those of these jobs that never started, as ``by`` does their work. Return their ids."""
        waiting = _statuses(("waiting", "queued"))
        ids = [status.workflow_id for status in self._workflows(workflow_ids=list(jobs), status=waiting)]
        for workflow in ids:
            self._note(workflow, superseded_by=by)
        if ids:
            self.connect().cancel_workflows(ids)
        return tuple(ids)

    def created_before(self, moment: float, states: Collection[State], limit: int) -> tuple[str, ...]:
        """Return the attempts in these states that were created before a moment, oldest first."""
        before = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(moment))
        workflows = self._workflows(status=_statuses(states), end_time=before, limit=limit)
        return tuple(status.workflow_id for status in workflows)

    def forget(self, workflows: Collection[str]) -> None:
        if workflows:
            self.connect().delete_workflows(list(workflows))

    def rename(self, repository: str, to: str) -> None:
        """List the jobs of a repository under its new name."""
        for workflow in self._ids(repository):
            self._note(workflow, repository=to)

    def forget_repository(self, repository: str, before: int) -> None:
        """Cancel and delete all attempts for deliveries of a repository that arrived ``before``."""
        if ids := self._ids(repository, before):
            self.connect().cancel_workflows(list(ids))
            self.forget(ids)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.destroy()
                self._client = None

    def _add_index(self) -> None:
        """Add an index to the engine's table: with the others SQLite reads every row to count a few."""
        columns = Column("status", Text), Column("created_at", BigInteger)
        workflows = Table("workflow_status", MetaData(self._schema), *columns)
        with self._database.write() as connection:
            Index("bouncer_jobs", *workflows.c).create(connection, checkfirst=True)

    @property
    def _schema(self) -> str | None:
        return None if self._database.is_sqlite else "dbos"

    def _note(self, workflow: str, **attributes: object) -> None:
        self.connect().update_workflow_attributes(workflow, attributes, merge=True)

    def _ids(self, repository: str, before: int = 2**31) -> Sequence[str]:
        query = self._select(_ID).where(self._is_of(repository), _fact("seq").cast(BigInteger) < before)
        return [row[0] for row in self._rows(query)]

    def _is_of(self, repository: str) -> ColumnElement[bool]:
        if self._database.is_sqlite:
            return _fact("repository") == repository
        # In this form PostgreSQL uses the engine's index.
        return column("attributes", JSONB).contains({"repository": repository})

    def _select(self, value: ColumnElement[Any], newest: int | None = None) -> Select[Any]:
        """Return a query for attempts. The engine's client reads rows in order to count or to filter them."""
        workflows: FromClause = table("workflow_status", schema=self._schema)
        if newest is not None:
            by_age = select(text("*")).select_from(workflows).order_by(column("created_at").desc())
            workflows = by_age.limit(newest).subquery()
        return select(value).select_from(workflows).where(column("name") == WORKFLOW)

    def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        self.connect()
        with self._database.read() as connection:
            return connection.execute(query).all()

    def _workflows(self, **filters: Any) -> Sequence[WorkflowStatus]:
        """Return the workflows that pass the filters, without arguments and results."""
        if filters.get("workflow_ids") == []:
            # The engine takes an empty list for no filter.
            return ()
        return self.connect().list_workflows(load_input=False, load_output=False, **filters)

    def connect(self) -> DBOSClient:
        """Return the engine's client. At the first use it connects and migrates the engine's tables."""
        if self._client is None:
            with self._lock:
                if self._client is None:
                    from dbos import DBOS, DBOSClient

                    silence_dbos()
                    # One at a time: two processes cannot run its migrations at once.
                    with migrating(self._database):
                        DBOS.migrate(self._database.url)
                        self._add_index()
                    self._client = DBOSClient(
                        system_database_url=self._database.url,
                        application_name=NAME,
                        lazy=True,
                        retry_connection_errors=False,
                    )
        return self._client


def silence_dbos() -> None:
    """Drop the start-up banner, and tracebacks of jobs that gave up, which are logged already."""
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.WARNING)
    if _is_unexpected not in logger.filters:
        logger.addFilter(_is_unexpected)


def _is_unexpected(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], GaveUp))


def _statuses(states: Collection[State]) -> list[str]:
    names = {*states, *(("done", "cancelled") if "superseded" in states else ())}
    return [status for status, state in _STATES.items() if state in names]


def _fact(name: str) -> ColumnElement[str]:
    """Return the text of a job's fact in the engine's table; NULL if it is not there."""
    attributes: Any = column("attributes", JSON().with_variant(JSONB(), "postgresql"))
    fact: ColumnElement[str] = attributes[name].as_string()
    return fact


#: A later attempt continues the others.
_IS_LAST = _fact("next").is_(None)


def _is_in(state: State) -> ColumnElement[bool]:
    is_status = column("status", Text).in_(_statuses((state,)))
    is_superseded = _fact("superseded_by").is_not(None)
    if state == "superseded":
        return and_(is_status, is_superseded)
    return and_(is_status, not_(is_superseded)) if state in ("done", "cancelled") else is_status


def _job(status: WorkflowStatus) -> Job:
    attributes = status.attributes or {}
    # Version 0.2 stored ``source_job`` as ``told``.
    facts = {name: value for name, value in attributes.items() if name in (*Job.model_fields, "told")}
    state = _STATES[status.status]
    if state in ("done", "cancelled") and "superseded_by" in attributes:
        state = "superseded"
    elif state == "done":
        facts["error"] = None
    elif state == "dead":
        facts["error"] = str(status.error) if status.error else facts.get("error")
    return Job(
        **{
            **facts,
            "state": state,
            "outcome": status.output if isinstance(status.output, str) else None,
            "started_at": _seconds(status.dequeued_at),
            "finished_at": _seconds(status.completed_at),
        }
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
