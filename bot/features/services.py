"""The services that a handler is given."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pydantic import Field

from bot.core.actions import Decision, Task
from bot.core.commands import CommandSet
from bot.core.config import Problem, RepoConfig
from bot.core.errors import SandboxError
from bot.core.frozen import Frozen
from bot.core.subjects import Issue, Repository
from bot.github.protocol import Forge
from bot.models.protocol import Model, Templates
from bot.reproduction.protocol import Harness, Harnesses, TestCommand


class History(Protocol):
    """Earlier decisions. Handlers have no other memory. The defaults are those of an empty history."""

    @property
    def counts_authors(self) -> bool:
        """True if the commands of authors are counted. If not, authors cannot use any."""
        return False

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        """Return the decisions on ``owner/name#number`` of these features (default: all), oldest first."""
        return ()

    def commands(self, repository: str, since: datetime) -> tuple[Decision, ...]:
        """Return the newest decisions about commands in a repository, on any subject."""
        return ()

    def newest(self, repository: str, kind: Task) -> tuple[Decision, ...] | None:
        """Return the newest decision of a feature on each open issue or pull request; None if none are kept."""
        return None

    def muted(self, repository: str) -> frozenset[str]:
        """Return the review categories that people of this repository dismissed too often."""
        return frozenset()


class NoHistory(History):
    """No earlier decisions, for the command line and evaluation."""


class IndexedIssue(Frozen):
    """An earlier issue; title and text may be cut."""

    number: int
    title: str
    body: str = ""
    state: str = "open"
    questions: str = Field("", description="the last questions of members of the project in its comments")
    root: int = Field(description="its own number, or that of the issue that maintainers say it repeats")
    unnamed: bool = Field(False, description="closed as a duplicate, and nothing names the other issue")


class IssueIndex(Protocol):
    """Titles and texts of open issues, and of those closed within a year."""

    def similar(self, repository: str, issue: Issue, most: int) -> tuple[IndexedIssue, ...] | None:
        """Return the earlier issues with the most telling words of one, best first; None without an index."""
        return None


class NoIndex(IssueIndex):
    """No issues are indexed."""


@dataclass(frozen=True)
class Services:
    """Everything that a handler may use. It cannot write."""

    forge: Forge
    model: Model
    config: RepoConfig
    clock: Callable[[], datetime]
    history: History
    repository: Repository
    commands: CommandSet
    prompts: Templates
    issue_index: IssueIndex = field(default_factory=NoIndex)
    config_problems: tuple[Problem, ...] = ()
    harnesses: Harnesses | None = None
    """Make what runs a repository's tests; None if the sandbox is switched off."""
    elsewhere: Callable[[str], Forge | None] = lambda repository: None
    """Return the forge of another repository, ``owner/name``; None if the App is not installed there."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    about_url: str = ""
    """The page that explains the bot; empty: the App's page on GitHub."""
    shadow: bool = False
    """True if nothing is posted, whatever the configuration says."""

    def prepared(self, checkout: Path, command: TestCommand) -> AbstractContextManager[Harness]:
        """Return a harness for a checkout of the default branch, or of a base on it, after its set-up.

        Raises SandboxError if there is no sandbox or it fails, SetupFailed if a set-up command fails.
        """
        if self.harnesses is None:
            raise SandboxError("the sandbox is switched off")
        return self.harnesses.prepared(checkout, command, self.repository, self.config.reproduce)
