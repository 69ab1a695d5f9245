"""The tables are migrated by the process that starts first."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text

from bot.core.errors import OperatorError
from bot.pipeline.store import migrate, migrated, open_database
from bot.pipeline.store.migration import HEAD, VERSION, version
from bot.pipeline.store.tables import DELIVERIES, METADATA
from tests.bot.pipeline.rig import PROCESSES


@pytest.fixture
def old(database_url):
    """A database as release 0.1.0 left it."""
    database = open_database(database_url)
    statements = (Path(__file__).parent / "release_0.1.0.sql").read_text().split(";\n")
    serial = "INTEGER NOT NULL PRIMARY KEY" if database.is_sqlite else "BIGSERIAL PRIMARY KEY"
    with database.write() as connection:
        for statement in filter(None, statements):
            connection.execute(text(statement.replace("{serial}", serial)))
        connection.execute(text(f"CREATE TABLE {VERSION.name} (version_num VARCHAR(32) PRIMARY KEY)"))
        connection.execute(text(f"INSERT INTO {VERSION.name} VALUES ('0001')"))
    yield database
    database.close()


def is_as_declared(database):
    with database.read() as connection:
        # The search of words consists of what SQLAlchemy cannot declare.
        opts = {
            "version_table": VERSION.name,
            "include_name": lambda name, *_: not str(name).startswith("issue_words"),
        }
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, METADATA) == []
    return version(database) == HEAD


def test_a_new_database_has_the_tables_that_are_declared(database_url):
    with migrated(database_url) as database:
        assert is_as_declared(database)


def test_the_migrations_end_where_the_tables_are_declared(old):
    migrate(old)
    assert is_as_declared(old)


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o600, 0o600), (0o664, 0o660)])
def test_files_of_a_database_that_stand_open_to_others_are_closed(tmp_path: Path, before: int, after: int) -> None:
    database = open_database(f"sqlite:///{tmp_path}/x.db")
    migrate(database)
    files = [tmp_path / name for name in ("x.db", "x.db-shm", "x.db-wal")]
    for file in files:
        file.chmod(before)
    open_database(f"sqlite:///{tmp_path}/x.db").close()
    assert [oct(file.stat().st_mode & 0o777) for file in files] == [oct(after)] * 3
    database.close()


def start(url):
    migrate(open_database(url))


def test_processes_that_start_at_once_migrate_once(database_url):
    starts = [PROCESSES.Process(target=start, args=(database_url,)) for _ in range(4)]
    for process in starts:
        process.start()
    for process in starts:
        process.join(60)
    assert [process.exitcode for process in starts] == [0, 0, 0, 0]
    database = open_database(database_url)
    assert version(database) == HEAD
    database.close()


def test_jobs_of_the_first_version_are_made_anew(old):
    engine = "workflow_status" if old.is_sqlite else "dbos.workflow_status"
    with old.write() as connection:
        if not old.is_sqlite:
            connection.execute(text("CREATE SCHEMA dbos"))
        connection.execute(text(f"CREATE TABLE {engine} (name TEXT)"))
        connection.execute(text(f"INSERT INTO {engine} VALUES ('run_job'), ('job')"))
    rows = [("d-1", "done", None), ("d-2", "waiting", "away"), ("d-3", "dead", "gave up")]
    with old.write() as connection:
        for seq, (name, state, error) in enumerate(rows, 1):
            connection.execute(
                text(
                    "INSERT INTO deliveries (id, kind, repository, event, received_at, dispatched_at)"
                    " VALUES (:id, 'issue_opened', 'acme/rocket', '{}', 1, 1)"
                ),
                {"id": name},
            )
            connection.execute(
                text(
                    "INSERT INTO jobs (id, delivery, seq, position, task, kind, repository, number, state, due,"
                    " error, created_at) VALUES (:job, :id, :seq, 0, 'triage', 'issue_opened',"
                    " 'acme/rocket', 7, :state, 1, :error, 1)"
                ),
                {"job": f"{name}:triage", "id": name, "seq": seq, "state": state, "error": error},
            )
    migrate(old)
    with old.read() as connection:
        deliveries = connection.execute(select(DELIVERIES).order_by(DELIVERIES.c.seq)).all()
    assert [(row.id, row.dispatched_at, row.problem, row.number) for row in deliveries] == [
        ("d-1", 1.0, None, 7),
        ("d-2", None, None, 7),
        ("d-3", 1.0, "triage: gave up", 7),
    ]
    with old.read() as connection:
        assert connection.scalars(text(f"SELECT name FROM {engine}")).all() == ["job"]


def test_a_database_of_a_newer_bouncer_is_left_alone(database_url):
    with migrated(database_url) as database:
        database.execute(text(f"UPDATE {VERSION.name} SET version_num = '9999'"))
        with pytest.raises(OperatorError, match=r"9999.*newer"):
            migrate(database)


def test_sqlite_is_in_wal_mode_for_everybody(tmp_path: Path):
    open_database(f"sqlite:///{tmp_path}/x.db").close()
    database = open_database(f"sqlite:///{tmp_path}/x.db")
    assert database.scalar(text("PRAGMA journal_mode")) == "wal"
    database.close()
