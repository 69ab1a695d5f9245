"""The database: reachable, and at which version. Nothing is created or changed by looking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.engine import make_url

from bot.cli.doctor.diagnosis import Diagnosis, fail, note, ok
from bot.errors import SettingsError
from bot.ops.settings import Settings
from bot.store.database import database_at, open_database
from bot.store.migrate import HEAD, known, version


def database(settings: Settings) -> Iterator[Diagnosis]:
    """Reachable, migrated."""
    try:
        place = database_at(settings.database_url).engine.url
        if place.get_backend_name() == "sqlite" and not Path(str(place.database)).exists():
            yield _to_be_made(Path(str(place.database)))
            return
        opened = open_database(settings.database_url, busy_seconds=3.0)
    except SettingsError as error:
        yield fail("database", str(error), "check DATABASE_URL, and that the server runs")
        return
    try:
        present = version(opened)
    finally:
        opened.close()
    shown = make_url(settings.database_url).render_as_string(hide_password=True)
    yield ok("database", f"{shown} can be reached")
    yield _version(present)


def _to_be_made(file: Path) -> Diagnosis:
    if not file.parent.is_dir():
        return fail("database", f"there is no folder {file.parent}", "make it, or set DATABASE_URL")
    return note("database", f"{file} is not there yet: it is made at the first start")


def _version(present: str | None) -> Diagnosis:
    if present == HEAD:
        return ok("migrations", f"at {present}, up to date")
    if present is None:
        return note("migrations", "none yet: they run at the first start")
    if present in known():
        return note("migrations", f"at {present}, {HEAD} is new: it runs at the next start", "back up first")
    return fail("migrations", f"at {present}, which only a newer Bouncer knows", "upgrade Bouncer")
