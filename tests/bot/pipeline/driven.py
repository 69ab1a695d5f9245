"""The real queue with an executor that the test drives: a job runs when the test says so, due or not."""

from __future__ import annotations

from collections.abc import Callable

from dbos._serialization import DBOSPortableJSON, serialize_exception
from sqlalchemy import update

from bot.pipeline.job import GaveUp, Job, State
from bot.pipeline.queue import Queue
from bot.pipeline.store import Database

EXECUTOR = "worker-0-test"


class DrivenQueue(Queue):
    """Starts and ends attempts as the engine's executor would; all else is the queue itself."""

    def states(self) -> dict[str, State]:
        return {job.id: job.state for job in self.list()}

    def start_due(self) -> None:
        """Queue the attempts whose delay is over, as the engine's scheduler does."""
        self.connect()._sys_db.transition_delayed_workflows()

    def run(self, job: str, run: Callable[[Job, str], str]) -> Job:
        """Run the newest attempt of a job; the job afterwards."""
        attempt = self.get(job)
        assert attempt is not None
        engine = self.connect()._sys_db
        workflows = engine.tables.workflow_status
        start = update(workflows).where(workflows.c.workflow_uuid == attempt.workflow)
        with engine.engine.begin() as connection:
            connection.execute(start.values(status="PENDING", executor_id=EXECUTOR))
        try:
            outcome = run(attempt, EXECUTOR)
        except GaveUp as error:
            message, _ = serialize_exception(error, DBOSPortableJSON.name(), DBOSPortableJSON)
            engine.update_workflow_outcome(attempt.workflow, "ERROR", error=message)
        else:
            engine.update_workflow_outcome(attempt.workflow, "SUCCESS", output=DBOSPortableJSON.serialize(outcome))
        after = self.get(job)
        assert after is not None
        return after


def bury(database: Database, error: str, *jobs: str) -> None:
    """Run what is queued: these jobs die of ``error``, any other is done."""

    def run(job: Job, executor: str) -> str:
        if job.id in jobs:
            raise GaveUp(error)
        return "posted"

    queue = DrivenQueue(database)
    for job in reversed(queue.list(("queued",), limit=1000)):
        queue.run(job.id, run)
    queue.close()


def dead_letter(database: Database, job: Job, error: str) -> None:
    """A job that died of ``error``."""
    queue = Queue(database)
    with queue.transaction() as connection:
        queue.enqueue(connection, job)
    queue.close()
    bury(database, error, job.id)
