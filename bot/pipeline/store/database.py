"""One database by URL: SQLite in WAL mode for one machine, PostgreSQL for several. No other server.

Its locks are exclusive, and the operating system or the server frees them when their holder dies. A lease would
have to guess how long a worker may be silent; these need no guess: kill -9 frees them at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Executable,
    Row,
    Table,
    create_engine,
    event,
    extract,
    func,
    literal,
    text,
)
from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import Insert as SqliteInsert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from bot.core.errors import DatabaseAway, SettingsError
from bot.core.redaction import REDACTED

#: How long a statement waits for SQLite's write lock, seconds.
BUSY_SECONDS = 15.0
#: How long it sleeps between two looks at the lock, seconds: a commit takes one to two thousandths.
BACK_OFF_SECONDS = 0.0005
#: How long opening a connection to PostgreSQL may take, seconds.
CONNECT_SECONDS = 3
#: Shorter secrets are too likely to be a part of ordinary text.
SHORTEST_SECRET = 8
#: The most connections. All are kept: a busy worker would open and close ten a second beyond a smaller pool.
POOL = 20
#: Otherwise each connection keeps the texts of up to 200 statements.
NO_PREPARED_STATEMENTS = {"prepare_threshold": None}
#: Ours among the advisory locks of a database that others may share: the bytes of "bncr".
CLASS = 0x626E6372
#: How long one process waits for another's migration, seconds.
MIGRATION_SECONDS = 120.0


class Database:
    """An engine, the differences of its dialect, and locks that end with their process."""

    def __init__(self, engine: Engine, take_lock: Callable[[str], HeldLock | None]) -> None:
        """``take_lock`` takes the lock of a name, and returns None if it is held."""
        self.engine = engine
        #: Returns the time of this process, seconds since 1970.
        self.clock: Callable[[], float] = time.time
        self._reading = engine if self.is_sqlite else engine.execution_options(isolation_level="AUTOCOMMIT")
        self.take_lock = take_lock
        #: Returns the secrets that are replaced in everything that is written, so that one in a text does not
        #: reach backups. It is called at every statement.
        self.withheld: Callable[[], Collection[str]] = tuple
        event.listen(engine, "before_cursor_execute", self._without_secrets, retval=True)

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    def now(self) -> ColumnElement[Any]:
        """Return the time by the database's clock, seconds since 1970: those of its clients may differ."""
        if self.is_sqlite:
            return literal(time.time())
        return extract("epoch", func.clock_timestamp())

    @property
    def url(self) -> str:
        """The URL with its password: never show it."""
        return self.engine.url.render_as_string(hide_password=False)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads; on PostgreSQL one per query, which ends without a round trip."""
        with self._reading.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that writes; on SQLite it takes the write lock first, so it cannot fail half-way."""
        with self.engine.connect().execution_options(immediate=True) as connection, connection.begin():
            yield connection

    def rows(self, query: Executable) -> Sequence[Row[Any]]:
        with self.read() as connection:
            return connection.execute(query).all()

    def scalars(self, query: Executable) -> Sequence[Any]:
        with self.read() as connection:
            return connection.scalars(query).all()

    def row(self, query: Executable) -> Row[Any] | None:
        """Return the only row of one query, if it has one."""
        with self.read() as connection:
            return connection.execute(query).one_or_none()

    def scalar(self, query: Executable) -> Any:
        with self.read() as connection:
            return connection.scalar(query)

    def execute(self, statement: Executable, values: Mapping[str, Any] | None = None) -> int:
        """Run one statement that writes, and return the number of its rows."""
        with self.write() as connection:
            return connection.execute(statement, values).rowcount

    def insert(self, table: Table) -> SqliteInsert | PostgresInsert:
        """Return an INSERT of the dialect, which supports ON CONFLICT."""
        return sqlite_insert(table) if self.is_sqlite else postgres_insert(table)

    def cut(self, text: str) -> str:
        """Return a text without withheld secrets, for writers that use other connections."""
        return str(_cut(text, _forms(self.withheld)))

    def close(self) -> None:
        self.engine.dispose()

    def _without_secrets(
        self, _connection: Connection, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
    ) -> tuple[str, Any]:
        if statement.lstrip()[:6].upper() not in ("INSERT", "UPDATE"):
            return statement, parameters
        return statement, _cut(parameters, _forms(self.withheld))


