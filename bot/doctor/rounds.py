"""The areas that are examined, in the order in which one thing needs another."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

from bot.doctor.files import files
from bot.doctor.finding import Finding
from bot.doctor.github import github
from bot.doctor.model import models
from bot.doctor.sandbox import sandbox
from bot.doctor.storage import database
from bot.doctor.variables import variables
from bot.settings import Settings

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
