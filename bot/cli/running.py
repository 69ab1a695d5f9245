"""What the long-running commands share: settings, logs that show none of their secrets, and traces."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from bot.errors import DatabaseAway

if TYPE_CHECKING:
    from bot.ops.settings import Settings
    from bot.store.database import Database

_log = structlog.get_logger(__name__)


def load_settings(**overrides: Any) -> Settings:
    """The settings, of a ``.env`` file in the working directory too; raises SettingsError."""
    from bot.ops import settings

    loaded = settings.load(env_file=Path(".env"), **overrides)
    observe(loaded)
    return loaded


def observe(settings: Settings) -> None:
    """Let this process log without its secrets, and send traces where they are wanted. Each process does it."""
    configure_logs(settings)
    if settings.otel_exporter_otlp_endpoint:
        from bot.core import tracing

        tracing.configure(settings.otel_exporter_otlp_endpoint)


def configure_logs(settings: Settings) -> None:
    """Log to standard error, secrets taken out."""
    from bot.ops import logs

    logs.configure(settings.log_level, settings.secrets)


def opened_database(settings: Settings) -> Database:
    """The database at a start, waited for: what comes up together with it may be the first to be there.

    Raises SettingsError for one that is wrong, or not there after BOUNCER_DATABASE_SECONDS.
    """
    from bot.store import open_database

    deadline = time.monotonic() + settings.bouncer_database_seconds
    while True:
        try:
            return open_database(settings.database_url)
        except DatabaseAway as error:
            if time.monotonic() >= deadline:
                raise
            _log.warning("database_awaited", why=str(error).splitlines()[0])
            time.sleep(1.0)
