"""Installations of the app, pauses of repositories, and their former names.

Only a rename or transfer that GitHub reports moves stored data to another name: equal ids alone prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, and_, delete, exists, func, or_, select, update

from bot.core import events
from bot.core.events import Event
from bot.core.frozen import Frozen
from bot.pipeline.store.database import Database, Part
from bot.pipeline.store.tables import ABOUT_REPOSITORIES, BUDGETS, DELIVERIES, INSTALLATIONS, PAUSES, RENAMES

#: The scope of a pause that holds everywhere.
EVERYTHING = ""
#: Forms of the name in columns of text. In JSON (``decision``) a quotation mark within a text is escaped.
_TEXTS = {"decision": ('"{}"', '"{}#'), "key": (":{}", "{}#"), "subject": ("{}#",)}


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


class Installations(Part):
    """Installations of the app, and pauses of repositories."""

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
        values = {"repository": repository, "by": by, "since_at": self._database.clock()}
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


class Renames(Part):
    """Names that repositories had before GitHub reported a rename or transfer."""

    def present(self, event: Event) -> Event:
        """Return an event, which may have a former name of its repository, with the present one."""
        if not isinstance(event, events.RepositoryEvent):
            return event
        repository = event.repository
        # Otherwise it is a new repository of that name. GitHub names no ids when it reports a renamed account.
        by_account = and_(RENAMES.c.id.is_(None), RENAMES.c.installation == event.installation)
        is_former = and_(RENAMES.c.former == repository.full_name, or_(RENAMES.c.id == repository.id, by_account))
        row = self._database.row(select(RENAMES).where(is_former))
        if row is None:
            return event
        owner, _, name = row.repository.partition("/")
        url = repository.html_url.replace(repository.full_name, row.repository)
        moved = repository.model_copy(update={"owner": owner, "name": name, "html_url": url})
        return event.model_copy(update={"repository": moved, "installation": row.installation})

    def moves(self, event: events.Renamed) -> Mapping[str, str]:
        """Return the new names of the repositories to move, by the old ones."""
        owner, new_owner = event.old.partition("/")[0], event.new.partition("/")[0]
        of_owner = select(INSTALLATIONS.c.id).where(INSTALLATIONS.c.account == owner)
        installations = set(self._database.scalars(of_owner))
        if not event.account:
            # A transfer that the former owner's installation reports takes the repository away from the app.
            has_left = owner != new_owner and event.installation in installations
            return {} if has_left or event.old == event.new else {event.old: event.new}
        if owner == new_owner or installations - {event.installation}:
            # Another account may have the login by now.
            return {}
        return {name: f"{new_owner}/{name.partition('/')[2]}" for name in names_of(self._database, owner)}

    def move(self, old: str, new: str, event: events.Renamed) -> None:
        """Move all data to the new name. What is stored under it already is newer, and stays."""
        present = {"repository": new, "installation": event.installation}
        with self._database.write() as connection:
            for table in (*ABOUT_REPOSITORIES, PAUSES):
                _move(connection, table.c.repository, old, new)
            _move(connection, BUDGETS.c.scope, f"repository:{old}", f"repository:{new}")
            connection.execute(delete(RENAMES).where(RENAMES.c.former.in_((old, new))))
            connection.execute(RENAMES.insert(), {"former": old, "id": event.repository_id, **present})
            connection.execute(update(RENAMES).where(RENAMES.c.repository == new).values(**present))

    def forget(self, event: events.InstallationRepositoriesChanged) -> None:
        """Forget former names that an added repository has, if its id does not tell it from the renamed one."""
        is_added = and_(RENAMES.c.former.in_(event.added), RENAMES.c.id.in_(event.added_ids))
        self._database.execute(delete(RENAMES).where(is_added))


def names_of(database: Database, account: str) -> frozenset[str]:
    """Return the names of an account's repositories about which anything is stored."""
    columns = [table.c.repository for table in ABOUT_REPOSITORIES]
    queries = (select(name).where(name.startswith(f"{account}/", autoescape=True)).distinct() for name in columns)
    return frozenset(name for query in queries for name in database.scalars(query))


def _move(connection: Connection, column: Column[Any], old: str, new: str) -> None:
    """Replace the old name in the rows of a table; drop a row whose unique values the new name has already."""
    table = column.table
    newer = table.alias()
    values: dict[str, Any] = {column.name: new}
    for name in _TEXTS.keys() & table.c.keys():
        for form in _TEXTS[name]:
            values[name] = func.replace(values.get(name, table.c[name]), form.format(old), form.format(new))
    for constraint in table.constraints:
        names = {column.name for column in getattr(constraint, "columns", ())}
        if names & values.keys():
            same = (newer.c[name] == values.get(name, table.c[name]) for name in names)
            connection.execute(delete(table).where(column == old, exists().where(*same)))
    connection.execute(update(table).where(column == old).values(**values))
