"""The engine: dbos behind a few verbs, the only state machine of jobs. The one module that imports it.

What it gives: a job that is queued is started by exactly one worker, one at a time for each subject; delays;
states that survive everything; cancelling. What it is not used for, and why: its recovery knows nothing but its
own process's name, so ``recovery`` says who is dead; a rewound or resumed workflow starts at once, so an attempt
after a pause is a workflow of its own; its debouncer replaces what a waiting job is about, where ``supersedes``
has to ask what happened; its schedules store their arguments as pickle, which whoever can write to the database
could use to run code, so the worker has rounds. Its default serializer is the same pickle, and it takes jobs
that can never run without a word: both are met here.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig, WorkflowSerializationFormat, WorkflowStatus
from sqlalchemy import Connection

from bot.pipeline.job import JOBS, NOTICES, OPEN, WRITES, GaveUp, Job, State, workflow_id
from bot.pipeline.store.database import Database
from bot.pipeline.store.locks import held

NAME = "bouncer"
WORKFLOW = "job"
#: Installations that a worker writes to at the same time.
WRITE_CONCURRENCY = 4
#: Notices that are sent at once, and seconds between two looks for more.
NOTICE_CONCURRENCY, NOTICE_SECONDS = 2, 2.0
#: What a workflow was called when a table of ours still held the state of its job.
FORMER_WORKFLOW = "run_job"

#: Constant, so that a newer release takes over what an older one left.
VERSION = "1"

#: Attempts that are looked for at once.
_ATTEMPTS = 64
#: Rows that a list asks for at first.
_PAGE = 500

_STATUSES: Mapping[State, tuple[str, ...]] = {
    "waiting": ("DELAYED",),
    "queued": ("ENQUEUED",),
    "running": ("PENDING",),
    "done": ("SUCCESS",),
    "superseded": ("SUCCESS", "CANCELLED"),
    "dead": ("ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"),
    "cancelled": ("CANCELLED",),
}
_STATES: Mapping[str, State] = {
    status: state for state, statuses in _STATUSES.items() for status in statuses if state != "superseded"
}


class Queue:
    """What any process may ask of the engine, or tell it. Safe to use from several threads."""

    def __init__(self, database: Database) -> None:
        """Nothing is connected before the first use."""
        self._database = database
        self._lock = threading.Lock()
        self._client: DBOSClient | None = None

    def connect(self) -> None:
        """Connect, and bring the engine's tables up to date: what the first use does otherwise."""
        self._connected()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction of ours in which jobs can be queued as well: both the one and the other, or neither."""
        self._connected()
        with self._database.write() as connection:
            yield connection

    def enqueue(self, connection: Connection, job: Job, delay: float = 0.0) -> None:
        """Queue a job's present attempt in a ``transaction``. The same attempt is queued once.

        It begins after ``delay`` seconds, behind those of its subject that came before it.
        """
        if not job.repository:
            raise ValueError(f"job {job.id} is about no repository: it would wait for ever")
        facts = job.facts()
        options: Any = {
            "workflow_name": WORKFLOW,
            "queue_name": job.queue,
            "workflow_id": job.workflow,
            "queue_partition_key": job.partition,
            "priority": min(max(job.order, 1), 2**31 - 1),
            "app_version": VERSION,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
            "attributes": facts,
        }
        if delay > 0:
            options["delay_seconds"] = delay
        self._connected().enqueue_in_transaction(connection, options, facts)

    def get(self, job: str) -> Job | None:
        """The newest attempt of a job; None where there is none of that id."""
        newest: Job | None = None
        for first in itertools.count(step=_ATTEMPTS):
            ids = [workflow_id(job, number) for number in range(first, first + _ATTEMPTS)]
            found = [_job(each) for each in self._connected().list_workflows(workflow_ids=ids, load_input=False)]
            newest = max(found, key=lambda each: each.attempt, default=newest)
            if newest is None or newest.attempt < first + _ATTEMPTS - 1:
                break
        return newest

    def list(self, states: Collection[State] = (), repository: str = "", limit: int = 50) -> tuple[Job, ...]:
        """The newest attempts of jobs in these states (all where none is named), newest first."""
        size = max(_PAGE, limit)
        while True:
            # Always from the newest on: what happened in one moment has no order that pages could rely on.
            page = self._connected().list_workflows(
                name=WORKFLOW,
                status=_statuses(states) or None,
                sort_desc=True,
                load_input=False,
                limit=size,
            )
            found: dict[str, Job] = {}
            for job in map(_job, filter(_last, page)):
                # On SQLite the engine cannot search what workflows carry.
                if (not states or job.state in states) and repository in ("", job.repository):
                    found.setdefault(job.id, job)
            if len(page) < size or len(found) >= limit:
                break
            size *= 4
        newest = sorted(found.values(), key=lambda job: (job.seq, job.position), reverse=True)
        return tuple(newest[:limit])

    def counts(self, states: Collection[State], since: float | None = None) -> dict[State, int]:
        """How many jobs are in each of these states, those that were made after ``since``."""
        counts: dict[State, int] = {}
        start = None if since is None else _iso(since)
        page = self._found(name=WORKFLOW, status=_statuses(states), start_time=start)
        for status in filter(_last, page):
            state = _state(status)
            if state in states:
                counts[state] = counts.get(state, 0) + 1
        return counts

    def open_among(self, jobs: Iterable[str]) -> tuple[Job, ...]:
        """Those of these jobs that may still do something."""
        ids = [workflow_id(job, number) for job in jobs for number in range(_ATTEMPTS)]
        return tuple(map(_job, self._found(workflow_ids=ids, status=_statuses(OPEN))))

    def running(self) -> tuple[tuple[Job, str], ...]:
        """Every attempt that somebody has begun, with the name of who that was."""
        found = self._found(name=WORKFLOW, status="PENDING")
        return tuple((_job(status), status.executor_id or "") for status in found)

    def deaths(self, job: Job) -> int:
        """How often a worker died while it ran this attempt."""
        found = self._found(workflow_ids=[job.workflow])
        return int((found[0].attributes or {}).get("deaths", 0)) if found else 0

    def holds(self, job: Job, executor: str) -> bool:
        """Whether an attempt is still that worker's to finish: nobody cancelled it or took it over."""
        found = self._found(workflow_ids=[job.workflow])
        return bool(found) and found[0].status == "PENDING" and found[0].executor_id == executor

    def recover(self, job: Job) -> None:
        """Queue an attempt again that a dead worker was running, and count the death."""
        client = self._connected()
        client.update_workflow_attributes(job.workflow, {"deaths": self.deaths(job) + 1}, merge=True)
        client.resume_workflow(job.workflow, queue_name=job.queue)

    def cancel(self, job: Job) -> None:
        """Stop an attempt: one that waits never starts, of one that runs nothing is recorded any more."""
        self._connected().cancel_workflow(job.workflow)

    def bring_forward(self) -> int:
        """Start the jobs now that wait for an operator. Return their number."""
        waiting = self._found(name=WORKFLOW, status=list(_STATUSES["waiting"]))
        ids = [status.workflow_id for status in waiting if (status.attributes or {}).get("awaits_operator")]
        for workflow in ids:
            self._connected().set_workflow_delay(workflow, delay_seconds=0)
        return len(ids)

    def replaced(self, job: Job, by: str) -> None:
        """Note that an ended attempt is not a job's last word any more."""
        self._connected().update_workflow_attributes(job.workflow, {"next": by}, merge=True)

    def superseded(self, job: Job, by: str) -> None:
        """Note which job does the work of this one."""
        self._connected().update_workflow_attributes(job.workflow, {"superseded_by": by}, merge=True)

    def end_superseded(self, jobs: Collection[str], by: str) -> tuple[str, ...]:
        """End those of these jobs that were never started, as ``by`` does their work. Return their ids."""
        waiting = _statuses(("waiting", "queued"))
        ids = [status.workflow_id for status in self._found(workflow_ids=list(jobs), status=waiting)]
        for workflow in ids:
            self._connected().update_workflow_attributes(workflow, {"superseded_by": by}, merge=True)
        if ids:
            self._connected().cancel_workflows(ids)
        return tuple(ids)

    def ended_before(self, moment: float, states: Collection[State], limit: int) -> tuple[str, ...]:
        """Ids of attempts that ended in these states and were made before a moment, oldest first."""
        found = self._found(status=_statuses(states), end_time=_iso(moment), limit=limit)
        return tuple(status.workflow_id for status in found)

    def forget(self, workflows: Collection[str]) -> None:
        """Delete all trace of ended attempts."""
        if workflows:
            self._connected().delete_workflows(list(workflows))

    def forget_repository(self, repository: str) -> None:
        """Stop and delete all attempts of a repository."""
        found = self._found(name=WORKFLOW)
        ids = [status.workflow_id for status in found if (status.attributes or {}).get("repository") == repository]
        if ids:
            self._connected().cancel_workflows(ids)
            self.forget(ids)

    def forget_former(self) -> int:
        """Delete what an earlier release left here, whose jobs are made anew; how many attempts that was."""
        found = self._found(name=FORMER_WORKFLOW)
        self.forget([status.workflow_id for status in found])
        return len(found)

    def close(self) -> None:
        """Give back all connections."""
        with self._lock:
            if self._client is not None:
                self._client.destroy()
                self._client = None

    def _found(self, **chosen: Any) -> Sequence[WorkflowStatus]:
        """The workflows so chosen, without what they were given and what they returned."""
        if chosen.get("workflow_ids") == []:
            # To the engine an empty list is no filter.
            return ()
        return self._connected().list_workflows(load_input=False, load_output=False, **chosen)

    def _connected(self) -> DBOSClient:
        if self._client is None:
            with self._lock:
                if self._client is None:
                    _quiet()
                    # One start at a time: its migrations are not made for a race.
                    with held(self._database.locks, "migrate", 120.0):
                        DBOS.migrate(self._database.url)
                    self._client = DBOSClient(
                        system_database_url=self._database.url,
                        application_name=NAME,
                        lazy=True,
                        retry_connection_errors=False,
                    )
        return self._client


