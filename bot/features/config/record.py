"""The record of a check of ``bouncer.yml``."""

from __future__ import annotations

from bot.core.actions import Record


class ConfigRecord(Record):
    """Problems of a version of ``bouncer.yml``."""

    problems: tuple[str, ...] = ()
