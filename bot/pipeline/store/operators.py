"""State for operators: installations and pauses, sessions and logins of the dashboard, counts for ``/metrics``.

Counts are summed in the database as they happen. So any web process can serve them, without counting the rows of
tables that grow.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, case, delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from bot.core import events
from bot.core.events import Event
from bot.core.frozen import Frozen
from bot.pipeline.store.database import Database
from bot.pipeline.store.tables import (
    ADMIN_IDS,
    COUNTERS,
    DELIVERIES,
    INSTALLATIONS,
    LOGIN_ATTEMPTS,
    PAUSES,
    SESSIONS,
)

if TYPE_CHECKING:
    from bot.github.http import Exchange

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


#: Wrong passwords from one address that cost nothing; then each further attempt waits twice as long, up to this.
FREE = 5
LONGEST_SECONDS = 8.0
#: Longest wait for a turn, seconds; beyond, the attempt is refused.
LONGEST_WAIT_SECONDS = 10.0
#: After this long without a wrong password an address begins anew, seconds.
FORGET_SECONDS = 900.0

#: All addresses together: from so many failures on, attempts are this far apart. It delays, and refuses none.
ALL = "*"
FREE_ALL = 50
APART_ALL_SECONDS = 0.25
LONGEST_ALL_SECONDS = 2.0


class Logins:
    """Sessions, by an id from which neither cookie nor password can be derived, and the pace of login attempts."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def begin(self, session: str, seconds: float, login: str = "") -> None:
        """Store a session that expires; ``login`` is a GitHub account, or empty for the password."""
        now = self._clock()
        with self._database.write() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.until < now))
            connection.execute(SESSIONS.insert(), {"id": session, "until": now + seconds, "login": login})

    def login(self, session: str) -> str | None:
        """Return the account of a session; None if it does not exist or has expired."""
        row = self._database.row(select(SESSIONS).where(SESSIONS.c.id == session))
        return str(row.login) if row is not None and row.until > self._clock() else None

    def end(self, session: str) -> None:
        """Delete a session: its cookie, and every copy of it, is invalid from now on."""
        self._database.execute(delete(SESSIONS).where(SESSIONS.c.id == session))

    def first_id(self, name: str, github_id: int) -> int:
        """Return the id that an operator's name had at its first use; remember ``github_id`` if this is it."""
        row = {"name": name, "id": github_id}
        with self._database.write() as connection:
            connection.execute(self._database.insert(ADMIN_IDS).on_conflict_do_nothing(), row)
            return int(connection.execute(select(ADMIN_IDS.c.id).where(ADMIN_IDS.c.name == name)).scalar_one())

    def ids(self, names: Iterable[str]) -> frozenset[int]:
        query = select(ADMIN_IDS.c.id).where(ADMIN_IDS.c.name.in_(tuple(names)))
        return frozenset(self._database.scalars(query))

    def turn(self, address: str) -> float:
        """Reserve an attempt, and return the seconds until then. Above LONGEST_WAIT_SECONDS none is reserved."""
        with self._database.write() as connection:
            common_wait = self._reserve(connection, ALL, _apart_all, LONGEST_ALL_SECONDS)
            own_wait = self._reserve(connection, address, _apart, LONGEST_WAIT_SECONDS)
        return max(own_wait, min(common_wait, LONGEST_ALL_SECONDS))

    def failed(self, address: str) -> None:
        now = self._clock()
        values = LOGIN_ATTEMPTS.c
        recent = values.failed_at > now - FORGET_SECONDS
        with self._database.write() as connection:
            connection.execute(
                LOGIN_ATTEMPTS.update()
                .where(values.address.in_((ALL, address)))
                .values(failures=case((recent, values.failures + 1), else_=1), failed_at=now)
            )
            connection.execute(delete(LOGIN_ATTEMPTS).where(values.next_at < now - 2 * FORGET_SECONDS))

    def succeeded(self, address: str) -> None:
        self._database.execute(delete(LOGIN_ATTEMPTS).where(LOGIN_ATTEMPTS.c.address == address))

    def _reserve(
        self, connection: Connection, address: str, apart: Callable[[int], float], longest: float
    ) -> float:
        """Return the seconds until the next free moment, and reserve it if they are at most ``longest``.

        ``apart`` returns the seconds between two attempts after a number of failures.
        """
        row = {"address": address, "failures": 0, "failed_at": 0.0, "next_at": 0.0}
        connection.execute(self._database.insert(LOGIN_ATTEMPTS).on_conflict_do_nothing(), row)
        is_row = LOGIN_ATTEMPTS.c.address == address
        attempts = connection.execute(select(LOGIN_ATTEMPTS).where(is_row).with_for_update()).one()
        now = self._clock()
        failures = attempts.failures if now - attempts.failed_at < FORGET_SECONDS else 0
        # A moment far ahead means that the clock was set back.
        start = max(now, attempts.next_at) if attempts.next_at < now + 10 * LONGEST_WAIT_SECONDS else now
        if start - now <= longest:
            connection.execute(LOGIN_ATTEMPTS.update().where(is_row).values(next_at=start + apart(failures)))
        return float(start - now)


