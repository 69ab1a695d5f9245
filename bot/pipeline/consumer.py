"""The part of the engine, dbos, that runs jobs in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbos import DBOS, DBOSConfig, WorkflowSerializationFormat

from bot.pipeline.job import JOBS, NOTICES, WRITES, GaveUp, Job
from bot.pipeline.queue import NAME, VERSION, WORKFLOW, silence_dbos
from bot.pipeline.store.database import Database
from bot.pipeline.store.locks import exclusive

#: Installations that a worker writes to at once, and seconds between two polls for writes: just over the second
#: between two writes of one installation, so that every poll may start its next one.
WRITE_CONCURRENCY, WRITE_SECONDS = 8, 1.1
#: Notices that are sent at the same time. They may wait: their queue is polled every fourth time.
NOTICE_CONCURRENCY, NOTICE_POLLS = 2, 4


class Consumer:
    """Runs jobs in this process, one object at a time: dbos keeps its state in module globals."""

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
        """Start to run jobs under an executor ``name`` that was never used before.

        ``run`` is called in threads, in at most ``concurrency`` of them for decisions. It returns the outcome of
        the job; an exception makes it a failed job. Attempts to publish of one installation start ``apart``
        seconds after each other, on any worker.
        """
        silence_dbos()
        with exclusive(database.locks, "migrate", 120.0):
            DBOS(config=_config(database, name, concurrency))

            @DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)
            def job(facts: dict[str, Any]) -> str:
                try:
                    return database.cut(run(Job(**facts)))
                except GaveUp as error:
                    raise GaveUp(database.cut(str(error))) from None

            DBOS.launch()
        _register_queues(concurrency, polling_seconds, apart)

    def close(self, drain_seconds: float) -> None:
        """Start no more jobs, give running ones ``drain_seconds`` to end, and disconnect."""
        DBOS.destroy(workflow_completion_timeout_sec=int(drain_seconds), destroy_registry=True)


def _register_queues(concurrency: int, polling_seconds: float, apart: float) -> None:
    pace: Any = {"limit": 1, "period": apart} if apart > 0 else None
    for queue, most, limiter, seconds in (
        (JOBS, concurrency, None, polling_seconds),
        (WRITES, WRITE_CONCURRENCY, pace, min(WRITE_SECONDS, polling_seconds)),
        (NOTICES, NOTICE_CONCURRENCY, None, NOTICE_POLLS * polling_seconds),
    ):
        DBOS.register_queue(
            queue,
            worker_concurrency=most,
            partition_concurrency=1,
            partition_limiter=limiter,
            polling_interval_sec=seconds,
            on_conflict="always_update",
        )


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
