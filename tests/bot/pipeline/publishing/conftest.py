"""A desk on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.pipeline.store import Database
from tests.bot.pipeline.publishing.desk import Desk, make_desk


@pytest.fixture
def desk(sqlite: Database) -> Iterator[Desk]:
    with make_desk(sqlite) as desk:
        yield desk