def _apart(failures: int) -> float:
    return min(LONGEST_SECONDS, 2.0 ** (failures - FREE)) if failures >= FREE else 0.0


def _apart_all(failures: int) -> float:
    return APART_ALL_SECONDS if failures >= FREE_ALL else 0.0


#: Names of the metrics that processes count.
DELIVERY_ANSWERS = "bouncer_deliveries"
GITHUB_CALLS = "bouncer_github_calls"
GITHUB_SECONDS = "bouncer_github_seconds"
GITHUB_REMAINING = "bouncer_github_quota_remaining"

#: A count's name and its labels.
Counted = tuple[str, tuple[tuple[str, str], ...]]


class Counters:
    """Counts and gauges that every process can read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, counts: Mapping[Counted, float], connection: Connection | None = None) -> None:
        """Add to counts, in the caller's transaction if there is one."""
        if connection is not None:
            self._put(connection, counts, add=True)
        elif counts:
            with self._database.write() as own:
                self._put(own, counts, add=True)

    def set(self, values: Mapping[Counted, float]) -> None:
        if values:
            with self._database.write() as connection:
                self._put(connection, values, add=False)

    def all(self) -> dict[Counted, float]:
        rows = self._database.rows(select(COUNTERS.c.name, COUNTERS.c.labels, COUNTERS.c.value))
        return {(row.name, tuple(map(tuple, json.loads(row.labels)))): row.value for row in rows}

    def _put(self, connection: Connection, values: Mapping[Counted, float], *, add: bool) -> None:
        now = time.time()
        insert = self._database.insert(COUNTERS)
        value: Any = COUNTERS.c.value + insert.excluded.value if add else insert.excluded.value
        upsert = insert.on_conflict_do_update(
            index_elements=["name", "labels"], set_={"value": value, "updated_at": now}
        )
        rows = [
            {"name": name, "labels": json.dumps(labels), "value": value, "updated_at": now}
            # All processes use the same order, so that no deadlock can occur.
            for (name, labels), value in sorted(values.items())
        ]
        connection.execute(upsert, rows)


def counted(name: str, **labels: str) -> Counted:
    return name, tuple(sorted(labels.items()))


class Counts:
    """Counts of this process, added to the database in intervals; a killed process loses the last few."""

    def __init__(self) -> None:
        self._counts: dict[Counted, float] = defaultdict(float)
        self._gauges: dict[Counted, float] = {}
        self._lock = threading.Lock()
        self._flushing = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        with self._lock:
            self._counts[counted(name, **labels)] += amount

    def set(self, name: str, value: float, **labels: str) -> None:
        with self._lock:
            self._gauges[counted(name, **labels)] = value

    def observe(self, call: Exchange) -> None:
        """Count a call to GitHub, and set the rest of the installation's quota."""
        self.add(GITHUB_CALLS, method=call.method, status=str(call.status))
        self.add(GITHUB_SECONDS, call.seconds)
        if call.installation is not None and call.remaining is not None:
            self.set(GITHUB_REMAINING, call.remaining, installation=str(call.installation))

    def flush(self, counters: Counters) -> None:
        """Add the counts since the last time to the database, after those of a thread that is doing so.

        Raises SQLAlchemyError; the counts are kept for the next time.
        """
        with self._flushing:
            with self._lock:
                counts, self._counts = self._counts, defaultdict(float)
                gauges, self._gauges = self._gauges, {}
            try:
                counters.add(counts)
            except SQLAlchemyError:
                with self._lock:
                    for counter, amount in counts.items():
                        self._counts[counter] += amount
                raise
            counters.set(gauges)
