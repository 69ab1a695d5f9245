"""How the tests of a repository are run on a checkout: the operator's harness, or its own set-up first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.core.errors import SandboxError
from bot.features.services import Services
from bot.reproduction.command import TestCommand
from bot.reproduction.execution import Harness
from bot.reproduction.setup import Recipe
from bot.sandbox.protocol import Limits


@contextmanager
def prepared(services: Services, checkout: Path, command: TestCommand) -> Iterator[Harness]:
    """A harness for a checkout of the default branch (or of a base that is on it), its set-up done.

    Raises SandboxError where there is no sandbox or it breaks, SetupFailed where a set-up command does.
    """
    if services.harness is not None:
        yield services.harness
        return
    if services.sandbox is None:
        raise SandboxError("the sandbox is switched off")
    config = services.config.reproduce
    limits = Limits(seconds=config.seconds, cpu_seconds=config.seconds)
    if services.environments is None or not config.setup:
        yield Harness(services.sandbox, command, limits=limits)
        return
    recipe = Recipe(repository=services.repository.id, python=config.python, commands=config.setup)
    with services.environments.prepared(services.sandbox, checkout, recipe) as made:
        yield Harness(services.sandbox, command, env=made.env, readable=made.readable, limits=limits)
