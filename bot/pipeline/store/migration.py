"""Create the tables, or upgrade a database of version 0.1 or 0.2 in one step and one transaction.

Tables, columns and indexes that are missing are added; the jobs of version 0.1 are made anew. Decisions stay as
they were written: ``router.read_decision`` understands the old form.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import Column, Connection, Inspector, MetaData, String, Table, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateColumn

from bot.core.errors import DatabaseAway, OperatorError
from bot.pipeline.store.database import Database, migrating, open_database
from bot.pipeline.store.tables import METADATA, WORKERS

#: The version of the tables, and the older ones that can be upgraded: 0001 is release 0.1, 0007 release 0.2.
HEAD = "0013"
UPGRADABLE = frozenset(f"{number:04}" for number in range(1, int(HEAD)))
VERSION = Table("bouncer_version", MetaData(), Column("version_num", String(32), primary_key=True))

#: The longest pause between two looks for a database that is away, seconds.
LONGEST_PAUSE_SECONDS = 4.0

#: Version 0.1 kept the state of jobs in a table of ours. Jobs that had not ended are made anew from their
#: deliveries; their decisions are on record under the same ids, so nothing is asked or written twice.
_JOBS = (
    "UPDATE deliveries SET number ="
    " COALESCE((SELECT MAX(number) FROM jobs WHERE jobs.delivery = deliveries.id), 0)",
    "UPDATE deliveries SET problem = (SELECT MAX(task || ': ' || COALESCE(error, '')) FROM jobs"
    " WHERE jobs.delivery = deliveries.id AND state = 'dead')"
    " WHERE problem IS NULL AND id IN (SELECT delivery FROM jobs WHERE state = 'dead')",
    "UPDATE deliveries SET dispatched_at = NULL"
    " WHERE id IN (SELECT delivery FROM jobs WHERE state IN ('waiting', 'queued', 'running'))",
    "DROP TABLE jobs",
)
#: The name of the engine's workflows in version 0.1, which no worker can run any more.
_FIRST_WORKFLOW = "run_job"

_log = structlog.get_logger(__name__)


def version(database: Database) -> str | None:
    """Return the version of a database's tables, None if it is new. Raises DBAPIError."""
    with database.read() as connection:
        new = not inspect(connection).has_table(VERSION.name)
        return None if new else connection.scalar(select(VERSION.c.version_num))


def migrate(database: Database) -> None:
    """Create or upgrade the tables. Several processes may do so at once.

    Raises OperatorError if a newer version of the program wrote the database.
    """
    if version(database) == HEAD:
        return
    with migrating(database):
        present = version(database)
        if present is None:
            with database.write() as connection:
                # A new database has none of these tables: better an error than a wrong version.
                METADATA.create_all(connection, checkfirst=False)
                VERSION.create(connection)
                connection.execute(VERSION.insert(), {"version_num": HEAD})
        elif present != HEAD and present not in UPGRADABLE:
            raise OperatorError(
                f"the database is at version {present}, which only a newer Bouncer knows: upgrade it"
            )
        elif present != HEAD:
            with database.write() as connection:
                _upgrade(connection)
                connection.execute(VERSION.update(), {"version_num": HEAD})


@contextmanager
def migrated(url: str, *, must_exist: bool = False) -> Iterator[Database]:
    """Open and migrate a database for a block. Raises what ``open_database`` and ``migrate`` raise."""
    database = open_database(url, must_exist=must_exist)
    try:
        migrate(database)
        yield database
    finally:
        database.close()


def await_database(url: str, stop: threading.Event, seconds: float = math.inf) -> Database | None:
    """Return the migrated database. Wait while it cannot be reached, and return None if ``stop`` is set meanwhile.

    After ``seconds``, raises what ``open_database`` and ``migrate`` raise. They are infinite for a process that is
    started again during an outage: its settings were right before.
    """
    deadline, pause = time.monotonic() + seconds, 0.5
    while True:
        database = None
        try:
            database = open_database(url)
            migrate(database)
            return database
        except (DatabaseAway, DBAPIError, TimeoutError) as error:
            if database is not None:
                database.close()
            if time.monotonic() >= deadline:
                raise
            _log.warning("database_away", error=str(error).splitlines()[0], again_in=pause)
            if stop.wait(pause):
                return None
            pause = min(LONGEST_PAUSE_SECONDS, 2 * pause)


def _upgrade(connection: Connection) -> None:
    inspector = inspect(connection)
    is_first_version = inspector.has_table("jobs")
    # Workers come and go: their rows are written anew at each start, and one column was renamed.
    WORKERS.drop(connection)
    present = set(inspector.get_table_names()) - {WORKERS.name}
    METADATA.create_all(connection)
    connection.execute(text("DROP TABLE IF EXISTS paces"))
    for table in METADATA.sorted_tables:
        if table.name in present:
            _complete(connection, inspector, table)
    if is_first_version:
        for statement in _JOBS:
            connection.execute(text(statement))
        schema = None if connection.dialect.name == "sqlite" else "dbos"
        if inspector.has_table("workflow_status", schema):
            engine = f"{schema}.workflow_status" if schema else "workflow_status"
            statement = f"DELETE FROM {engine} WHERE name = '{_FIRST_WORKFLOW}'"  # noqa: S608 - our own constants
            connection.execute(text(statement))


def _complete(connection: Connection, inspector: Inspector, table: Table) -> None:
    """Add the columns and indexes that a table lacks."""
    columns = {column["name"] for column in inspector.get_columns(table.name)}
    for column in table.columns:
        if column.name not in columns:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {definition}"))
    indexes = {index["name"]: index["column_names"] for index in inspector.get_indexes(table.name)}
    for index in table.indexes:
        if indexes.get(index.name) != [column.name for column in index.columns]:
            index.drop(connection, checkfirst=True)
            index.create(connection)
