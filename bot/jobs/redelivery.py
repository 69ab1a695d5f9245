"""What GitHub could not deliver is delivered again: GitHub itself never tries twice.

A delivery keeps its id, so that one which arrived after all is answered as seen and runs nothing.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from bot.errors import ForgeError, TransientError
from bot.store import Database
from bot.store.locks import Leadership
from bot.store.tables import DELIVERIES

if TYPE_CHECKING:
    from bot.forge.github.app import GitHubApp, HookDelivery

#: GitHub keeps deliveries for about this long.
KEPT = timedelta(days=3)
#: Between two rounds, seconds.
ROUND_SECONDS = 300.0
#: After the first failure a delivery is tried again at once, then after twice as long each time: some twelve
#: times in three days, however long the receiver is away.
FIRST_PAUSE = timedelta(minutes=1)

_log = structlog.get_logger(__name__)


def due(delivery: HookDelivery, now: datetime) -> bool:
    """Whether a failed delivery has rested for long enough to be tried again."""
    if delivery.attempts == 1:
        return True
    return now - delivery.delivered_at >= FIRST_PAUSE * (1 << min(delivery.attempts - 1, 12))


class Reconciler:
    """Does rounds in a thread of its own; of several workers only the one that holds the lock does them."""

    def __init__(self, github: GitHubApp, database: Database) -> None:
        self._github = github
        self._database = database
        self._leadership = Leadership(database.locks, "reconciler")

    def run(self, stop: threading.Event, seconds: float = ROUND_SECONDS) -> None:
        """A round at once and then every ``seconds``, until ``stop`` is set."""
        try:
            while True:
                self._guarded_round()
                if stop.wait(seconds):
                    return
        finally:
            self._leadership.give_up()

    def round(self) -> int:
        """Have everything that is due delivered again; how many there were. Raises TransientError, ForgeError."""
        if not self._leadership.ours():
            return 0
        now, count = datetime.now(UTC), 0
        for delivery in self._github.failed_deliveries(now - KEPT):
            # What was recorded although GitHub counts it as failed was answered too late, no more.
            if due(delivery, now) and not self._arrived(delivery.guid):
                self._github.redeliver(delivery.id)
                count += 1
        if count:
            _log.info("redelivered", count=count)
        return count

    def _arrived(self, guid: str) -> bool:
        """Whether a delivery of that id was recorded, by whichever attempt."""
        with self._database.read() as connection:
            return connection.execute(select(DELIVERIES.c.seq).where(DELIVERIES.c.id == guid)).first() is not None

    def _guarded_round(self) -> None:
        try:
            self.round()
        except (TransientError, ForgeError) as error:
            _log.warning("reconciling_failed", error=str(error))
        except SQLAlchemyError as error:
            _log.warning("reconciling_failed", error=type(error).__name__)
