"""The areas that are examined, in the order in which one thing needs another."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

from bot.ops.doctor.files import files
from bot.ops.doctor.finding import Finding
from bot.ops.doctor.github import github
from bot.ops.doctor.model import models
from bot.ops.doctor.sandbox import sandbox
from bot.ops.doctor.storage import database
from bot.ops.doctor.variables import variables
from bot.ops.settings import Settings

Check = Callable[[Settings], Iterator[Finding]]

AREAS: Mapping[str, Check] = {
    "settings": variables,
    "files": files,
    "database": database,
    "github": github,
    "model": models,
    "sandbox": sandbox,
}


def examine(settings: Settings, skip: Container[str] = ()) -> Iterator[Finding]:
    """All findings, as they are made; areas in ``skip`` are left out."""
    for area, check in AREAS.items():
        if area not in skip:
            yield from check(settings)
