"""The real queue, driven by the test, and a clock that the test moves."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bot.pipeline.store import Database
from tests.bot.pipeline.driven import DrivenQueue


class Clock:
    """Starts at the engine's own time, by which it finds old jobs."""

    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(database: Database) -> Clock:
    clock = Clock()
    database.clock = clock
    return clock


@pytest.fixture
def queue(database: Database) -> Iterator[DrivenQueue]:
    queue = DrivenQueue(database)
    yield queue
    queue.close()
