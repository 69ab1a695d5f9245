"""Reactions of people to postings, outcomes of judged subjects, and the test of a bouncer's promise on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from sqlalchemy import func, select

from bot.calibration.fates import GRACE
from bot.calibration.risk import PromiseRecord, watch_promise
from bot.core.actions import Decision
from bot.core.subjects import KnownFate
from bot.features.feedback.record import FeedbackRecord, Outcome
from bot.features.feedback.signals import Row, outcomes, rates, signals
from bot.pipeline.store.database import Part
from bot.pipeline.store.tables import FATES, SIGNALS

#: Most fates that a query returns, the newest ones.
_MAX_FATES = 5000


class Signals(Part):
    """Reactions of people to postings."""

    def refresh(self, repository: str, history: Iterable[Decision]) -> None:
        """Update the outcomes on one subject; ``history`` is every decision on it, oldest first."""
        signals_by_key = outcomes(signals(history))
        if signals_by_key:
            with self._database.write() as connection:
                for key, sign in signals_by_key.items():
                    values = {**sign.model_dump(exclude={"key"}), "updated_at": self._database.clock()}
                    insert = self._database.insert(SIGNALS).values(key=key, repository=repository, **values)
                    connection.execute(insert.on_conflict_do_update(index_elements=["key"], set_=values))

    def rates(self, repository: str | None = None) -> tuple[Row, ...]:
        query = select(SIGNALS.c.category, SIGNALS.c.outcome, func.count().label("number")).group_by(
            SIGNALS.c.category, SIGNALS.c.outcome
        )
        if repository is not None:
            query = query.where(SIGNALS.c.repository == repository)
        counts: dict[str, dict[Outcome, int]] = {}
        for row in self._database.rows(query):
            counts.setdefault(row.category, {})[row.outcome] = row.number
        return rates(counts)

    def muted(self, repository: str) -> frozenset[str]:
        return frozenset(row.category for row in self.rates(repository) if row.muted)


def watch(fates: Sequence[KnownFate]) -> PromiseRecord | None:
    """Test the promise in force, under which the newest subject was judged; None if nothing was promised.

    ``fates`` come in the order in which they were settled, of one repository and bouncer.
    """
    harm = fates[-1].harm if fates else None
    if harm is None:
        return None
    return watch_promise((fate.bounced for fate in fates if fate.good and fate.harm == harm), harm / 100)


class Fates(Part):
    """One row for each subject and bouncer: the newest fate."""

    def record(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision.record, FeedbackRecord):
                for fate in decision.record.fates:
                    self._write(decision.subject.repository, fate)

    def of(self, repository: str, bouncer: Literal["triage", "verify"]) -> tuple[KnownFate, ...]:
        """Return the settled fates, in the order in which they were settled."""
        columns = [FATES.c[name] for name in KnownFate.model_fields]
        query = (
            select(*columns)
            .where(
                FATES.c.repository == repository,
                FATES.c.bouncer == bouncer,
                FATES.c.settled_at <= self._database.clock(),
            )
            .order_by(FATES.c.settled_at.desc())
            .limit(_MAX_FATES)
        )
        rows = self._database.rows(query)
        return tuple(KnownFate(**row._asdict()) for row in reversed(rows))

    def promises(self) -> tuple[tuple[str, Literal["triage", "verify"]], ...]:
        """Return the repositories and bouncers for which something was promised."""
        query = select(FATES.c.repository, FATES.c.bouncer).where(FATES.c.harm.is_not(None)).distinct()
        return tuple((row.repository, row.bouncer) for row in self._database.rows(query))

    def _write(self, repository: str, fate: KnownFate) -> None:
        # A merge is good once nothing has undone it for a while.
        wait = GRACE.total_seconds() if fate.bouncer == "verify" and fate.good else 0.0
        values = {**fate.model_dump(exclude={"subject", "bouncer"}), "settled_at": self._database.clock() + wait}
        keys = {"repository": repository, "subject": fate.subject, "bouncer": fate.bouncer}
        with self._database.write() as connection:
            insert = self._database.insert(FATES).values(**keys, **values)
            connection.execute(insert.on_conflict_do_update(index_elements=list(keys), set_=values))
