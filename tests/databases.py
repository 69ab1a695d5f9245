"""A migrated SQLite database as a copy: to make one takes thirty times as long."""

from __future__ import annotations

import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from bot.pipeline.queue import Queue
from bot.pipeline.store import migrated


def migrated_sqlite(file: Path) -> str:
    """Write a database without rows to a file, with the engine's tables; its URL."""
    file.write_bytes(_empty())
    return f"sqlite:///{file}"


@cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "empty.db"
        with migrated(f"sqlite:///{file}") as database, closing(Queue(database)) as queue:
            queue.connect()
        return file.read_bytes()
