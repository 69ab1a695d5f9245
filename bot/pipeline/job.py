"""A job: one task of one delivery. Each attempt is a workflow of the engine."""

from __future__ import annotations

import zlib
from typing import Any, Literal

from pydantic import AliasChoices, Field

from bot.core.actions import Task
from bot.core.frozen import Frozen

#: A waiting job has a delay; the last four states are final, unless an operator retries the job.
State = Literal["waiting", "queued", "running", "done", "dead", "cancelled", "superseded"]

#: The subject of a notice, a job that only sends a message to the operator's receiver.
Notice = Literal["decision", "failure"]

#: An attempt either decides, or publishes the decision.
Stage = Literal["decide", "publish"]

#: The queues: for deciding, for writing to GitHub, and for notices.
JOBS, WRITES, NOTICES = "jobs", "writes", "notices"

#: Most jobs of one installation that decide at the same time: fewer than the threads of a worker, so that a busy
#: installation leaves some for the others. Jobs of one subject share a lane, so they keep their order.
LANES = 6

#: States of jobs that have not ended.
OPEN: tuple[State, ...] = ("waiting", "queued", "running")

#: Final states: a dead job waits for an operator, nothing is left to do about the others.
DEAD: tuple[State, ...] = ("dead",)
ENDED: tuple[State, ...] = ("done", "superseded", "cancelled")

#: Start of the outcome of a job whose repository or subject was not there.
GONE = "gone"

#: How long an ended job stays on record, seconds: GitHub redelivers for about three days.
KEEP_SECONDS = 7 * 24 * 3600.0
#: Most dead jobs that are started again at once.
DEAD_LIMIT = 1000

#: Prefix of the delivery ids of operators' requests.
OPERATOR_PREFIX = "operator:"

#: Upper bound of the tasks of one delivery.
TASKS = 16

#: Fields that change while a job runs. The others are stored with its workflow.
_STATE = {"state", "outcome", "superseded_by", "started_at", "finished_at"}


class GaveUp(Exception):
    """Raised to end a job as dead, with the reason."""


class Job(Frozen):
    """One task of one delivery. Times are seconds since 1970."""

    id: str = Field(description="``<delivery>:<task>``")
    delivery: str
    seq: int = Field(description="order of arrival of the delivery")
    position: int = Field(description="order among the jobs of one delivery")
    task: Task
    kind: str = Field(description="the event's type, e.g. ``issue_opened``")
    installation: int = 0
    stage: Stage = "decide"
    repository: str
    number: int
    state: State = "queued"
    attempt: int = Field(default=0, description="number of the attempt, from 0")
    tries: int = Field(default=0, description="failures in a row")
    days: int = Field(default=0, description="days on which it waited for a new budget")
    decided_at: float | None = Field(default=None, description="when the attempt began that decided")
    due: float = Field(description="earliest start")
    awaits_operator: bool = Field(
        default=False, description="waits long: an operator has to repair something, or the app is suspended"
    )
    notice: Notice | None = Field(default=None, description="it only sends this notice; None: it does its task")
    #: Version 0.2 stored it as ``told``.
    source_job: str = Field(
        default="", validation_alias=AliasChoices("source_job", "told"), description="the job of a notice"
    )
    detail: str = Field(default="", description="why the job of a notice failed")
    outcome: str | None = None
    error: str | None = None
    superseded_by: str | None = None
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None

    @property
    def subject(self) -> str:
        """``owner/name#number``; the number is 0 if it is about a whole repository."""
        return f"{self.repository}#{self.number}"

    @property
    def order(self) -> int:
        """Its priority among the jobs of its subject."""
        return self.seq * TASKS + self.position

    @property
    def partition(self) -> str:
        """Its queue partition. The engine runs one job of a partition at a time, and picks partitions at random.

        So a thousand waiting jobs of one installation have ``LANES`` chances, and a single job of another one has
        one. Writes of one installation are made one after the other.
        """
        if self.notice:
            return self.subject
        if self.stage == "publish":
            return str(self.installation)
        return f"{self.installation}/{zlib.crc32(self.subject.encode()) % LANES}"

    @property
    def queue(self) -> str:
        if self.notice:
            return NOTICES
        return WRITES if self.stage == "publish" else JOBS

    @property
    def workflow(self) -> str:
        """The engine's id of the current attempt."""
        return workflow_id(self.id, self.attempt)

    def facts(self) -> dict[str, Any]:
        """Return the fields that are stored with its workflow."""
        return self.model_dump(mode="json", exclude=_STATE)

    def notice_job(self, notice: Notice, now: float, detail: str = "") -> Job:
        """Return the job that sends a notice about this one."""
        return self.model_copy(
            update={
                "id": f"{self.workflow}:notice",
                "source_job": self.id,
                "kind": f"notice_of_{notice}",
                "notice": notice,
                "detail": detail,
                "attempt": 0,
                "tries": 0,
                "due": now,
                "error": None,
                "created_at": now,
            }
        )


def workflow_id(job: str, attempt: int) -> str:
    return job if attempt == 0 else f"{job}:{attempt}"
