"""The declaration of a feature. Every table about features is derived from these declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.core.actions import Decision, Record, Task
from bot.core.commands import Command, SlashCommand
from bot.core.config import RepoConfig
from bot.core.events import Event
from bot.features.services import Services
from bot.features.shared.posts import Posts


def is_wanted(decision: Decision, config: RepoConfig) -> bool:
    """Return False if the section of a decision's feature is off or in shadow mode."""
    # An answer that says that it is switched off has no verdict.
    return not decision.verdict or config.mode(decision.kind) not in ("off", "shadow")


@dataclass(frozen=True)
class Feature:
    """One behaviour of the bot: what it listens to, what it needs, and the function that decides."""

    name: Task
    handle: Callable[[Any, Services], Decision | None]
    """Takes an event of one of the types in ``events``; its tools, if any, are bound. None: nothing to decide."""
    events: tuple[type[Event], ...]
    record: type[Record]
    """The type of ``Decision.record``: what its decisions leave for later ones."""
    concerns: Callable[[Any, Sequence[Command]], bool]
    """Return True if an event of those types may need a decision, from it and its commands alone."""
    commands: tuple[SlashCommand, ...] = ()
    """Commands that the feature answers, in the order of ``/bouncer help``."""
    standing: Callable[[Posts], Iterable[Decision]] | None = None
    """Yield earlier decisions as our posts show them, for a run without a database."""
    after: tuple[Task, ...] = ()
    """Features that decide about the same event first."""
    supersedes: Callable[[Event, Event], bool] = lambda newer, older: False
    """Return True if a job for the older event has nothing left to do once the newer one happened."""
    debounces: tuple[type[Event], ...] = ()
    """Events that are often followed by another one that supersedes them: their jobs start a little later."""
    checks_staleness: bool = True
    """Actions are dropped if the subject changed since the decision."""
    is_wanted: Callable[[Decision, RepoConfig], bool] = is_wanted
    """Return False if actions are dropped because the feature was switched off since the decision."""
    judges: bool = False
    """Its verdicts come from a closed set: they are counted by label, and operators are notified of them."""
    executes: bool = False
    """It runs the repository's code, so it never runs without a sandbox of our own."""
    permissions: Mapping[str, str] = field(default_factory=dict)
    """GitHub permissions that its actions need, as in app.yml: ``{"issues": "write"}``."""

    @property
    def only_answers(self) -> bool:
        """Return True if all that it does is to answer commands, without judging or running anything."""
        return bool(self.commands) and not self.judges and not self.executes


def same_text(*types: type[Event]) -> Callable[[Event, Event], bool]:
    """Return a ``supersedes`` for events that all carry the whole subject, so that the newest is enough."""
    return lambda newer, older: isinstance(newer, types) and isinstance(older, types)
