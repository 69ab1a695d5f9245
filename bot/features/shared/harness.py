"""Run a repository's tests on a checkout: with the operator's harness, or after the repository's own set-up."""

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
    """Return a harness for a checkout of the default branch, or of a base on it, after its set-up.

    Raises SandboxError if there is no sandbox or it fails, SetupFailed if a set-up command fails.
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
    with services.environments.prepared(services.sandbox, checkout, recipe) as environment:
        yield Harness(services.sandbox, command, env=environment.env, readable=environment.readable, limits=limits)
