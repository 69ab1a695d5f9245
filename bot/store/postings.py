"""What stands on GitHub because of us, by the key under which it must not stand twice; and who writes when."""

from __future__ import annotations

import time
from collections.abc import Callable

from pydantic import Field
from sqlalchemy import delete, select

from bot.core.actions import Task
from bot.core.frozen import Frozen
from bot.store.counters import Counters, counted
from bot.store.database import Database
from bot.store.tables import PACES, POSTINGS


class Posting(Frozen):
    """One thing that we wrote."""

    key: str = Field(description="repository, number, task and (where it changes identity) the revision")
    type: str = Field(description="the action's type")
    task: Task
    repository: str
    number: int
    job: str
    github_id: int = Field(description="id of the comment, review, check run or pull request (its number)")
    content_hash: str = Field(description="of the text as it was sent")


class Postings:
    """The register of our writes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counters = Counters(database)

    def find(self, key: str) -> Posting | None:
        """What stands under this key."""
        columns = [POSTINGS.c[name] for name in Posting.model_fields]
        with self._database.read() as connection:
            row = connection.execute(select(*columns).where(POSTINGS.c.key == key)).one_or_none()
        return None if row is None else Posting(**row._mapping)

    def put(self, posting: Posting) -> None:
        """Note that it stands; replaces what was known under its key."""
        now = time.time()
        insert = self._database.insert(POSTINGS).values(**posting.model_dump(), created_at=now, updated_at=now)
        changed = {name: insert.excluded[name] for name in ("job", "github_id", "content_hash", "updated_at")}
        with self._database.write() as connection:
            known = connection.execute(select(POSTINGS.c.id).where(POSTINGS.c.key == posting.key)).first()
            connection.execute(insert.on_conflict_do_update(index_elements=["key"], set_=changed))
            if known is None:
                self._counters.add({counted("bouncer_postings", type=posting.type): 1}, connection)

    def forget(self, key: str) -> None:
        """Note that somebody took it away."""
        with self._database.write() as connection:
            connection.execute(delete(POSTINGS).where(POSTINGS.c.key == key))


class Paces:
    """Hands out moments at which content may be created: across all workers, one installation's are kept apart."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def reserve(self, installation: int, apart: float) -> float:
        """Take the next free moment of an installation; how long to wait for it, in seconds."""
        with self._database.write() as connection:
            fresh = {"installation": installation, "next_at": 0.0}
            connection.execute(self._database.insert(PACES).on_conflict_do_nothing(), fresh)
            free_at = connection.scalar(
                select(PACES.c.next_at).where(PACES.c.installation == installation).with_for_update()
            )
            now = self._clock()
            # A moment far ahead is a clock that was set back, not a queue.
            start = now if free_at is None or free_at > now + 60 * apart else max(now, free_at)
            connection.execute(
                PACES.update().where(PACES.c.installation == installation).values(next_at=start + apart)
            )
        return start - now
