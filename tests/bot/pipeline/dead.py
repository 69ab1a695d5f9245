"""Dead letters: jobs that gave up, as the engine stores them."""

from __future__ import annotations

from bot.pipeline.inbox import GaveUp, Job
from bot.pipeline.queue import Queue
from bot.pipeline.store import Database
from tests.bot.pipeline.driven import DrivenQueue


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
