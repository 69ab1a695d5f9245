"""A job: one task of one delivery, which is one workflow of the engine, and another one for each later attempt."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from bot.core.actions import Task
from bot.core.frozen import Frozen

#: What the engine's states are called here: waiting for its moment; queued; running; then one of the four ends.
State = Literal["waiting", "queued", "running", "done", "dead", "cancelled", "superseded"]

#: Jobs that may still do something.
OPEN: tuple[State, ...] = ("waiting", "queued", "running")

#: Jobs that wait for a person, and those that nothing is left to do about.
DEAD: tuple[State, ...] = ("dead",)
ENDED: tuple[State, ...] = ("done", "superseded", "cancelled")

#: More tasks than one delivery has.
TASKS = 16

#: What is known of a job before it runs, and never changes while it does; its workflow carries it.
_FACTS = frozenset(
    {
        "id",
        "delivery",
        "seq",
        "position",
        "task",
        "kind",
        "repository",
        "number",
        "attempt",
        "tries",
        "due",
        "error",
    }
) | {"created_at"}


class GaveUp(Exception):
    """Ends a job as a dead letter; the message says why."""


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
    state: State = "queued"
    attempt: int = Field(default=0, description="numbers the starts; each is a workflow of its own")
    tries: int = Field(default=0, description="failures in a row")
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
        """The id of the present attempt in the engine."""
        return workflow_id(self.id, self.attempt)

    def facts(self) -> dict[str, Any]:
        """What its workflow carries."""
        return self.model_dump(mode="json", include=set(_FACTS))


def workflow_id(job: str, attempt: int) -> str:
    """An attempt's id in the engine: an ended id can never be started again there after a pause, a new one can."""
    return job if attempt == 0 else f"{job}:{attempt}"
