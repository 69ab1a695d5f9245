"""Making the tables, and bringing them up to date, at start, by whichever process comes first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from sqlalchemy import Column, MetaData, String, Table, select
from sqlalchemy.exc import DBAPIError

from bot.errors import DatabaseAway, OperatorError
from bot.store.database import Database, open_database
from bot.store.locks import held
from bot.store.tables import METADATA

#: The newest migration; alembic itself is imported only where this one is not in place yet.
HEAD = "0007"
#: As alembic makes it, under a name of ours.
VERSION = Table("bouncer_version", MetaData(), Column("version_num", String(32), primary_key=True))
MIGRATIONS = Path(__file__).parent / "migrations"

#: How long one process waits for another's migration, seconds.
TIMEOUT = 120.0
#: The longest pause between two looks for a database that is away, seconds.
LONGEST_PAUSE_SECONDS = 10.0

_log = structlog.get_logger(__name__)


def version(database: Database) -> str | None:
    """The migration that the database stands at; None before the first."""
    try:
        with database.read() as connection:
            return connection.scalar(select(VERSION.c.version_num))
    except DBAPIError:
        return None


def migrate(database: Database) -> None:
    """Make the tables, or bring them up to date; safe where several processes start at once.

    Raises OperatorError where a newer version of the program has been here.
    """
    if version(database) == HEAD:
        return
    with held(database.locks, "migrate", TIMEOUT):
        present = version(database)
        if present is None:
            _create(database)
        elif present not in known():
            raise OperatorError(
                f"the database is at version {present}, which only a newer Bouncer knows: upgrade it"
            )
        elif present != HEAD:
            _upgrade(database, present)


@contextmanager
def migrated(url: str, *, must_exist: bool = False) -> Iterator[Database]:
    """The database at ``url``, up to date, for a block. Raises what ``open_database`` and ``migrate`` raise."""
    database = open_database(url, must_exist=must_exist)
    try:
        migrate(database)
        yield database
    finally:
        database.close()


def await_database(url: str, stop: threading.Event) -> Database | None:
    """The migrated database, waited for as long as it cannot be reached; None where ``stop`` was set meanwhile.

    For a process that is started again during an outage: its settings were right before.
    """
    pause = 0.5
    while True:
        database = None
        try:
            database = open_database(url)
            migrate(database)
            return database
        except (DatabaseAway, DBAPIError, TimeoutError) as error:
            if database is not None:
                database.close()
            _log.warning("database_away", error=str(error).splitlines()[0], again_in=pause)
            if stop.wait(pause):
                return None
            pause = min(LONGEST_PAUSE_SECONDS, 2 * pause)


def known() -> frozenset[str]:
    """The versions that this program can come from."""
    return frozenset(file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def _create(database: Database) -> None:
    with database.write() as connection:
        # A table that stands already is no new database's: better an error than a wrong version.
        METADATA.create_all(connection, checkfirst=False)
        VERSION.create(connection)
        connection.execute(VERSION.insert(), {"version_num": HEAD})


def _upgrade(database: Database, present: str) -> None:
    # Imported late: most starts find nothing to do.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    missing = [*ScriptDirectory(str(MIGRATIONS)).iterate_revisions(HEAD, present)]
    with database.write() as connection, Operations.context(MigrationContext.configure(connection)):
        for revision in reversed(missing):
            revision.module.upgrade()
        connection.execute(VERSION.update(), {"version_num": HEAD})
