"""Installations of the app, and pauses of repositories."""

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


class InstallationRow(Frozen):
    """One installation, and the newest delivery from it."""

    id: int
    account: str
    suspended: bool
    delivery: str
    kind: str
    repository: str
    seen_at: datetime


class RepositoryRow(Frozen):
    """The stored deliveries of a repository."""

    repository: str
    count: int
    seen_at: datetime


class Pause(Frozen):
    """A repository, or everything, that is paused until an operator resumes it."""

    repository: str
    by: str
    since_at: datetime


class Installations:
    """Installations of the app, and pauses of repositories."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, connection: Connection, delivery: str, event: Event, at: float) -> None:
        """Record a delivery, in the transaction that stores it."""
        if event.installation is None:
            return
        action = event.action if isinstance(event, events.InstallationChanged) else ""
        if action == "deleted":
            connection.execute(delete(INSTALLATIONS).where(INSTALLATIONS.c.id == event.installation))
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

    def is_replaced(self, account: str, installation: int | None) -> bool:
        """Return True if the account has a newer installation."""
        newer = INSTALLATIONS.c.account == account, INSTALLATIONS.c.id > (installation or 0)
        return self._database.scalar(select(INSTALLATIONS.c.id).where(*newer).limit(1)) is not None

    def all(self) -> tuple[InstallationRow, ...]:
        """Return every installation that sent a delivery, by account."""
        rows = self._database.rows(select(INSTALLATIONS).order_by(INSTALLATIONS.c.account))
        return tuple(InstallationRow(**row._asdict()) for row in rows)

    def repositories(self) -> tuple[RepositoryRow, ...]:
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
        return tuple(RepositoryRow(**row._asdict()) for row in rows)

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
