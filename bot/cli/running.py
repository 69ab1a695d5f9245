"""Shared by the long-running commands: settings and their options, logs without secrets, traces."""

from __future__ import annotations

import ctypes
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO, TypeVar, get_args

import click
import structlog
from pydantic import SecretStr
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from bot.core.errors import SettingsError
from bot.core.redaction import log_redactor
from bot.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

#: Libraries whose INFO messages are noise or advertisements.
_QUIET = ("alembic", "anthropic", "dbos", "github", "gunicorn.access", "httpx2", "openai", "sqlalchemy", "urllib3")


def load_settings(*, traces: bool = True, **overrides: Any) -> Settings:
    """Return the settings, including a ``.env`` file in the working directory. Raises SettingsError."""
    from bot import settings

    loaded = settings.load(env_file=Path(".env"), **overrides)
    observe(loaded, traces=traces)
    return loaded


def observe(settings: Settings, *, traces: bool = True) -> None:
    """Configure logs and traces of this process. Every process calls it once."""
    configure_logs(settings.log_level, settings.secrets)
    if traces and settings.otel_exporter_otlp_endpoint:
        from bot.core import tracing

        tracing.configure(settings.otel_exporter_otlp_endpoint)


def configure_logs(level: str, secrets: Iterable[str] = (), stream: TextIO | None = None) -> None:
    """Send everything that this process logs, libraries included, to ``stream`` (standard error).

    Text on a terminal, else one JSON object per line.

    ``secrets`` are the operator's own: they are redacted by value, whatever else looks like a credential by shape.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        log_redactor(secrets),
    ]
    number = logging.getLevelNamesMapping()[level]
    output = stream or sys.stderr
    renderer: Any = (
        structlog.dev.ConsoleRenderer(colors=False)
        if output.isatty()
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(output),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *shared[1:],
                renderer,
            ],
        )
    )
    logging.basicConfig(level=number, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def return_free_memory() -> None:
    """Return free pages inside glibc's heap to the system; glibc itself returns only those at its end."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def stopped() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set from now on."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def prepare_database(settings: Settings) -> None:
    """Bring the database up to date, waiting for it up to BOUNCER_DATABASE_SECONDS: it may start later.

    Raises SettingsError for a wrong URL, and DatabaseAway if it stays away.
    """
    from bot.pipeline.store import await_database

    never = threading.Event()
    if database := await_database(settings.database_url, never, settings.bouncer_database_seconds):
        database.close()


def settings_options(command: F) -> F:
    """Add an option per setting: ``--model`` for BOUNCER_MODEL, ``--database-url`` for DATABASE_URL, and so on.

    An unused option is None. Secrets have no option: every user of the machine can read command lines.
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
        password = make_url(url).password if url else None
    except (ArgumentError, ValueError):
        # The settings report what is wrong with the URL.
        password = None
    if password:
        raise SettingsError(
            "--database-url: a password on the command line can be read by every user of this machine; "
            "put the URL into DATABASE_URL"
        )
    return url
