"""The durable queue: dbos behind a few verbs. The one module of the program that imports it.

What it gives: a job that is queued is started by exactly one worker, one at a time for each partition; what a
dead worker was running is started again by another. What it must not be trusted with is met here: its default
serializer (pickle), its silent acceptance of jobs that can never run, its own recovery that knows its own
executor only, and its advertisement in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from dbos import DBOS, DBOSConfig, WorkflowSerializationFormat

from bot.ledger.database import Database
from bot.ledger.locks import held

NAME = "bouncer"
QUEUE = "jobs"
WORKFLOW = "run_job"

#: Constant, so that a newer release takes over what an older one left.
VERSION = "1"

#: Starts of one attempt that ended with the death of their worker, after which it is not started any more.
MAX_STARTS = 8

#: Where dbos says how it ended.
Ended = Literal["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_ENDS: dict[str, Ended] = {end: end for end in get_args(Ended)}


def executor(slot: int) -> str:
    """The name under which a worker's slot claims jobs."""
    return f"worker-{slot}"


class Queue:
    """The queue of this process. There can be one: dbos keeps its state in the process."""

    def __init__(
        self,
        database: Database,
        slot: int,
        run: Callable[[str, int, str, Callable[[Sequence[str]], None]], None],
        *,
        concurrency: int = 8,
        polling_seconds: float = 0.1,
        max_starts: int = MAX_STARTS,
    ) -> None:
        """Connect, take back what the slot's last holder was running, and begin to run jobs.

        ``run`` is called with a job's id, the number of the attempt, its partition, and ``drop``, in threads of
        which there are ``concurrency`` at most.
        """
        logging.getLogger("dbos").setLevel(logging.WARNING)
        config: DBOSConfig = {
            "name": NAME,
            "system_database_url": database.url,
            "executor_id": executor(slot),
            "application_version": VERSION,
            "use_listen_notify": False,
            "sys_db_pool_size": concurrency + 4,
            "log_level": "WARNING",
            "enable_otlp": False,
        }
        # One start at a time: its migrations are not made for a race.
        with held(database.locks, "migrate", 120.0):
            DBOS(config=config)

            @DBOS.workflow(
                name=WORKFLOW,
                max_recovery_attempts=max_starts,
                serialization_type=WorkflowSerializationFormat.PORTABLE,
            )
            def run_job(job: str, attempt: int, partition: str) -> None:
                run(job, attempt, partition, self.drop)

            DBOS.launch()
        DBOS.register_queue(
            QUEUE,
            worker_concurrency=concurrency,
            partition_concurrency=1,
            polling_interval_sec=polling_seconds,
            on_conflict="always_update",
        )

    def start(self, workflow: str, job: str, attempt: int, partition: str, order: int) -> None:
        """Queue an attempt behind those of lower ``order`` in its partition. The same id starts once."""
        if not partition:
            raise ValueError(f"job {job} has no partition: it would wait for ever")
        DBOS.enqueue_workflow_with_options(
            {
                "workflow_name": WORKFLOW,
                "queue_name": QUEUE,
                "workflow_id": workflow,
                "queue_partition_key": partition,
                "priority": min(max(order, 1), 2**31 - 1),
                "app_version": VERSION,
                "serialization_type": WorkflowSerializationFormat.PORTABLE,
            },
            job,
            attempt,
            partition,
        )

    def drop(self, workflows: Sequence[str]) -> None:
        """Take attempts out of the queue; one that has begun goes on, and has to look for itself."""
        if workflows:
            DBOS.cancel_workflows(list(workflows))

    def ended(self, workflows: Sequence[str]) -> dict[str, Ended | None]:
        """How each of these ended; None where it has not, and no entry where it is unknown."""
        found: dict[str, Ended | None] = {}
        for status in DBOS.list_workflows(workflow_ids=list(workflows), load_input=False, load_output=False):
            found[status.workflow_id] = _ENDS.get(status.status)
        return found

    def executors(self) -> frozenset[str]:
        """Everybody in whose name something is running, dead or alive."""
        running = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
        return frozenset(status.executor_id for status in running if status.executor_id)

    def recover(self, executors: Sequence[str]) -> int:
        """Queue again what these were running; the caller holds their slots. How many there were."""
        # Private, but the only way that keeps the count of starts; pinned by a contract test.
        return len(DBOS._recover_pending_workflows(list(executors)))

    def forget(self, workflows: Sequence[str]) -> None:
        """Delete all trace of ended attempts."""
        if workflows:
            DBOS.delete_workflows(list(workflows))

    def close(self, drain_seconds: float) -> None:
        """Begin nothing more, let what runs end within ``drain_seconds``, and disconnect."""
        DBOS.destroy(workflow_completion_timeout_sec=int(drain_seconds), destroy_registry=True)
