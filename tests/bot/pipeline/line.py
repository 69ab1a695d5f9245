"""The engine in memory, for tests that move its clock: jobs wait, run when the test says so, and end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from bot.pipeline.job import OPEN, GaveUp, Job, State
from bot.pipeline.store import Database

EXECUTOR = "worker-0-test"


class Line:
    """Implements what dispatcher, runner, recovery and retention need of ``bot.pipeline.queue.Queue``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.attempts: dict[str, Job] = {}
        self.died: dict[str, int] = {}
        self.forgotten: list[str] = []

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._database.write() as connection:
            yield connection

    def enqueue(self, connection: Connection, job: Job, delay: float = 0.0) -> None:
        state: State = "waiting" if delay > 0 else "queued"
        self.attempts.setdefault(job.workflow, job.model_copy(update={"state": state}))

    def get(self, job: str) -> Job:
        return max((value for value in self.attempts.values() if value.id == job), key=lambda item: item.attempt)

    def list(self, states: Collection[State] = (), repository: str = "", limit: int = 50) -> tuple[Job, ...]:
        newest = {value.id: self.get(value.id) for value in self.attempts.values()}
        return tuple(value for value in newest.values() if not states or value.state in states)

    def states(self) -> dict[str, State]:
        return {job.id: job.state for job in self.list()}

    def open_among(self, jobs: Collection[str]) -> tuple[Job, ...]:
        return tuple(job for job in self.list(OPEN) if job.id in jobs)

    def holds(self, job: Job, executor: str) -> bool:
        return self.attempts[job.workflow].state == "running"

    def deaths(self, job: Job) -> int:
        return self.died.get(job.workflow, 0)

    def bring_forward(self) -> int:
        waiting = [job for job in self.list(("waiting",)) if job.awaits_operator]
        for job in waiting:
            self._set(job, state="queued")
        return len(waiting)

    def replaced(self, job: Job, by: str) -> None: ...

    def superseded(self, job: Job, by: str) -> None:
        self._set(job, superseded_by=by)

    def end_superseded(self, jobs: Collection[str], by: str) -> tuple[str, ...]:
        ids = tuple(job for job in jobs if self.get(job).attempt == 0 and self.get(job).state in OPEN)
        for item in ids:
            self._set(self.get(item), state="superseded", superseded_by=by)
        return ids

    def ended_before(self, moment: float, states: Collection[State], limit: int) -> tuple[str, ...]:
        return tuple(
            name for name, item in self.attempts.items() if item.state in states and item.created_at < moment
        )

    def forget(self, workflows: Collection[str]) -> None:
        self.forgotten += workflows
        for workflow in workflows:
            self.attempts.pop(workflow, None)

    def forget_repository(self, repository: str) -> None:
        self.forget([name for name, item in self.attempts.items() if item.repository == repository])

    def cancel(self, job: str) -> None:
        self._set(self.get(job), state="cancelled")

    def retry(self, job: str) -> None:
        current = self.get(job)
        anew = current.model_copy(update={"attempt": current.attempt + 1, "tries": 0, "state": "queued"})
        self.attempts[anew.workflow] = anew

    def run(self, job: str, run: Callable[[Job, str], str]) -> Job:
        """Run the newest attempt as the engine would; the job afterwards."""
        begun = self._set(self.get(job), state="running")
        try:
            outcome = run(begun, EXECUTOR)
        except GaveUp as error:
            self._end(begun, "dead", error=str(error))
        else:
            superseded = self.attempts[begun.workflow].superseded_by
            self._end(begun, "superseded" if superseded else "done", outcome=outcome, error=None)
        return self.get(job)

    def _end(self, job: Job, state: State, **values: str | None) -> None:
        if self.attempts[job.workflow].state == "running":
            self._set(job, state=state, **values)

    def _set(self, job: Job, **values: str | None) -> Job:
        self.attempts[job.workflow] = self.attempts[job.workflow].model_copy(update=values)
        return self.attempts[job.workflow]
