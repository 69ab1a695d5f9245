"""What a handler is given, and what a handler is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from bot.core.actions import Decision, Task
from bot.core.commands import CommandSet
from bot.core.config import Problem, RepoConfig
from bot.core.subjects import Repository
from bot.github.protocol import Forge
from bot.models.prompts import Prompts
from bot.models.protocol import Model
from bot.sandbox.protocol import Sandbox

if TYPE_CHECKING:
    from bot.reproduction.execution import Harness
    from bot.reproduction.setup import Environments


class History(Protocol):
    """What was decided before: the only memory, from which everything that a handler knows follows."""

    @property
    def counts_authors(self) -> bool:
        """True if authors cannot delete what their commands are counted by; if not, they give none."""
        ...

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        """Decisions on ``owner/name#number`` of these kinds (all kinds where none is named), oldest first."""
        ...

    def commands(self, repository: str, since: datetime) -> tuple[Decision, ...]:
        """The newest decisions about commands in a repository, on any subject."""
        ...

    def muted(self, repository: str) -> frozenset[str]:
        """Review categories that this repository's people dismissed too often."""
        ...


class NoHistory:
    """A first meeting: used by the command line and by evaluation."""

    counts_authors = False

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        return ()

    def commands(self, repository: str, since: datetime) -> tuple[Decision, ...]:
        return ()

    def muted(self, repository: str) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True)
class Services:
    """Everything a handler may use. There is no writer here."""

    forge: Forge
    model: Model
    sandbox: Sandbox | None
    config: RepoConfig
    clock: Callable[[], datetime]
    history: History
    repository: Repository
    commands: CommandSet
    prompts: Prompts = field(default_factory=Prompts)
    config_problems: tuple[Problem, ...] = ()
    environments: Environments | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    harness: Harness | None = None
    """How the operator has tests run; None: as the repository says, after its own set-up."""
