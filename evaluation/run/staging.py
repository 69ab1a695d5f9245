"""A benchmark's task goes through exactly what a live delivery goes through: ``router.decide``.

A benchmark stages each task: the event that a live repository would send, and a snapshot of what a handler may
read about it. The handlers, prompts, config and model are the live ones; only GitHub is a ``ReplayForge``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import BaseModel

from bot import router
from bot.core.actions import Decision, Task, Usage
from bot.core.config import RepoConfig
from bot.core.errors import BudgetExceeded, ModelError, TransientError
from bot.core.events import RepositoryEvent
from bot.core.subjects import Repository
from bot.features.services import IssueIndex, NoHistory, NoIndex, Services
from bot.github.offline import ReplayForge, Snapshot
from bot.github.protocol import Forge
from bot.models.prompts import Prompts
from bot.models.protocol import Model, Prompt, Reply, Wrapper
from bot.reproduction.execution import SandboxHarness
from bot.reproduction.setup import OperatorHarnesses
from evaluation.benchmark import Session
from evaluation.run.model import is_cached
from evaluation.run.recognition import Recognition, prompt_hash
from evaluation.run.runner import Outcome, Postponed

T = TypeVar("T", bound=BaseModel)
Item = TypeVar("Item")

#: The same date in every replay, so that a decision does not depend on the day of the run.
MOMENT = datetime(2025, 4, 4, tzinfo=UTC)


def repository_named(full_name: str) -> Repository:
    """A repository of which nothing but ``owner/name`` is known."""
    owner, _, name = full_name.partition("/")
    return Repository(id=1, owner=owner, name=name or owner)


@dataclass(frozen=True)
class Staged:
    """One task as a live repository would show it: what happens there, and what can be read about it.

    ``forge`` answers from the snapshot; a benchmark that has a clone at hand can let it answer for files too.
    """

    id: str
    event: RepositoryEvent
    snapshot: Snapshot
    forge: Callable[[Snapshot], Forge] = ReplayForge
    harness: SandboxHarness | None = None
    """How its tests are run, where a handler may run any."""
    history: NoHistory = field(default_factory=NoHistory)
    issue_index: IssueIndex = field(default_factory=NoIndex)
    """The earlier issues, where a handler compares with any."""


@dataclass(frozen=True)
class Setup:
    """Settings that are equal for every task of a run; ``only`` is the feature under test."""

    model: Model
    config: RepoConfig
    prompts: Prompts
    only: Task
    recognition: bool = False
    """True if the model is asked if it knows the task from elsewhere."""


def through_handler(
    stage: Callable[[Item], Staged],
    handler: Task,
    config: RepoConfig,
    prompts: Prompts,
    *,
    prompt_names: Sequence[str],
    parts: Sequence[str],
    ready: Callable[[Item], bool] = lambda task: True,
    recognition: bool = False,
) -> Session[Item]:
    """Tasks as events for one live handler; ``stage`` is called in worker threads.

    ``prompt_names`` are the prompts that the handler uses, ``parts`` the sections of the config that shape its
    decisions.
    """

    def run(task: Item, model: Model) -> Outcome:
        return judge(stage(task), Setup(model, config, prompts, handler, recognition))

    return Session(
        run=run,
        config=config.model_dump(mode="json", include=set(parts)),
        prompts={name: prompts.hash(name) for name in prompt_names}
        | ({"recognised": prompt_hash()} if recognition else {}),
        ready=ready,
    )


def judge(staged: Staged, setup: Setup) -> Outcome:
    """Return the live handler's decision about a task.

    Raises BudgetExceeded or Postponed if a question was not put to anyone, whatever the handler made of
    that, and TransientError where a later try may succeed.
    """
    recognition = Recognition(setup.model) if setup.recognition else None
    heard = Heard(recognition or setup.model, staged.id)
    services = Services(
        forge=staged.forge(staged.snapshot),
        model=heard,
        config=setup.config,
        clock=lambda: MOMENT,
        history=staged.history,
        issue_index=staged.issue_index,
        repository=staged.event.repository,
        commands=router.SLASH_COMMANDS,
        prompts=setup.prompts,
        harnesses=OperatorHarnesses(staged.harness) if staged.harness else None,
    )
    decisions = router.decide(staged.event, services, only=setup.only)
    if heard.unasked is not None:
        raise heard.unasked
    decision = decisions[0] if decisions else None
    return Outcome(
        decision=decision,
        raw_reply=heard.text,
        usage=heard.usage,
        lost=heard.lost,
        error=_error(decision, heard, setup.only),
        details=recognition.details() if recognition else {},
    )


def _error(decision: Decision | None, heard: Heard, handler: Task) -> str | None:
    """Why this is no answer to the task; None if it is one."""
    if decision is None:
        return f"{handler} had no business with this event"
    if decision.verdict is None:
        return f"{decision.abstained or 'abstained'}: {heard.failure or decision.reason}"
    return None


class Heard(Wrapper):
    """A Model that remembers what was said during one task, and asks in the task's name.

    ``subject`` is the benchmark's id of the task: recorded replies are looked up by it.
    """

    def __init__(self, model: Model, subject: str) -> None:
        super().__init__(model)
        self._subject = subject
        #: The last answer, and why the last question that failed did.
        self.text: str | None = None
        self.failure = ""
        self.unasked: BudgetExceeded | Postponed | None = None
        self.usage = Usage()
        #: Of the usage, what no cache of replies keeps.
        self.lost = Usage()
        self._is_kept = is_cached(model)

    def complete(self, prompt: Prompt, schema: type[T]) -> Reply[T]:
        try:
            reply = self._model.complete(prompt.model_copy(update={"subject": self._subject}), schema)
        except (ModelError, TransientError) as error:
            self.usage += error.usage or Usage()
            self.lost += error.usage or Usage()
            self.failure = str(error)
            if isinstance(error, BudgetExceeded | Postponed):
                self.unasked = error
            raise
        self.text = reply.text
        self.usage += reply.usage
        self.lost += Usage() if self._is_kept else reply.usage
        return reply
