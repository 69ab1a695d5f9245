"""The register of our writes to GitHub, by the key under which there must be one."""

from __future__ import annotations

import time

from pydantic import Field
from sqlalchemy import select

from bot.core.actions import Task
from bot.core.frozen import Frozen
from bot.pipeline.store.counters import Counters, counter_key
from bot.pipeline.store.database import Database
from bot.pipeline.store.tables import POSTINGS


class Posting(Frozen):
    """One of our writes to GitHub."""

    key: str = Field(description="repository, number, task and (where it changes identity) the revision")
    type: str = Field(description="the action's type")
    task: Task
    repository: str
    number: int
    job: str
    github_id: int = Field(description="id of the comment, review, check run or pull request (its number)")
    content_hash: str = Field(description="of the text as it was sent")

    def url(self, web_url: str) -> str:
        """Return its address; empty if it has none of its own."""
        base = f"{web_url}/{self.repository}"
        match self.type:
            case "upsert_comment":
                return f"{base}/issues/{self.number}#issuecomment-{self.github_id}"
            case "submit_review":
                return f"{base}/pull/{self.number}#pullrequestreview-{self.github_id}"
            case "set_check":
                return f"{base}/runs/{self.github_id}"
            case "open_draft_pull":
                return f"{base}/pull/{self.github_id}"
        return ""


class Postings:
    """The register of our writes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counters = Counters(database)

    def find(self, key: str) -> Posting | None:
        columns = [POSTINGS.c[name] for name in Posting.model_fields]
        row = self._database.row(select(*columns).where(POSTINGS.c.key == key))
        return None if row is None else Posting(**row._mapping)

    def put(self, posting: Posting) -> None:
        """Store a posting; it replaces the one with its key."""
        now = time.time()
        insert = self._database.insert(POSTINGS).values(**posting.model_dump(), created_at=now, updated_at=now)
        changed = {name: insert.excluded[name] for name in ("job", "github_id", "content_hash", "updated_at")}
        with self._database.write() as connection:
            previous = connection.execute(select(POSTINGS.c.id).where(POSTINGS.c.key == posting.key)).first()
            connection.execute(insert.on_conflict_do_update(index_elements=["key"], set_=changed))
            if previous is None:
                self._counters.add({counter_key("bouncer_postings", type=posting.type): 1}, connection)