class Part:
    """A part of the storage, in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database


def open_database(url: str, *, busy_seconds: float = BUSY_SECONDS, must_exist: bool = False) -> Database:
    """Connect to the database at ``url`` (sqlite:///FILE or postgresql://...), which may not be migrated yet.

    A missing SQLite file is created unless it ``must_exist``. Raises SettingsError with one line that never shows
    a password, and DatabaseAway if the server does not answer.
    """
    database = database_at(url, busy_seconds=busy_seconds)
    if database.is_sqlite:
        file = str(database.engine.url.database)
        if must_exist and not Path(file).is_file():
            fault = "is not a file" if Path(file).exists() else "does not exist"
            raise SettingsError(
                f"DATABASE_URL: {file} {fault}; if the server reads its settings from a file, "
                "name it with --env-file"
            )
        _write_ahead(file, busy_seconds)
        return database
    try:
        with database.engine.connect():
            pass
    except DBAPIError as error:
        where = database.engine.url.host or "the local socket"
        why = str(error.orig).strip().splitlines()[0][:200]
        raise DatabaseAway(f"DATABASE_URL: cannot reach PostgreSQL at {where}: {why}") from None
    return database


def database_at(url: str, *, busy_seconds: float = BUSY_SECONDS) -> Database:
    """Return the database at ``url``; it connects at the first statement."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # ValueError: of a port, or a host in brackets.
        raise SettingsError(
            "DATABASE_URL: not a URL such as sqlite:///bouncer.db or postgresql://host/name"
        ) from None
    match parsed.get_backend_name():
        case "sqlite":
            return _sqlite(parsed, busy_seconds)
        case "postgresql" | "postgres":
            return _postgres(parsed)
    raise SettingsError("DATABASE_URL: must start with sqlite:/// or postgresql://")


def _forms(secrets: Callable[[], Collection[str]]) -> list[str]:
    long_enough = [secret for secret in secrets() if len(secret) >= SHORTEST_SECRET]
    # Inside of JSON they are escaped.
    forms = {form for secret in long_enough for form in (secret, json.dumps(secret)[1:-1])}
    return sorted(forms, key=len, reverse=True)


def _cut(value: Any, forms: list[str]) -> Any:
    if isinstance(value, str):
        for form in forms:
            if form in value:
                value = value.replace(form, REDACTED)
        return value
    if isinstance(value, list | tuple):
        return type(value)(_cut(item, forms) for item in value)
    if isinstance(value, dict):
        return {name: _cut(item, forms) for name, item in value.items()}
    return value


def _sqlite(url: URL, busy_seconds: float) -> Database:
    if not url.database or url.database == ":memory:":
        raise SettingsError("DATABASE_URL: sqlite needs a file, as in sqlite:///bouncer.db")
    file = Path(url.database).absolute()
    engine = create_engine(
        url.set(drivername="sqlite+pysqlite", database=str(file)),
        pool_size=POOL,
        max_overflow=0,
        connect_args={"timeout": busy_seconds, "check_same_thread": False, "isolation_level": None},
    )
    event.listen(engine, "begin", partial(_begin, busy_seconds))
    return Database(engine, partial(_lock_file, file.with_name(f"{file.name}-locks")))


@event.listens_for(Engine, "connect")
def _register_unixepoch(connection: object, _record: object) -> None:
    """Give an older SQLite ``unixepoch('subsec')``, which dbos asks of it from Python 3.12 on: it is new in 3.42.

    dbos makes engines of its own, so this is a listener for all of them.
    """
    if isinstance(connection, sqlite3.Connection) and sqlite3.sqlite_version_info < (3, 42):
        connection.create_function("unixepoch", 1, lambda _: time.time())


def _write_ahead(file: str, seconds: float) -> None:
    """Set WAL mode, which is stored in the file: readers and the one writer do not wait for each other."""
    # Private. SQLite gives the files beside it the same mode, and reports what is wrong with the path.
    with suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    for name in (file, f"{file}-wal", f"{file}-shm"):
        close_to_others(Path(name))
    deadline = time.monotonic() + seconds
    # The change needs exclusive access, for which SQLite does not wait.
    while True:
        try:
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                return
        except sqlite3.Error as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise SettingsError(f"DATABASE_URL: cannot open {file}: {error}") from None
            time.sleep(0.02)


def close_to_others(place: Path) -> None:
    """Remove the rights of others on a file or folder that was made by hand or by an older version.

    A group with write access was let in on purpose, and keeps its rights.
    """
    with suppress(OSError):  # missing, or on a file system without permissions
        facts = place.stat()
        others = 0o007 if facts.st_mode & 0o020 else 0o077
        if facts.st_uid == os.geteuid() and facts.st_mode & others:
            place.chmod(stat.S_IMODE(facts.st_mode) & ~others)


def _begin(busy_seconds: float, connection: Connection) -> None:
    """Begin a transaction; one that writes takes the write lock at once, and waits up to ``busy_seconds`` for it.

    SQLite's own wait sleeps up to 100 ms at a time, which makes commits slow.
    """
    if not connection.get_execution_options().get("immediate", False):
        connection.exec_driver_sql("BEGIN")
        return
    raw: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    deadline = time.monotonic() + busy_seconds
    raw.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                raw.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                # The low byte: an extended code says that the log is being recovered.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise OperationalError("BEGIN IMMEDIATE", None, error) from None
            time.sleep(BACK_OFF_SECONDS)
    finally:
        raw.execute(f"PRAGMA busy_timeout={int(busy_seconds * 1000)}")


def _postgres(url: URL) -> Database:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=POOL,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "bouncer",
            "tcp_user_timeout": 10_000,
            **NO_PREPARED_STATEMENTS,
        },
    )
    return Database(engine, partial(_lock_session, engine))


