"""Exclusive locks that the operating system or the database server frees when their holder dies.

A lease would have to guess how long a worker may be silent; these need no guess: kill -9 frees them at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

#: Ours among the advisory locks of a database that others may share: the bytes of "bncr".
CLASS = 0x626E6372
#: How long one process waits for another's migration, seconds.
MIGRATION_SECONDS = 120.0


class FileLocks:
    """``flock`` on files in a folder beside the SQLite file. Children do not inherit the descriptors."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, name: str) -> HeldFile | None:
        """Return the lock; None if it is held."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / re.sub(r"[^A-Za-z0-9_-]", "-", name)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return HeldFile(descriptor)


class HeldFile:
    """A lock that this process holds for as long as it lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def alive(self) -> bool:
        return True

    def release(self) -> None:
        # The file stays: to remove it would let two processes lock two files of one name.
        os.close(self._descriptor)


class AdvisoryLocks:
    """PostgreSQL's session locks, each on a connection of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def take(self, name: str) -> HeldSession | None:
        """Return the lock; None if it is held."""
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)
        # Detached from the pool: the lock belongs to this connection.
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()
        success = connection.scalar(
            text("SELECT pg_try_advisory_lock(:class, :key)"), {"class": CLASS, "key": key}
        )
        if not success:
            connection.close()
            return None
        return HeldSession(connection)


class HeldSession:
    """A lock that is lost with the connection to the server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session = connection.connection.driver_connection
        self._lost = False

    def alive(self) -> bool:
        """Return True if the lock is still ours."""
        # A lost lock stays lost: the next statement would open a new connection without it.
        if not self._lost:
            try:
                self._connection.scalar(text("SELECT 1"))
            except DBAPIError:
                self._lost = True
        return not self._lost

    def release(self) -> None:
        self._connection.close()
        # SQLAlchemy drops a broken connection without closing it.
        if self._session is not None:
            self._session.close()


HeldLock = HeldFile | HeldSession
Locks = FileLocks | AdvisoryLocks


@contextmanager
def migrating(locks: Locks) -> Iterator[None]:
    """Hold the lock of those who create or upgrade tables, waiting for it. Raises TimeoutError."""
    deadline = time.monotonic() + MIGRATION_SECONDS
    while (lock := locks.take("migrate")) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process migrates the database for more than {MIGRATION_SECONDS:.0f} s")
        time.sleep(0.05)
    try:
        yield
    finally:
        lock.release()
