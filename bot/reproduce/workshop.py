"""What tests of a repository are run with: its own command and limits, in the operator's sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import SandboxError
from bot.reproduce.command import TestCommand
from bot.reproduce.execution import Harness
from bot.sandbox.protocol import Limits
from bot.services import Services


@contextmanager
def harness(services: Services, checkout: Path, command: TestCommand) -> Iterator[Harness]:
    """A harness for a checkout of the default branch (or of a base that is on it); raises SandboxError."""
    if services.sandbox is None:
        raise SandboxError("the sandbox is switched off")
    seconds = services.config.reproduce.seconds
    yield Harness(services.sandbox, command, limits=Limits(seconds=seconds, cpu_seconds=seconds))
