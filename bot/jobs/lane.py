"""A subject's jobs, one after the other, without a pause between them.

The queue looks for work from time to time, and starts one job of a subject each time it looks. Whichever job
it starts therefore goes on with those that wait behind it. Each of them keeps its own place in the queue until
it has ended, so that nothing is lost if the process dies in the middle.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from bot.jobs.runner import Runner
from bot.jobs.store import Jobs

#: Jobs that one start runs at most: what it holds up at a shutdown is bounded, and other subjects get a turn.
LONGEST = 50


class Lane:
    """What the queue calls to run a job."""

    def __init__(self, jobs: Jobs, runner: Runner, stop: threading.Event) -> None:
        self._jobs = jobs
        self._runner = runner
        self._stop = stop

    def run(self, job_id: str, attempt: int, partition: str, drop: Callable[[Sequence[str]], None]) -> None:
        """Run a job, then the queued ones on its subject; ``drop`` takes these out of the queue."""
        self._runner.run(job_id, attempt)
        ended: list[str] = []
        while len(ended) < LONGEST and not self._stop.is_set():
            job = self._jobs.next_queued(partition)
            if job is None:
                break
            self._runner.run(job.id, job.attempt)
            ended.append(job.workflow)
        drop(ended)
