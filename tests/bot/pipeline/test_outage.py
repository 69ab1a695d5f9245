"""During an outage of the database no process ends, and work continues afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from bot.simgithub import SimulatedGitHub
from tests.bot.pipeline.rig import REPOSITORY, Rig, wait

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def rig(database_url: str, tmp_path: Path) -> Iterator[Rig]:
    with SimulatedGitHub() as github:
        rig = Rig(github, database_url, tmp_path)
        yield rig
        rig.close()


def away(uri: str, name: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))


def back(uri: str, name: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def test_jobs_before_and_after_an_outage_of_the_database_are_finished(rig, database_url, postgres_uri):
    name = str(make_url(database_url).database)
    rig.web()
    wait(
        lambda: rig.deliver("ping", {"zen": "x", "sender": {"id": 1, "login": "a"}}) in (202, 204), 60, "web is up"
    )
    worker = rig.start("tests.bot.pipeline.worker_process", "--phoenix", "1")
    wait(rig.ready, 60, "the worker is up")
    away(postgres_uri, name)
    number = rig.github.open_issue(REPOSITORY, "It is broken", "Somehow.")
    assert rig.deliver("issues", rig.opened(number), "d-1") == 503
    wait(lambda: "database_away" in rig.log.read_text(), 60, "a worker that was started anew waits")
    back(postgres_uri, name)
    wait(lambda: rig.deliver("issues", rig.opened(number), "d-1") == 202, 60, "deliveries are taken again")
    wait(lambda: rig.github.comments(REPOSITORY, number), 60, "the issue was answered")
    assert worker.poll() is None
