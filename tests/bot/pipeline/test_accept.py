"""A delivery is stored once; one that cannot be stored is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from bot.core import events
from bot.core.errors import TransientError
from bot.pipeline.store import Database, database_at
from bot.pipeline.store.tables import DELIVERIES
from bot.web.app import Storing
from tests.bot.pipeline.builders import opened


@pytest.fixture
def acceptor(database: Database):
    acceptor = Storing(database)
    acceptor.connect()
    yield acceptor
    acceptor.close()


def test_the_event_is_stored_once_as_plain_json(acceptor, database):
    event = opened(7)
    assert acceptor.accept("d-1", event) is True
    with database.read() as connection:
        row = connection.execute(select(DELIVERIES)).one()
    assert events.from_json(row.event) == event
    assert (row.id, row.kind, row.repository, row.dispatched_at) == (
        "d-1",
        "issue_opened",
        "acme/rocket",
        row.received_at,
    )
    assert acceptor.accept("d-1", opened(8)) is False
    assert events.from_json(database.scalar(select(DELIVERIES.c.event))) == event


def test_two_processes_that_get_the_same_delivery_record_it_once(acceptor, database, database_url):
    other = database_at(database_url)
    second = Storing(other)
    second.connect()
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            pool.submit(item.accept, f"d-{number}", opened())
            for number in range(40)
            for item in (acceptor, second)
        ]
    assert sum(job.result() for job in jobs) == 40
    second.close()
    other.close()


def test_an_error_of_one_delivery_does_not_stop_the_next_one(acceptor, database):
    # Half of a surrogate pair: SQLite's and PostgreSQL's drivers raise what is no error of SQLAlchemy's.
    ids = [f"d-{n}" if n != 3 else "\ud800" for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        tries = [pool.submit(acceptor.accept, item, opened()) for item in ids]
    refused = [n for n, item in enumerate(tries) if item.exception() is not None]
    assert refused == [3]
    assert isinstance(tries[3].exception(), TransientError)
    assert acceptor.accept("d-9", opened()) is True


def test_a_database_that_is_gone_is_a_refusal_at_once():
    database = database_at("postgresql://nobody@127.0.0.1:9/none")
    acceptor = Storing(database)
    with pytest.raises(TransientError, match="did not record"):
        acceptor.accept("d-1", opened())
    acceptor.close()
