"""Installations of the app with their last delivery, and repositories that operators paused."""

from __future__ import annotations

import time
from datetime import datetime

from sqlalchemy import Connection, delete, func, select

from bot.core import events
from bot.core.events import Event
from bot.core.frozen import Frozen
from bot.pipeline.store.database import Database
from bot.pipeline.store.tables import DELIVERIES, INSTALLATIONS, PAUSES

#: The scope of a pause that holds everywhere.
EVERYTHING = ""


class Installed(Frozen):
    """One installation, and the newest delivery from it."""

    id: int
    account: str
    suspended: bool
    delivery: str
    kind: str
    repository: str
    seen_at: datetime


class Heard(Frozen):
    """The stored deliveries of a repository."""

    repository: str
    count: int
    seen_at: datetime


class Pause(Frozen):
    """Something that is left alone until an operator resumes it."""

    repository: str
    by: str
    since_at: datetime


class Installations:
    """One row an installation, and one a pause."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, connection: Connection, delivery: str, event: Event, at: float) -> None:
        """Record a delivery, in the transaction that stores it."""
        if event.installation is None:
            return
        here = INSTALLATIONS.c.id == event.installation
        action = event.action if isinstance(event, events.InstallationChanged) else ""
        if action == "deleted":
            connection.execute(delete(INSTALLATIONS).where(here))
            return
        repository = event.repository.full_name if hasattr(event, "repository") else ""
        account = repository.partition("/")[0] or str(getattr(event, "account", ""))
        if not account:
            return
        latest = {
            "account": account,
            "delivery": delivery,
            "kind": event.kind,
            "repository": repository,
            "seen_at": at,
        }
        if action in ("suspend", "unsuspend", "created"):
            latest["suspended"] = action == "suspend"
        insert = self._database.insert(INSTALLATIONS).values(
            {"id": event.installation, "suspended": False, **latest}
        )
        connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=latest))

    def all(self) -> tuple[Installed, ...]:
        """Return every installation that sent a delivery, by account."""
        rows = self._database.rows(select(INSTALLATIONS).order_by(INSTALLATIONS.c.account))
        return tuple(Installed(**row._asdict()) for row in rows)

    def repositories(self) -> tuple[Heard, ...]:
        """Return every repository of which a delivery is stored, by name."""
        name = DELIVERIES.c.repository
        query = (
            select(name, func.count().label("count"), func.max(DELIVERIES.c.received_at).label("seen_at"))
            .where(name != "")
            .group_by(name)
            .order_by(name)
            .limit(1000)
        )
        rows = self._database.rows(query)
        return tuple(Heard(**row._asdict()) for row in rows)

    def pause(self, repository: str, by: str) -> None:
        """Pause a repository, or EVERYTHING."""
        values = {"repository": repository, "by": by, "since_at": time.time()}
        self._database.execute(self._database.insert(PAUSES).values(values).on_conflict_do_nothing())

    def resume(self, repository: str) -> None:
        self._database.execute(delete(PAUSES).where(PAUSES.c.repository == repository))

    def pauses(self) -> dict[str, Pause]:
        """Return the pauses by repository or EVERYTHING."""
        rows = self._database.rows(select(PAUSES))
        return {row.repository: Pause(**row._asdict()) for row in rows}

    def paused(self, repository: str) -> bool:
        pauses = select(PAUSES.c.repository).where(PAUSES.c.repository.in_((EVERYTHING, repository))).limit(1)
        return self._database.scalar(pauses) is not None
