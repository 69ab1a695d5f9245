"""Sessions of the dashboard, and the pace of attempts to log in."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy import Connection, case, delete, select

from bot.pipeline.store.database import Part
from bot.pipeline.store.tables import ADMIN_IDS, LOGIN_ATTEMPTS, SESSIONS

#: Wrong passwords from one address that cost nothing; then each further attempt waits twice as long, up to this.
FREE_FAILURES = 5
LONGEST_SECONDS = 8.0
#: Longest wait for a turn, seconds; beyond, the attempt is refused.
LONGEST_WAIT_SECONDS = 10.0
#: After this long without a wrong password an address begins anew, seconds.
FORGET_SECONDS = 900.0

#: All addresses together: from so many failures on, attempts are this far apart. It delays, and refuses none.
ALL_ADDRESSES = "*"
FREE_FAILURES_ALL = 50
APART_ALL_SECONDS = 0.25
LONGEST_ALL_SECONDS = 2.0


class Logins(Part):
    """Sessions, by an id from which neither cookie nor password can be derived, and the pace of login attempts."""

    def begin(self, session: str, seconds: float, login: str = "") -> None:
        """Store a session that expires; ``login`` is a GitHub account, or empty for the password."""
        now = self._database.clock()
        with self._database.write() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.until < now))
            connection.execute(SESSIONS.insert(), {"id": session, "until": now + seconds, "login": login})

    def login(self, session: str) -> str | None:
        """Return the account of a session; None if it does not exist or has expired."""
        row = self._database.row(select(SESSIONS).where(SESSIONS.c.id == session))
        return str(row.login) if row is not None and row.until > self._database.clock() else None

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
            common_wait = self._reserve(connection, ALL_ADDRESSES, _apart_all, LONGEST_ALL_SECONDS)
            own_wait = self._reserve(connection, address, _apart, LONGEST_WAIT_SECONDS)
        return max(own_wait, min(common_wait, LONGEST_ALL_SECONDS))

    def failed(self, address: str) -> None:
        now = self._database.clock()
        values = LOGIN_ATTEMPTS.c
        recent = values.failed_at > now - FORGET_SECONDS
        with self._database.write() as connection:
            connection.execute(
                LOGIN_ATTEMPTS.update()
                .where(values.address.in_((ALL_ADDRESSES, address)))
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
        now = self._database.clock()
        failures = attempts.failures if now - attempts.failed_at < FORGET_SECONDS else 0
        # A moment far ahead means that the clock was set back.
        start = max(now, attempts.next_at) if attempts.next_at < now + 10 * LONGEST_WAIT_SECONDS else now
        if start - now <= longest:
            connection.execute(LOGIN_ATTEMPTS.update().where(is_row).values(next_at=start + apart(failures)))
        return float(start - now)


def _apart(failures: int) -> float:
    return min(LONGEST_SECONDS, 2.0 ** (failures - FREE_FAILURES)) if failures >= FREE_FAILURES else 0.0


def _apart_all(failures: int) -> float:
    return APART_ALL_SECONDS if failures >= FREE_FAILURES_ALL else 0.0
