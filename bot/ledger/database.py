"""One database by URL: SQLite in WAL mode for one machine, PostgreSQL for several. No other server."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import Insert as SqliteInsert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError

from bot.errors import SettingsError
from bot.ledger.locks import AdvisoryLocks, FileLocks, Locks

#: How long a statement waits for SQLite's write lock, seconds.
BUSY_SECONDS = 15.0
#: How long opening a connection to PostgreSQL may take, seconds.
CONNECT_SECONDS = 3


class Database:
    """An engine, its dialect's differences, and locks that outlive no process."""

    def __init__(self, engine: Engine, locks: Locks) -> None:
        self.engine = engine
        self.locks = locks

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file on this machine."""
        return self.engine.dialect.name == "sqlite"

    @property
    def url(self) -> str:
        """The URL, password included: for handing on, never for showing."""
        return self.engine.url.render_as_string(hide_password=False)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes; on SQLite it takes the write lock at once, so it cannot fail half-way."""
        with self.engine.connect().execution_options(immediate=True) as connection, connection.begin():
            yield connection

    def insert(self, table: Table) -> SqliteInsert | PostgresInsert:
        """An INSERT that knows ON CONFLICT."""
        return sqlite_insert(table) if self.is_sqlite else postgres_insert(table)

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()


def open_database(url: str, *, busy_seconds: float = BUSY_SECONDS, pool_size: int = 10) -> Database:
    """The database at ``url`` (sqlite:///FILE or postgresql://...), reachable but not yet migrated.

    Raises SettingsError with one line that never shows a password.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise SettingsError(
            "DATABASE_URL: not a URL such as sqlite:///bouncer.db or postgresql://host/name"
        ) from None
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed, busy_seconds, pool_size)
    if parsed.get_backend_name() == "postgresql":
        return _open_postgres(parsed, pool_size)
    raise SettingsError(f"DATABASE_URL: {parsed.drivername} is neither sqlite nor postgresql")


def _open_sqlite(url: URL, busy_seconds: float, pool_size: int) -> Database:
    if not url.database or url.database == ":memory:":
        raise SettingsError("DATABASE_URL: sqlite needs a file, as in sqlite:///bouncer.db")
    file = Path(url.database).absolute()
    _write_ahead(file, busy_seconds)
    engine = create_engine(
        url.set(drivername="sqlite+pysqlite", database=str(file)),
        pool_size=pool_size,
        max_overflow=10,
        connect_args={"timeout": busy_seconds, "check_same_thread": False},
    )
    event.listen(engine, "connect", _no_implicit_transactions)
    event.listen(engine, "begin", _begin)
    return Database(engine, FileLocks(file.with_name(f"{file.name}-locks")))


def _write_ahead(file: Path, seconds: float) -> None:
    """Set WAL mode, which stays with the file: readers and the one writer do not wait for each other any more."""
    deadline = time.monotonic() + seconds
    # The change needs the file for itself, and SQLite does not wait for that on its own.
    while True:
        try:
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                return
        except sqlite3.Error as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise SettingsError(f"DATABASE_URL: cannot open {file}: {error}") from None
            time.sleep(0.02)


def _no_implicit_transactions(connection: Any, _record: Any) -> None:
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _open_postgres(url: URL, pool_size: int) -> Database:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=10,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_SECONDS, "application_name": "bouncer"},
    )
    try:
        with engine.connect():
            pass
    except OperationalError as error:
        why = str(error.orig).strip().splitlines()[0][:200]
        raise SettingsError(
            f"DATABASE_URL: cannot reach PostgreSQL at {url.host or 'the local socket'}: {why}"
        ) from None
    return Database(engine, AdvisoryLocks(engine))