class Consumer:
    """Runs jobs in this process. There can be one: dbos keeps its state in the process."""

    def __init__(
        self,
        database: Database,
        name: str,
        run: Callable[[Job], str],
        *,
        concurrency: int = 8,
        polling_seconds: float = 0.05,
        apart: float = 0.0,
    ) -> None:
        """Begin to run jobs under a name that no other process has or had.

        ``run`` is called in threads of which ``concurrency`` decide at most. What it returns is the job's
        outcome; what it raises makes a failed job of it. Attempts to publish of one installation start ``apart``
        seconds after each other, on whichever worker.
        """
        _quiet()
        with held(database.locks, "migrate", 120.0):
            DBOS(config=_config(database, name, concurrency))

            @DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)
            def job(facts: dict[str, Any]) -> str:
                try:
                    return database.cut(run(Job(**facts)))
                except GaveUp as error:
                    raise GaveUp(database.cut(str(error))) from None

            DBOS.launch()
        pace: Any = {"limit": 1, "period": apart} if apart > 0 else None
        for queue, most, limiter, seconds in (
            (JOBS, concurrency, None, polling_seconds),
            (WRITES, WRITE_CONCURRENCY, pace, polling_seconds),
            (NOTICES, NOTICE_CONCURRENCY, None, max(NOTICE_SECONDS, polling_seconds)),
        ):
            DBOS.register_queue(
                queue,
                worker_concurrency=most,
                partition_concurrency=1,
                partition_limiter=limiter,
                polling_interval_sec=seconds,
                on_conflict="always_update",
            )

    def close(self, drain_seconds: float) -> None:
        """Begin nothing more, let what runs end within ``drain_seconds``, and disconnect."""
        DBOS.destroy(workflow_completion_timeout_sec=int(drain_seconds), destroy_registry=True)


