"""The command-line twin of every setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from bot.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def settings_options(command: F) -> F:
    """One option for each setting, given to the command by the setting's name; None where it was not used.

    ``--model`` for BOUNCER_MODEL, ``--database-url`` for DATABASE_URL, and so on.
    """
    for name, field in reversed(Settings.model_fields.items()):
        flag = f"--{name.removeprefix('bouncer_').replace('_', '-')}"
        text = f"{field.description or ''} [{name.upper()}]".strip()
        if field.annotation is bool:
            option = click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text)
        else:
            option = click.option(flag, name, default=None, metavar="VALUE", help=text)
        command = option(command)
    return command
