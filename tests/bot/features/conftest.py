"""Services around a scripted model and a snapshot, and a history that remembers what the test decided."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.core.actions import Decision, SetCheck, Task
from bot.core.config_file import load
from bot.core.events import Event
from bot.core.subjects import Subject
from bot.features.reproduce.record import ReproduceRecord, StoredTest
from bot.features.services import NoHistory, Services
from bot.github.offline import ReplayForge, Snapshot
from bot.models.prompts import Prompts
from bot.models.protocol import Model
from bot.reproduction.setup import Environments, SandboxHarnesses
from bot.router import SLASH_COMMANDS, decide
from bot.sandbox.protocol import Sandbox
from tests.builders import REPOSITORY

#: Builds services; the arguments are those of the fixture ``services``.
Build = Callable[..., Services]
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


class Remembered(NoHistory):
    """A history that a test fills with the decisions it made."""

    counts_authors = True

    def __init__(self) -> None:
        self.past: list[Decision] = []

    def decisions(self, subject: str, *kinds: Task) -> tuple[Decision, ...]:
        return tuple(
            decision
            for decision in self.past
            if decision.subject.key == subject and (not kinds or decision.kind in kinds)
        )

    def commands(self, repository: str, since: datetime) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.past if decision.kind == "commands")


def reproduced_by(
    number: int, content: str, sha: str, failure: tuple[str, str] = ("", ""), **values: Any
) -> Decision:
    """Build the decision on an issue that a test reproduced; ``failure`` is the exception's type and message."""
    test = StoredTest(
        path="test_issue.py",
        name=f"test_issue_{number}",
        content=content,
        code=content,
        new_file=True,
        command=(sys.executable, "-m", "pytest", "{tests}"),
        branch="main",
        sha=sha,
        exception_type=failure[0],
        message=failure[1],
    )
    return Decision(
        kind="reproduce",
        subject=Subject(repository=REPOSITORY.full_name, number=number, revision="text:1"),
        verdict="reproduced",
        record=ReproduceRecord(at=1.0, test=test),
        **values,
    )


def decision_on(event: Event, services: Services, task: Task) -> Any:
    """Return the decision of one feature about an event; None if it has none."""
    return next(iter(decide(event, services, only=task)), None)


def check_of(decision: Decision | None) -> SetCheck:
    """Return the check run, the only action of a decision."""
    (check,) = decision.actions
    assert isinstance(check, SetCheck)
    return check


#: For configurations without a set-up, which write nothing there.
NO_ENVIRONMENTS = Environments(Path("/nonexistent"))


@pytest.fixture
def history() -> Remembered:
    return Remembered()


@pytest.fixture
def services(history: Remembered) -> Build:
    def build(
        model: Model,
        snapshot: Snapshot,
        config: str = "",
        sandbox: Sandbox | None = None,
        environments: Environments = NO_ENVIRONMENTS,
        **values: Any,
    ) -> Services:
        settings, problems = load(config)
        return Services(
            commands=SLASH_COMMANDS,
            forge=ReplayForge(snapshot),
            model=model,
            config=settings,
            history=history,
            repository=REPOSITORY,
            config_problems=problems,
            harnesses=SandboxHarnesses(sandbox, environments) if sandbox else None,
            **{"clock": lambda: NOON, "prompts": Prompts(), **values},
        )

    return build