def _config(database: Database, name: str, concurrency: int) -> DBOSConfig:
    return {
        "name": NAME,
        "system_database_url": database.url,
        "executor_id": name,
        "application_version": VERSION,
        "use_listen_notify": False,
        "sys_db_pool_size": concurrency + WRITE_CONCURRENCY + NOTICE_CONCURRENCY + 4,
        "log_level": "WARNING",
        "enable_otlp": False,
    }


def _quiet() -> None:
    """Its launch is an advertisement, and a job that gave up has said so itself."""
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.WARNING)
    if _unexpected not in logger.filters:
        logger.addFilter(_unexpected)


def _unexpected(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], GaveUp))


def _iso(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(moment))


def _statuses(states: Collection[State]) -> list[str]:
    """What the engine calls them."""
    return sorted({status for state in states for status in _STATUSES[state]})


def _last(status: WorkflowStatus) -> bool:
    """Whether no later attempt goes on where this one ended."""
    return "next" not in (status.attributes or {})


def _state(status: WorkflowStatus) -> State:
    state = _STATES[status.status]
    ended = state in ("done", "cancelled")
    return "superseded" if ended and "superseded_by" in (status.attributes or {}) else state


def _job(status: WorkflowStatus) -> Job:
    attributes = dict(status.attributes or {})
    known = {name: value for name, value in attributes.items() if name in Job.model_fields}
    state = _state(status)
    if state == "dead":
        known["error"] = str(status.error) if status.error else known.get("error")
    elif state == "done":
        known["error"] = None
    return Job(
        **{
            **known,
            "state": state,
            "outcome": status.output if isinstance(status.output, str) else None,
            "started_at": _seconds(status.dequeued_at),
            "finished_at": _seconds(status.completed_at),
        }
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
