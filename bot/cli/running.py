"""What the long-running commands share: settings, an option for each, logs that show no secrets, and traces."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
import structlog
from pydantic import SecretStr
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from bot.core.errors import DatabaseAway, SettingsError
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.pipeline.store.database import Database

F = TypeVar("F", bound=Callable[..., Any])

_log = structlog.get_logger(__name__)


def load_settings(*, traces: bool = True, **overrides: Any) -> Settings:
    """The settings, of a ``.env`` file in the working directory too; raises SettingsError."""
    from bot import settings

    loaded = settings.load(env_file=Path(".env"), **overrides)
    observe(loaded, traces=traces)
    return loaded


def observe(settings: Settings, *, traces: bool = True) -> None:
    """Let this process log without its secrets, and send traces where they are wanted. Each process does it."""
    from bot.cli import logs

    logs.configure(settings.log_level, settings.secrets)
    if traces and settings.otel_exporter_otlp_endpoint:
        from bot.core import tracing

        tracing.configure(settings.otel_exporter_otlp_endpoint)


def stopped() -> threading.Event:
    """Set by SIGTERM and SIGINT from now on."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def opened_database(settings: Settings) -> Database:
    """The database at a start, waited for: what comes up together with it may be the first to be there.

    Raises SettingsError for one that is wrong, or not there after BOUNCER_DATABASE_SECONDS.
    """
    from bot.pipeline.store import open_database

    deadline = time.monotonic() + settings.bouncer_database_seconds
    while True:
        try:
            return open_database(settings.database_url)
        except DatabaseAway as error:
            if time.monotonic() >= deadline:
                raise
            _log.warning("database_awaited", why=str(error).splitlines()[0])
            time.sleep(1.0)


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
