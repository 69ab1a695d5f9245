"""A desk on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.pipeline.store import migrate, open_database
from tests.bot.pipeline.publishing.desk import Desk, make_desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    database = open_database(f"sqlite:///{tmp_path}/desk.db")
    migrate(database)
    with make_desk(database) as desk:
        yield desk
    database.close()
