"""The operator's settings: one line each, secrets by their presence only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import SecretStr

from bot.cli.doctor.diagnosis import Diagnosis, fail, note, ok
from bot.models.registry import carries_signal
from bot.ops.settings import Settings

#: Without them ``bouncer serve`` accepts no delivery.
_SET_UP = "create the app with `bouncer serve` at /setup, or set it"
_PASSWORD = re.compile(r"(://[^:/@]*):[^@]*@")


def variables(settings: Settings) -> Iterator[Diagnosis]:
    """Every setting, with what is missing or worth knowing about it."""
    for name in Settings.model_fields:
        yield _special(name, settings) or ok(name.upper(), _shown(name, settings))


def _special(name: str, settings: Settings) -> Diagnosis | None:
    value, variable = getattr(settings, name), name.upper()
    if name == "github_app_id" and value is None:
        return fail(variable, "not set", _SET_UP)
    if name == "bouncer_model" and not value:
        return fail(variable, "not set: nothing is judged or posted", "name a model, such as openai:gpt-5-mini")
    if name == "bouncer_model" and not carries_signal(value):
        return note(
            variable,
            f"{value}: no better than chance, so everything runs in shadow mode and nothing is posted",
            "name a real model",
        )
    if name == "github_webhook_secret" and not settings.webhook_secrets:
        return fail(variable, "not set: no delivery can be verified", _SET_UP)
    if name == "github_app_private_key" and value is None and settings.github_app_private_key_path is None:
        return fail(variable, "neither it nor GITHUB_APP_PRIVATE_KEY_PATH is set", _SET_UP)
    if name == "bouncer_admin_password" and value is None:
        return note(variable, "not set: there is no dashboard", "set it to open the dashboard at /")
    if name == "bouncer_paused" and value:
        return note(variable, "the kill switch is on: no model is asked and nothing is written")
    if name == "bouncer_daily_budget_usd" and value is None:
        return note(
            variable, "not set: models may cost any amount a day", "set it to the most that a day may cost"
        )
    if name == "github_webhook_secret" and len(min(settings.webhook_secrets, key=len)) < 16:
        return note(variable, "shorter than 16 characters: it can be guessed", "use a long random one")
    return None


def _shown(name: str, settings: Settings) -> str:
    value: Any = getattr(settings, name)
    if value is None:
        return "not set"
    if isinstance(value, SecretStr):
        count = len(settings.webhook_secrets) if name == "github_webhook_secret" else 1
        return "set" if count == 1 else f"{count} secrets set"
    text = _PASSWORD.sub(r"\1:***@", str(value))
    return text if name in settings.model_fields_set else f"{text} (default)"
