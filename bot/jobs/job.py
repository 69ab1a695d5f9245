"""A job: one task of one delivery."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.actions import Task
from bot.core.frozen import Frozen

#: waiting for its moment; queued to run; running; then one of the four ends.
State = Literal["waiting", "queued", "running", "done", "dead", "cancelled", "superseded"]

#: Jobs that may still do something.
OPEN: tuple[State, ...] = ("waiting", "queued", "running")

#: More tasks than one delivery has.
TASKS = 16


class Job(Frozen):
    """One task of one delivery. Times are seconds since 1970."""

    id: str = Field(description="``<delivery>:<task>``")
    delivery: str
    seq: int = Field(description="order of arrival of the delivery")
    position: int = Field(description="order among the jobs of one delivery")
    task: Task
    kind: str = Field(description="what happened, e.g. ``issue_opened``")
    repository: str
    number: int
    state: State
    attempt: int = Field(description="numbers the starts; each has an id of its own in the queue")
    tries: int = Field(description="failures in a row")
    due: float = Field(description="not before this moment")
    outcome: str | None = None
    error: str | None = None
    superseded_by: str | None = None
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None

    @property
    def order(self) -> int:
        """Its place in its subject's line."""
        return self.seq * TASKS + self.position

    @property
    def partition(self) -> str:
        """What it is about: jobs on one issue or pull request run one after the other, others beside them."""
        return f"{self.repository}#{self.number}"

    @property
    def workflow(self) -> str:
        """The id of the present attempt in the queue."""
        return workflow_id(self.id, self.attempt)


def workflow_id(job: str, attempt: int) -> str:
    """An attempt's id in the queue: an ended id can never be started again there, a new one can."""
    return job if attempt == 0 else f"{job}:{attempt}"
