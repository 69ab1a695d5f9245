"""What stands between an operator and a working Bouncer: one diagnosis a line, with its remedy.

The areas are examined in the order in which one thing needs another.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

from bot.cli.doctor.diagnosis import Diagnosis
from bot.cli.doctor.machine import database, files, sandbox, variables
from bot.cli.doctor.remote import github, models
from bot.ops.settings import Settings

Check = Callable[[Settings], Iterator[Diagnosis]]

AREAS: Mapping[str, Check] = {
    "settings": variables,
    "files": files,
    "database": database,
    "github": github,
    "model": models,
    "sandbox": sandbox,
}


def examine(settings: Settings, skip: Container[str] = ()) -> Iterator[Diagnosis]:
    """All findings, as they are made; areas in ``skip`` are left out."""
    for area, check in AREAS.items():
        if area not in skip:
            yield from check(settings)
