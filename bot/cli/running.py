"""What the long-running commands share: settings, logs that show none of their secrets, and traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.ops.settings import Settings


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

    logs.configure(settings.log_level, secrets_of(settings))


def withheld(settings: Settings) -> tuple[str, ...]:
    """The secrets that are kept out of the database. Not passwords: a person's could be a word that we need."""
    secrets = (
        settings.bouncer_metrics_token,
        settings.openai_api_key,
        settings.anthropic_api_key,
    )
    key = settings.private_key()
    return (
        *settings.webhook_secrets,
        *(each.get_secret_value() for each in secrets if each),
        *((key,) if key else ()),
    )


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Every value that must never be seen, each in the forms in which it could turn up."""
    from pydantic import SecretStr
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    values = [
        value.get_secret_value()
        for name in type(settings).model_fields
        if isinstance(value := getattr(settings, name), SecretStr)
    ]
    try:
        password = make_url(settings.database_url).password
    except ArgumentError:
        password = None
    key = settings.private_key()
    return tuple(each for each in (*values, *settings.webhook_secrets, password, key) if each)