def _lock_file(folder: Path, name: str) -> HeldFile | None:
    """Take ``flock`` on a file in a folder beside the SQLite file. Children do not inherit the descriptor."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / re.sub(r"[^A-Za-z0-9_-]", "-", name)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return HeldFile(descriptor)


class HeldFile:
    """A lock that this process holds for as long as it lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def alive(self) -> bool:
        return True

    def release(self) -> None:
        # The file stays: to remove it would let two processes lock two files of one name.
        os.close(self._descriptor)


def _lock_session(engine: Engine, name: str) -> HeldSession | None:
    """Take one of PostgreSQL's session locks, on a connection of its own."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)
    # Detached from the pool: the lock belongs to this connection.
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()
    if not connection.scalar(text("SELECT pg_try_advisory_lock(:class, :key)"), {"class": CLASS, "key": key}):
        connection.close()
        return None
    return HeldSession(connection)


class HeldSession:
    """A lock that is lost with the connection to the server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session = connection.connection.driver_connection
        self._lost = False

    def alive(self) -> bool:
        """Return True if the lock is still ours."""
        # A lost lock stays lost: the next statement would open a new connection without it.
        if not self._lost:
            try:
                self._connection.scalar(text("SELECT 1"))
            except DBAPIError:
                self._lost = True
        return not self._lost

    def release(self) -> None:
        self._connection.close()
        # SQLAlchemy drops a broken connection without closing it.
        if self._session is not None:
            self._session.close()


HeldLock = HeldFile | HeldSession


@contextmanager
def migrating(database: Database) -> Iterator[None]:
    """Hold the lock of those who create or upgrade tables, waiting for it. Raises TimeoutError."""
    deadline = time.monotonic() + MIGRATION_SECONDS
    while (lock := database.take_lock("migrate")) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process migrates the database for more than {MIGRATION_SECONDS:.0f} s")
        time.sleep(0.05)
    try:
        yield
    finally:
        lock.release()
