"""The command-line twin of every setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click
from pydantic import SecretStr
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from bot.errors import SettingsError
from bot.ops.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def settings_options(command: F) -> F:
    """One option for each setting, given to the command by the setting's name; None where it was not used.

    ``--model`` for BOUNCER_MODEL, ``--database-url`` for DATABASE_URL, and so on. Secrets have none: every user of
    the machine can read the command lines of its processes.
    """
    for name, field in reversed(Settings.model_fields.items()):
        if SecretStr in (field.annotation, *get_args(field.annotation)):
            continue
        flag = f"--{name.removeprefix('bouncer_').replace('_', '-')}"
        text = f"{field.description or ''} [{name.upper()}]".strip()
        if field.annotation is bool:
            option = click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text)
        else:
            check = without_password if name == "database_url" else None
            option = click.option(flag, name, default=None, metavar="VALUE", callback=check, help=text)
        command = option(command)
    return command


def without_password(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    """Refuse a database URL on the command line that shows a password; raises SettingsError."""
    try:
        shown = url is not None and make_url(url).password
    except (ArgumentError, ValueError):
        # The port and a host in brackets are read as plain Python does it; the settings say what is wrong.
        shown = None
    if shown:
        raise SettingsError(
            "--database-url: a password on the command line can be read by everybody on this machine; "
            "put the URL into DATABASE_URL"
        )
    return url
