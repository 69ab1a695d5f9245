"""A job: one task of one delivery, which is one workflow of the engine, and another one for each later attempt.

And which pending job a newer event makes pointless. The engine's debouncer replaces what a waiting job is about by
what came last, whatever that was; which event may take the place of which is our own matter. It follows from what
was delivered alone. The rule errs on the side of doing the work: an event supersedes another only where the task
is certain to look at the same thing again because of it. Commands and feedback are said once and count once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError

from bot import router
from bot.core import events
from bot.core.actions import Task
from bot.core.events import Event
from bot.core.frozen import Frozen

#: What the engine's states are called here: waiting for its moment; queued; running; then one of the four ends.
State = Literal["waiting", "queued", "running", "done", "dead", "cancelled", "superseded"]

#: What a job may tell somebody else of, instead of doing anything itself.
Notice = Literal["decision", "failure"]

#: What an attempt of a job does: decide, or publish what was decided.
Stage = Literal["decide", "publish"]

#: The queues: for deciding, for writing to GitHub, and for notices.
JOBS, WRITES, NOTICES = "jobs", "writes", "notices"

#: Jobs of one installation that decide at the same time, at most: fewer than a worker has threads by default, so
#: that a busy installation leaves some for the others. Jobs of one subject share a lane, so they keep their order.
LANES = 6

#: Jobs that may still do something.
OPEN: tuple[State, ...] = ("waiting", "queued", "running")

#: Jobs that wait for a person, and those that nothing is left to do about.
DEAD: tuple[State, ...] = ("dead",)
ENDED: tuple[State, ...] = ("done", "superseded", "cancelled")

#: How the ids begin of what operators asked for themselves, beside those of GitHub's deliveries.
ASKED = "operator:"

#: More tasks than one delivery has.
TASKS = 16

#: What comes of a job while it runs; the rest is known before, never changes, and is what its workflow carries.
_CAME = {"state", "outcome", "superseded_by", "started_at", "finished_at"}


class GaveUp(Exception):
    """Ends a job as a failed job; the message says why."""


class Job(Frozen):
    """One task of one delivery. Times are seconds since 1970."""

    id: str = Field(description="``<delivery>:<task>``")
    delivery: str
    seq: int = Field(description="order of arrival of the delivery")
    position: int = Field(description="order among the jobs of one delivery")
    task: Task
    kind: str = Field(description="what happened, e.g. ``issue_opened``")
    installation: int = 0
    stage: Stage = "decide"
    repository: str
    number: int
    state: State = "queued"
    attempt: int = Field(default=0, description="numbers the starts; each is a workflow of its own")
    tries: int = Field(default=0, description="failures in a row")
    due: float = Field(description="not before this moment")
    awaits_operator: bool = Field(default=False, description="waits long: an operator has to repair something")
    notice: Notice | None = Field(default=None, description="what it tells others of; None: it does its task")
    told: str = Field(default="", description="the job that a notice is about")
    detail: str = Field(default="", description="why that one failed")
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
        """Its queue partition: the engine runs one job of each at a time, and chooses among them at random.

        So an installation with a thousand waiting jobs has ``LANES`` chances, and one with a single job has one.
        Writes of one installation are made one after the other.
        """
        subject = f"{self.repository}#{self.number}"
        if self.notice:
            return subject
        if self.stage == "publish":
            return str(self.installation)
        return f"{self.installation}/{zlib.crc32(subject.encode()) % LANES}"

    @property
    def queue(self) -> str:
        """The queue in which it waits."""
        if self.notice:
            return NOTICES
        return WRITES if self.stage == "publish" else JOBS

    @property
    def workflow(self) -> str:
        """The id of the present attempt in the engine."""
        return workflow_id(self.id, self.attempt)

    def facts(self) -> dict[str, Any]:
        """What its workflow carries."""
        return self.model_dump(mode="json", exclude=_CAME)


def stored_event(text: str) -> Event | str:
    """A delivery's event, or why it cannot be read: another version of the program wrote it."""
    try:
        return events.from_json(text)
    except ValidationError as error:
        return f"the stored event cannot be read: {error.errors(include_url=False)[0]['msg']}"


def workflow_id(job: str, attempt: int) -> str:
    """An attempt's id in the engine: an ended id can never be started again there after a pause, a new one can."""
    return job if attempt == 0 else f"{job}:{attempt}"


def supersedes(task: Task, newer: Event, older: Event) -> bool:
    """Whether ``task`` need not run for ``older`` any more once ``newer`` has happened on the same subject."""
    if newer.sender.is_bot and not older.sender.is_bot:
        # Handlers may pass over what bots do; what a person did must not get lost with it.
        return False
    return router.feature_named(task).supersedes(newer, older)


def successor(task: Task, event: Event, later: Sequence[tuple[str, str]]) -> tuple[str, Event] | None:
    """Return the delivery and the event that make ``task`` pointless for ``event``; None if there are none.

    ``later`` are ids and events (JSON) that came after it, the newest first.
    """
    for delivery, text in later:
        newer = stored_event(text)
        # One that cannot be read takes nobody's place, and stops nobody.
        if not isinstance(newer, str) and supersedes(task, newer, event):
            return delivery, newer
    return None


def superseded_by(task: Task, newer: Event, earlier: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of the jobs of ``earlier`` deliveries whose work that of ``newer`` does as well."""
    events_read = ((delivery, stored_event(text)) for delivery, text in earlier)
    return [
        f"{delivery}:{task}"
        for delivery, older in events_read
        if not isinstance(older, str) and supersedes(task, newer, older)
    ]
