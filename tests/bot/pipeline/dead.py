"""Dead letters as the engine makes them: a job that it runs gives up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bot.pipeline.job import GaveUp, Job
from bot.pipeline.queue import Consumer, Queue
from bot.pipeline.store import Database
from tests.bot.pipeline.rig import wait


def bury(database: Database, error: str, *jobs: str) -> None:
    """Run what is queued: these jobs die of ``error``, any other is done.

    In a thread of its own, as in a worker: the engine does not start beside an event loop, such as a browser's.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_run_queue, database, error, jobs).result()


def _run_queue(database: Database, error: str, jobs: tuple[str, ...]) -> None:
    queue = Queue(database)

    def run(job: Job) -> str:
        if job.id in jobs:
            raise GaveUp(error)
        return "posted"

    executor = Consumer(database, "worker-of-a-test", run, polling_seconds=0.02)
    try:
        wait(lambda: not queue.counts(("queued", "running")), 30, "the queue is empty")
    finally:
        executor.close(5)
        queue.close()


def dead_letter(database: Database, job: Job, error: str) -> None:
    """A job that died of ``error``."""
    queue = Queue(database)
    with queue.transaction() as connection:
        queue.enqueue(connection, job)
    queue.close()
    bury(database, error, job.id)
