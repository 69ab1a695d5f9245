"""A delivery is stored once; one that cannot be stored in time is refused in time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from bot.core import events
from bot.core.errors import TransientError
from bot.pipeline.store import Database, database_at, open_database
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


def test_a_redelivery_is_seen_and_changes_nothing(acceptor, database):
    acceptor.accept("d-1", opened(7))
    assert acceptor.accept("d-1", opened(8)) is False
    with database.read() as connection:
        assert events.from_json(connection.scalar(select(DELIVERIES.c.event))) == opened(7)


def test_a_hundred_at_once_are_all_recorded_and_each_is_told_the_truth(acceptor, database):
    with ThreadPoolExecutor(16) as pool:
        ids = [f"d-{number % 50}" for number in range(100)]
        news = list(pool.map(lambda item: acceptor.accept(item, opened()), ids))
    assert news.count(True) == 50
    with database.read() as connection:
        assert connection.scalar(select(func.count()).select_from(DELIVERIES)) == 50


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


def test_a_database_that_is_locked_is_a_refusal_within_the_deadline(tmp_path):
    from bot.pipeline.store import migrate

    url = f"sqlite:///{tmp_path}/x.db"
    database = open_database(url, busy_seconds=30)
    migrate(database)
    acceptor = Storing(database)
    acceptor.connect()
    locked, free = threading.Event(), threading.Event()

    def hold() -> None:
        with database.write():
            locked.set()
            free.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait()
    start = time.monotonic()
    with pytest.raises(TransientError, match="within 0 s"):
        acceptor.accept("d-1", opened(), seconds=0.3)
    assert time.monotonic() - start < 2
    free.set()
    holder.join()
    acceptor.accept("d-1", opened())
    acceptor.close()
    database.close()


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
