"""What became of the subjects that a bouncer judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

from sqlalchemy import select

from bot.calibration.fates import GRACE, KnownFate
from bot.core.actions import Decision
from bot.store.database import Database
from bot.store.tables import FATES

#: Fates that one question returns: the newest.
_MOST = 5000


class Fates:
    """One row a subject and bouncer; the newest word about it counts."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def record(self, decisions: Sequence[Decision]) -> None:
        """Keep the fates that decisions tell of."""
        for decision in decisions:
            for told in decision.evidence.get("fates", ()):
                self._write(decision.subject.repository, KnownFate.model_validate(told))

    def of(self, repository: str, bouncer: Literal["triage", "verify"]) -> tuple[KnownFate, ...]:
        """Those that are known for sure by now, in the order in which they became known."""
        columns = [FATES.c[name] for name in KnownFate.model_fields]
        query = (
            select(*columns)
            .where(
                FATES.c.repository == repository, FATES.c.bouncer == bouncer, FATES.c.settled_at <= self._clock()
            )
            .order_by(FATES.c.settled_at.desc())
            .limit(_MOST)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return tuple(KnownFate(**row._asdict()) for row in reversed(rows))

    def _write(self, repository: str, fate: KnownFate) -> None:
        # A merge is good once nothing has undone it for a while.
        wait = GRACE.total_seconds() if fate.bouncer == "verify" and fate.good else 0.0
        values = {**fate.model_dump(exclude={"subject", "bouncer"}), "settled_at": self._clock() + wait}
        keys = {"repository": repository, "subject": fate.subject, "bouncer": fate.bouncer}
        with self._database.write() as connection:
            insert = self._database.insert(FATES).values(**keys, **values)
            connection.execute(insert.on_conflict_do_update(index_elements=list(keys), set_=values))
