"""Files and folders that settings name: data, prompts, prices, the App's key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bot import app
from bot.cli.doctor.diagnosis import Diagnosis, fail, note, ok
from bot.errors import SettingsError
from bot.ops.settings import Settings


def files(settings: Settings) -> Iterator[Diagnosis]:
    """Whether they are there and can be used."""
    yield _writable("data folder", settings.bouncer_data_dir)
    yield _prompts(settings)
    yield _prices(settings)
    yield from _key(settings)


def _writable(subject: str, folder: Path) -> Diagnosis:
    """A folder that is not there yet is made later: its nearest parent counts."""
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        return fail(
            subject, f"{nearest} is no folder that can be written to", "set BOUNCER_DATA_DIR to one that can"
        )
    if folder.exists() and folder.stat().st_mode & 0o077:
        return note(subject, f"{folder} is open to other users of this machine", f"chmod 700 {folder}")
    return ok(subject, f"{folder}{'' if folder.exists() else ' (made when needed)'}")


def _prompts(settings: Settings) -> Diagnosis:
    try:
        names = app.prompts(settings).names()
    except SettingsError as error:
        return fail("prompts", str(error))
    return ok("prompts", f"{len(names)} prompts, {settings.bouncer_prompts_dir or 'as packaged'}")


def _prices(settings: Settings) -> Diagnosis:
    from bot.models.budget import load_prices

    try:
        table = load_prices(settings.bouncer_prices_file)
    except SettingsError as error:
        return fail("prices", str(error))
    return ok("prices", f"{len(table.models)} models, {settings.bouncer_prices_file or 'as packaged'}")


def _key(settings: Settings) -> Iterator[Diagnosis]:
    from bot.forge.github import load_key

    try:
        key = settings.private_key()
        if key is None:
            return
        load_key(key, settings.private_key_source)
    except SettingsError as error:
        yield fail("private key", str(error), "download a new one from the App's settings on GitHub")
    else:
        yield ok("private key", "can be read")
